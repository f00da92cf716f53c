// Tables of any length, of which only the rows in sight are in the document.

import { breakable, fill, h } from "./dom.js";

// So many rows above and below those in sight are in the document, too.
const SPARE = 6;

// A column that fits its texts is at most so many letters wide.
const MOST_LETTERS = 32;

let tables = 0;

/** The width of a column, in CSS, in which its title and all of its texts fit; long texts are cut. */
export function fitting(title, texts) {
  let most = digits(title);
  for (const text of texts) most = Math.max(most, digits(text));
  return `calc(${Math.min(MOST_LETTERS, most)}ch + 1.25rem)`;
}

/** How many digits are as wide as a text at most: of the letters in amounts and titles, only these are wider than a digit. */
function digits(text) {
  return text.length + 0.6 * (text.match(/[mwMWG%]/g) ?? []).length;
}

/**
 * A table. `columns` are {title, width (CSS), grows, number, sort}; `rowOf(index)` gives the cells of a row, texts or elements;
 * `onactive(index)` is called when a row is chosen, by a click or with the arrow keys.
 */
export class WindowedTable {
  constructor({ label, columns, rowOf, height = "20rem", rowHeight = 28, onactive = null, onsort = null }) {
    this.rowOf = rowOf;
    this.rowHeight = rowHeight;
    this.onactive = onactive;
    this.onsort = onsort;
    this.active = -1;
    this.length = 0;
    this._drawn = new Map();
    this._id = `table-${(tables += 1)}`;
    this._head = h("div", { class: "head", role: "row", "aria-rowindex": 1 });
    this._rows = h("div", { class: "rows", role: "rowgroup" });
    this.element = h(
      "div",
      {
        class: "window",
        role: onactive ? "grid" : "table",
        "aria-label": label,
        tabindex: 0,
        onscroll: () => this._draw(),
        onkeydown: (event) => this._key(event),
      },
      h("div", { role: "rowgroup", class: "head-group" }, this._head),
      this._rows,
    );
    this.element.style.height = height;
    new ResizeObserver(() => this._draw()).observe(this.element);
    this.setColumns(columns);
  }

  /** Give it other columns; `show` fills them. */
  setColumns(columns, sorted = null, descending = false) {
    this.columns = columns;
    this._template = columns.map(({ width, grows }) => (grows ? `minmax(${width}, 1fr)` : width)).join(" ");
    this._width = `calc(${columns.map(({ width }) => width).join(" + ")})`;
    this._lay(this._head);
    fill(
      this._head,
      ...columns.map((column, index) => {
        const is = sorted === index;
        const mark = is ? (descending ? " ▼" : " ▲") : "";
        const content =
          this.onsort && column.sort !== false
            ? h(
                "button",
                { type: "button", title: column.hint ?? column.title, onclick: () => this.onsort(index) },
                ...breakable(`${column.title}${mark}`),
              )
            : column.title;
        return h(
          "div",
          {
            role: "columnheader",
            class: column.number ? "number" : null,
            "aria-sort": is ? (descending ? "descending" : "ascending") : null,
          },
          content,
        );
      }),
    );
    this.element.setAttribute("aria-colcount", columns.length);
    this._forget();
  }

  /** Show this many rows, anew. */
  show(length) {
    this.length = length;
    this.active = Math.min(this.active, length - 1);
    this._rows.style.height = `${length * this.rowHeight}px`;
    this.element.setAttribute("aria-rowcount", length + 1);
    this._forget();
    this._draw();
  }

  activate(index, tell = true) {
    this.active = index;
    const top = index * this.rowHeight;
    const head = this._head.offsetHeight;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    const bottom = top + this.rowHeight + head - this.element.clientHeight;
    if (bottom > this.element.scrollTop) this.element.scrollTop = bottom;
    this._draw();
    for (const [each, row] of this._drawn) row.classList.toggle("active", each === index);
    const row = this._drawn.get(index);
    if (row) {
      row.id = `${this._id}-${index}`;
      this.element.setAttribute("aria-activedescendant", row.id);
    }
    if (tell) this.onactive?.(index);
  }

  _key(event) {
    if (!this.onactive || event.target !== this.element) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.rowHeight) - 2);
    const step = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -this.length,
      End: this.length,
    }[event.key];
    if (step === undefined || !this.length) return;
    event.preventDefault();
    this.activate(Math.max(0, Math.min(this.length - 1, this.active + step)));
  }

  _lay(row) {
    row.style.gridTemplateColumns = this._template;
    row.style.minWidth = this._width;
  }

  _forget() {
    this._drawn.clear();
    this._rows.replaceChildren();
  }

  _draw() {
    const first = Math.max(0, Math.floor(this.element.scrollTop / this.rowHeight) - SPARE);
    // Before it is in the document, the element has no height.
    const seen = Math.ceil((this.element.clientHeight || 600) / this.rowHeight) + 2 * SPARE;
    const last = Math.min(this.length, first + seen);
    for (const [index, row] of this._drawn) {
      if (index < first || index >= last) {
        row.remove();
        this._drawn.delete(index);
      }
    }
    for (let index = first; index < last; index += 1) {
      if (!this._drawn.has(index)) this._rows.append(this._row(index));
    }
  }

  _row(index) {
    const cellRole = this.onactive ? "gridcell" : "cell";
    const cells = this.rowOf(index).map((content, place) => {
      const column = this.columns[place];
      return h(
        "div",
        {
          role: place ? cellRole : "rowheader",
          class: column.number ? "number" : null,
          title: typeof content === "string" ? content : null,
        },
        content,
      );
    });
    const row = h(
      "div",
      {
        role: "row",
        class: index === this.active ? "row active" : "row",
        // Rows count from 1, and the head is the first.
        "aria-rowindex": index + 2,
        onclick: this.onactive ? () => this.activate(index) : null,
      },
      ...cells,
    );
    row.style.top = `${index * this.rowHeight}px`;
    row.style.height = `${this.rowHeight}px`;
    this._lay(row);
    this._drawn.set(index, row);
    return row;
  }
}
