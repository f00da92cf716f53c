// What moves when changes are tried: a line per workload, and its pods with whole names below it.

import { button, fill, h } from "./dom.js";
import { count } from "./format.js";

const MOST_NODES = 3; // that are named in the line of a workload
const MOST_PODS = 500; // that are listed of one workload

/** The moves ({pod, workload, change, before, after, why}) as a list; `onpod(name)` opens a pod. */
export function moveList(moves, onpod) {
  const found = new Map();
  for (const move of moves) {
    const name = move.workload || move.pod;
    if (!found.has(name)) found.set(name, []);
    found.get(name).push(move);
  }
  const items = [...found].map(([name, own]) => h("li", {}, moved(name, own, onpod)));
  return h("ul", { class: "plain moves", "aria-label": "pods that fare differently" }, ...items);
}

function moved(name, moves, onpod) {
  if (moves.length === 1) return line(moves[0], onpod);
  const place = h("div", {});
  const details = h(
    "details",
    {
      ontoggle: () => {
        // Made when it is opened first: there may be thousands.
        if (details.open && !place.children.length) fill(place, podsOf(moves, onpod));
      },
    },
    h(
      "summary",
      {},
      h("strong", {}, name),
      ` ${count(moves.length, "pod")}: ${placesText(moves, "before")} → ${placesText(moves, "after")}`,
    ),
    place,
  );
  return details;
}

function podsOf(moves, onpod) {
  const rest = moves.length - MOST_PODS;
  return h(
    "ul",
    { class: "plain" },
    ...moves.slice(0, MOST_PODS).map((move) => h("li", {}, line(move, onpod))),
    rest > 0 ? h("li", { class: "soft" }, `and ${rest.toLocaleString("en")} more`) : null,
  );
}

function line(move, onpod) {
  const isThere = move.after !== null || move.change === "no longer placed";
  return h(
    "div",
    { class: "move" },
    isThere ? button(move.pod, () => onpod(move.pod), { class: "link" }) : h("span", {}, move.pod),
    h("span", {}, `${placeText(move, "before")} → ${placeText(move, "after")}`),
    move.why ? h("span", { class: "soft" }, move.why) : null,
  );
}

function placeText(move, side) {
  if (move[side] !== null) return move[side];
  if (side === "before") return move.change === "added" ? "new" : "pending";
  return move.change === "gone" ? "gone" : "pending";
}

/** The places of the pods before or after, those of most pods first. */
function placesText(moves, side) {
  const counts = new Map();
  for (const move of moves) {
    const place = placeText(move, side);
    counts.set(place, (counts.get(place) ?? 0) + 1);
  }
  const names = [...counts].sort(([, one], [, other]) => other - one);
  const told = names.slice(0, MOST_NODES).map(([name, number]) => (number > 1 ? `${name} (${number})` : name));
  const rest = names.length - MOST_NODES;
  return rest > 0 ? `${told.join(", ")}, ${rest} more` : told.join(", ");
}
