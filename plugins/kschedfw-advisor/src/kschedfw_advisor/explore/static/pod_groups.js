// Groups of pods that are scheduled together: a row each, whatever the number of members.

import { nameButton } from "./cards.js";
import { h } from "./dom.js";
import { count } from "./format.js";
import { WindowedTable, fitting } from "./windowed.js";

const MOST_ROWS = 9; // in sight at a time

/** The groups; `onchosen(name)` opens one. */
export function podGroupList(groups, onchosen) {
  if (!groups.length) return null;
  const texts = (text) => groups.map(text);
  const columns = [
    { title: "group", width: "min(9rem, 32vw)", grows: true },
    { title: "state", width: "5.5rem" },
    { title: "placed", width: fitting("placed", texts(placedText)), number: true },
    { title: "at least", width: fitting("at least", texts(leastText)), number: true },
    { title: "why", width: "14rem", grows: true },
  ];
  const table = new WindowedTable({
    label: "groups of pods",
    rowHeight: 27,
    height: `${Math.min(MOST_ROWS, groups.length + 1) * 27 + 18}px`,
    columns,
    rowOf: (index) => {
      const group = groups[index];
      const name = nameButton(group.name, () => onchosen(group.name));
      return [name, group.state, placedText(group), leastText(group), group.why];
    },
  });
  table.show(groups.length);
  return h("div", {}, h("h2", {}, count(groups.length, "group")), table.element);
}

/** How many of the members have a node. */
function placedText({ placed, pods }) {
  return `${placed} of ${pods.length}`;
}

function leastText({ least }) {
  return least === null ? "–" : String(least);
}
