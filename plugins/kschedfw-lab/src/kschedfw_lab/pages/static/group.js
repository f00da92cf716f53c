// The decision on a group of pods: its placements × the reasons why members have no node there.

import { decisionView, section } from "./decision.js";
import { ends, fill, h } from "./dom.js";
import { count } from "./format.js";
import { WindowedTable } from "./windowed.js";

// So many members are listed; others are counted.
const MOST_LINKS = 200;

/** The whole decision; `onpod(key)` opens a member, `onnode(name)` shows a node on the map. */
export function groupView(matrix, onpod = null, onnode = null) {
  const { headline, placements, member, text } = matrix;
  return [
    h("p", {}, h("strong", {}, headline)),
    h("p", { class: "soft" }, wantedText(matrix)),
    placements.length ? placementTable(matrix) : null,
    onpod ? memberLinks(matrix, onpod) : null,
    member
      ? h(
          "details",
          {},
          h("summary", {}, `Nodes of ${placements[0].name} for ${member.pod}, which has none there`),
          ...decisionView(member, onnode),
        )
      : null,
    h(
      "details",
      { open: true },
      h("summary", {}, "As kschedfw explain tells it"),
      h("div", { class: "text" }, ...text.flatMap(section)),
    ),
  ];
}

function wantedText({ pods, scheduled, least }) {
  const before = scheduled ? `, ${scheduled.toLocaleString("en")} on nodes already` : "";
  const rule = least === null ? "each may run without the others" : `at least ${least} run, or none`;
  return `${count(pods.length, "member")} without a node${before}; ${rule}`;
}

/** The table of placements, the nearest first; the one that is chosen is told below it. */
function placementTable({ group, placements, reasons }) {
  const hasTotals = placements.some(({ total }) => total !== null);
  const details = h("div", { class: "text", "aria-live": "polite" });
  const table = new WindowedTable({
    label: `placements of ${group}`,
    height: `${Math.min(12, placements.length + 1) * 28 + 40}px`,
    columns: [
      { title: "placement", width: "min(11rem, 27vw)" },
      { title: "nodes", width: "4.5rem", number: true },
      { title: "placed", width: "5rem", number: true },
      ...(hasTotals ? [{ title: "total", width: "5rem", number: true }] : []),
      ...reasons.map(({ message }) => ({ title: message, width: "9rem", number: true })),
      { title: "what is in the way", width: "22rem", grows: true },
    ],
    rowOf: (index) => {
      const { name, nodes, members, placed, is_taken, total, refused, why } = placements[index];
      return [
        ends(is_taken ? `${name} (taken)` : name),
        nodes.toLocaleString("en"),
        `${placed} of ${members}`,
        ...(hasTotals ? [total === null ? "" : String(total)] : []),
        ...reasons.map((reason, place) => (refused[place] ? refusedCell(reason, refused[place]) : "")),
        why,
      ];
    },
    onactive: (index) => fill(details, ...placementText(placements[index])),
  });
  table.show(placements.length);
  return h(
    "div",
    {},
    reasons.length
      ? h("p", { class: "soft" }, "The number below a reason is how many members have no node for it.")
      : null,
    table.element,
    details,
  );
}

function refusedCell({ plugin, message }, number) {
  const said = plugin ? `${plugin}: ${message}` : message;
  return h("span", { class: "no", title: `${count(number, "member")}: ${said}` }, `✗ ${number}`);
}

function placementText({ name, suffices, is_taken, fates }) {
  const fate = is_taken ? "taken" : suffices ? "would do" : "wouldn’t do";
  return [h("h3", {}, `${name}: ${fate}`), ...section(fates)];
}

function memberLinks({ pods }, onpod) {
  return h(
    "details",
    {},
    h("summary", {}, count(pods.length, "member")),
    h(
      "ul",
      { class: "plain" },
      ...pods
        .slice(0, MOST_LINKS)
        .map((key) =>
          h("li", {}, h("button", { type: "button", class: "link", onclick: () => onpod(key) }, key)),
        ),
      pods.length > MOST_LINKS ? h("li", {}, `and ${count(pods.length - MOST_LINKS, "more")}`) : null,
    ),
  );
}
