// What can be done with one node: each action is a change that is tried.

import { button, fill, h, labelled } from "./dom.js";
import { count } from "./format.js";

/** The buttons for a node. `act(change)` tries a change; `ask()` answers whether the node would be emptied, or null. */
export function nodeActions(node, isCordoned, act, ask) {
  const copies = h("input", { type: "number", min: 1, max: 1000, value: 1 });
  const answer = h("div", { role: "status" });
  const change = (text, kind) => button(text, () => act({ kind, nodes: [node] }));
  return h(
    "section",
    { "aria-label": "actions" },
    h(
      "div",
      { class: "bar" },
      isCordoned ? change("Uncordon", "uncordon") : change("Cordon", "cordon"),
      change("Drain", "drain"),
      change("Remove", "delete-nodes"),
      change("Take its pods off", "reschedule"),
      button("Would it be emptied?", async () => {
        fill(answer, h("p", { class: "soft" }, "…"));
        const found = await ask();
        fill(answer, ...(found === null ? [] : emptiedText(node, found)));
      }),
    ),
    answer,
    h(
      "div",
      { class: "bar" },
      labelled("Add", copies),
      button("more like it", () =>
        act({ kind: "add-nodes", like: node, count: Math.max(1, Number(copies.value) || 1) }),
      ),
    ),
  );
}

/** The answer to whether a node would be emptied. */
function emptiedText(node, { evicted, places, homeless, blocked, staying }) {
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
