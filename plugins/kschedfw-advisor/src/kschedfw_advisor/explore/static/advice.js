// What would help the pending pods, each remedy to be tried with one click; and whether a node would be emptied.

import { button, h } from "./dom.js";
import { count } from "./format.js";
import { nameButton } from "./cards.js";

/**
 * The kinds of pending pods with their remedies; `ontry(change)` tries one, `open` has a function that opens a pod, and
 * one that opens a group.
 */
export function adviceList({ kinds, unseen }, ontry, open) {
  if (!kinds.length) return [h("p", {}, "All pending pods find a place.")];
  return [
    h("h2", {}, "What would help"),
    ...kinds.map((kind) => kindCard(kind, ontry, open)),
    unseen ? h("p", { class: "soft" }, `${count(unseen, "more kind")} of pods weren’t looked at.`) : null,
  ];
}

function kindCard(kind, ontry, open) {
  const remedies = kind.remedies.map((remedy) =>
    h(
      "li",
      {},
      button("Try", () => ontry(remedy.change), { "aria-label": `try: ${remedy.text}` }),
      h("span", {}, remedy.text, h("span", { class: "soft" }, ` (${outcomeOf(remedy)})`)),
    ),
  );
  return h(
    "section",
    { class: "card", "aria-label": `what helps ${kind.title}` },
    h("h3", {}, `${kind.title}: ${count(kind.pods.length, "pod")}`),
    kind.group
      ? nameButton(kind.group, () => open.group(kind.group))
      : nameButton(kind.pods[0], () => open.pod(kind.pods[0])),
    h("p", { class: "soft" }, kind.message),
    ...kind.notes.map((note) => h("p", {}, note)),
    remedies.length ? h("ul", { class: "plain remedies" }, ...remedies) : h("p", {}, noneText(kind)),
  );
}

function outcomeOf({ placed, pods, displaced }) {
  const loses = displaced ? `, and ${count(displaced, "other pod")} would find no place` : "";
  return `${placed} of ${pods} would run${loses}`;
}

function noneText(kind) {
  if (kind.fits) return "They fit, and wait for other pods.";
  if (!kind.tried) return "No change was tried.";
  return `None of ${count(kind.tried, "change")} that were tried helps.`;
}

/** The answer to whether a node would be emptied. */
export function emptiedText(node, { evicted, places, homeless, blocked, staying }) {
  const rest = staying ? ` ${count(staying, "pod")} of DaemonSets and the like would stay.` : "";
  const verdict =
    !evicted && !blocked.length
      ? `Nothing has to leave ${node}.`
      : homeless.length || blocked.length
        ? `No, ${node} wouldn’t be emptied without loss:`
        : `Yes, ${node} would be emptied: ${count(evicted, "pod")} would go to ${count(places, "other node")}.`;
  return [
    h("p", {}, h("strong", {}, verdict + rest)),
    h(
      "ul",
      { class: "plain" },
      ...[...blocked, ...homeless].map(([pod, why]) => h("li", {}, `${pod}: ${why}`)),
    ),
  ];
}
