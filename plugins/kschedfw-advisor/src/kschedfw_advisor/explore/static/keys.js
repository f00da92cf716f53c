// The keys of the page: a dialog that `?` opens.

import { button, h } from "./dom.js";

const KEYS = [
  ["/", "find a node, a group or a pod"],
  ["f", "filter what waits"],
  ["1  2  3", "Pending, Node, What if"],
  ["← ↑ → ↓", "on the map: from node to node; in a table: from row to row"],
  ["Enter", "on the map: open the node"],
  ["Esc", "close a decision, a list or this"],
  ["?", "these keys"],
];

/** The button that shows the keys. `actions` are functions by key, for keys that do something on the whole page. */
export function keyHelp(actions) {
  const dialog = h(
    "dialog",
    { class: "key-help", "aria-label": "keys" },
    h("h2", {}, "Keys"),
    h("dl", {}, ...KEYS.flatMap(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)])),
    h("div", { class: "bar" }, button("Close", () => dialog.close())),
  );
  addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input:not([type=checkbox]), textarea, select, dialog");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = event.key === "?" ? () => dialog.showModal() : actions[event.key];
    if (act === undefined) return;
    event.preventDefault();
    act();
  });
  return h(
    "div",
    {},
    button("?", () => dialog.showModal(), { "aria-label": "keys", title: "keys ( ? )" }),
    dialog,
  );
}
