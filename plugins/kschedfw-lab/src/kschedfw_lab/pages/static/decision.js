// A decision: the matrix, and the text of `kschedfw explain`.

import { h } from "./dom.js";
import { Matrix } from "./matrix.js";

/** The whole decision; `onnode(name)` shows a node on the map. */
export function decisionView(matrix, onnode = null) {
  return [
    h("p", {}, h("strong", {}, matrix.headline)),
    matrix.nodes.length ? new Matrix(matrix, onnode).element : null,
    h(
      "details",
      { open: true },
      h("summary", {}, "As kschedfw explain tells it"),
      h("div", { class: "text" }, ...matrix.text.flatMap(section)),
    ),
  ];
}

/** A section of the text: a table, or sentences below a title. */
export function section({ title, headers, numeric, rows, lines }) {
  const kind = (place) => (numeric.includes(place) ? "number" : null);
  const table = headers.length
    ? h(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": title },
        h(
          "table",
          {},
          h("caption", {}, title),
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ...headers.map((header, place) => h("th", { scope: "col", class: kind(place) }, header)),
            ),
          ),
          h(
            "tbody",
            {},
            ...rows.map((row) =>
              h("tr", {}, ...row.map((cell, place) => h("td", { class: kind(place) }, cell))),
            ),
          ),
        ),
      )
    : title
      ? h("h3", {}, title)
      : null;
  return [table, ...lines.map((line) => h("p", {}, line))];
}
