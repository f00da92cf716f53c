// A decision as a matrix: nodes × plugins.

import { NONE, at } from "./columns.js";
import { choice, ends, fill, h, labelled } from "./dom.js";
import { count } from "./format.js";
import { compared } from "./map_view.js";
import { WindowedTable } from "./windowed.js";

const SHOWN = [
  ["weighted", "weighted"],
  ["normalized", "normalized"],
  ["raw", "raw"],
  ["chain", "raw → normalized × weight"],
];
// Columns before those of the plugins: node, why not, verdict, total.
const FIXED = 4;
const TOTAL = 3;
const MOST_REASONS = 8; // above the matrix

/** The matrix of one decision, with its filters, and the details of one node below it. */
export class Matrix {
  constructor(matrix, onnode = null) {
    this.matrix = matrix;
    this.onnode = onnode;
    this.places = new Map(matrix.feasible.map((row, place) => [row, place]));
    this.closest = new Map(matrix.closest.map((row, place) => [row, place]));
    this.tied = new Set(matrix.tied);
    this.shown = "weighted";
    this.all = false;
    this.text = "";
    this.kind = "";
    this.sorted = { index: TOTAL, descending: true };
    this.details = h("div", { class: "text", "aria-live": "polite" });
    this.found = h("p", { class: "soft", role: "status" });
    this.table = new WindowedTable({
      label: `decision on ${matrix.pod}: nodes and plugins`,
      columns: [],
      height: `${Math.min(16, matrix.nodes.length + 1) * 28 + 20}px`,
      rowOf: (index) => this._cells(this.rows[index]),
      onactive: (index) => this._open(this.rows[index]),
      onsort: (index) => this._sort(index),
    });
    this._find = h("input", {
      type: "search",
      placeholder: "node, reason or plugin",
      oninput: (event) => this._search(event.target.value),
    });
    this.element = h("div", {}, this._reasons(), this._controls(), this.found, this.table.element, this.details);
    this._list();
  }

  _controls() {
    const { kinds } = this.matrix;
    const change = (name) => (value) => {
      this[name] = value;
      this._list();
    };
    return h(
      "div",
      { class: "bar" },
      labelled("Find", this._find),
      labelled("Verdict", choice([["", "any"], ...kinds.map((kind) => [kind, kind])], "", change("kind"))),
      labelled("Scores", choice(SHOWN, this.shown, change("shown"))),
      labelled(
        "All plugins",
        h("input", { type: "checkbox", onchange: (event) => change("all")(event.target.checked) }),
      ),
    );
  }

  _search(text) {
    this.text = text.toLowerCase();
    this._list();
  }

  /** The reasons why nodes are refused, those of the most nodes first; each finds its nodes. Null if there are none. */
  _reasons() {
    const counts = new Map();
    this.matrix.nodes.forEach((_, row) => {
      const refusal = this.refusal(row);
      if (refusal) counts.set(refusal.message, (counts.get(refusal.message) ?? 0) + 1);
    });
    if (!counts.size) return null;
    const reasons = [...counts].sort(([, one], [, other]) => other - one);
    const rest = reasons.length - MOST_REASONS;
    return h(
      "ul",
      { class: "reasons", "aria-label": "why nodes are refused" },
      ...reasons.slice(0, MOST_REASONS).map(([message, number]) =>
        h(
          "li",
          {},
          h(
            "button",
            {
              type: "button",
              onclick: () => {
                this._find.value = this.text === message.toLowerCase() ? "" : message;
                this._search(this._find.value);
              },
            },
            h("strong", {}, count(number, "node")),
            // "3 nodes node(s) were unschedulable" says it twice.
            ` ${message.replace(/^node\(s\) /, "")}`,
          ),
        ),
      ),
      rest > 0 ? h("li", { class: "soft" }, `and ${count(rest, "other reason")}`) : null,
    );
  }

  verdict(row) {
    return this.matrix.kinds[at(this.matrix.verdicts, row)];
  }

  total(row) {
    const place = this.places.get(row);
    return place === undefined ? null : (this.matrix.totals[place] ?? null);
  }

  /** The refusal that decided; null if there was none. */
  refusal(row) {
    const code = at(this.matrix.refusals_of, row);
    return code === NONE ? null : this.matrix.refusals[code];
  }

  /** The scores of a plugin: {raw, normalized, weighted}; null where it gave none. */
  score(plugin, row) {
    const place = this.places.get(row);
    if (plugin.raw === null || place === undefined) return null;
    const normalized = at(plugin.normalized, place);
    return { raw: at(plugin.raw, place), normalized, weighted: normalized * plugin.weight };
  }

  /** What the plugin has against the node; null if nothing. */
  against(plugin, row) {
    const code = at(plugin.refusals, row);
    return code === NONE ? null : this.matrix.refusals[code];
  }

  _plugins() {
    return this.matrix.plugins.filter((plugin) => this.all || isTelling(plugin));
  }

  _list() {
    const { matrix } = this;
    this.plugins = this._plugins();
    this._columns = [
      { title: "node", width: "min(13rem, 40vw)" },
      { title: "why not", width: "min(22rem, 60vw)", grows: true },
      { title: "verdict", width: "8.5rem" },
      { title: "total", width: "5rem", number: true },
      ...this.plugins.map((plugin) => ({
        title: plugin.name,
        number: true,
        width: this.shown === "chain" ? "13rem" : "9.5rem",
        hint: `${plugin.name}${plugin.weight ? `, weight ${plugin.weight}` : ""}${plugin.says ? `; ${plugin.says}` : ""}`,
      })),
    ];
    if (this.sorted.index >= this._columns.length) this.sorted = { index: TOTAL, descending: true };
    const all = matrix.nodes.map((_, row) => row).filter((row) => this._matches(row));
    const keys = new Map(all.map((row) => [row, this._key(row)]));
    const sign = this.sorted.descending ? -1 : 1;
    this.rows = all.sort(
      // For two nodes without a total this is -Infinity less -Infinity, NaN, after which the rank decides as
      // after 0.
      (one, other) => sign * compared(keys.get(one), keys.get(other)) || this._rank(one) - this._rank(other),
    );
    this.table.setColumns(this._columns, this.sorted.index, this.sorted.descending);
    this.table.show(this.rows.length);
    const hidden = matrix.plugins.length - this.plugins.length;
    this.found.textContent =
      `${count(this.rows.length, "node")} of ${matrix.nodes.length.toLocaleString("en")}` +
      (this.tied.size > 1 ? `; ${this.tied.size} have the highest total (=)` : "") +
      (hidden ? `; ${count(hidden, "plugin")} that say the same of all nodes aren’t shown` : "");
  }

  /** The chosen node first, then the feasible ones in the scheduler's order, then those that are closest to feasible. */
  _rank(row) {
    const { length } = this.matrix.nodes;
    if (this.verdict(row) === "chosen") return -1;
    return this.places.get(row) ?? length + (this.closest.get(row) ?? length + row);
  }

  _matches(row) {
    if (this.kind && this.verdict(row) !== this.kind) return false;
    if (!this.text) return true;
    const refusal = this.refusal(row);
    const texts = [this.matrix.nodes[row], this._why(row), ...(refusal ? [refusal.message, refusal.plugin] : [])];
    return texts.some((each) => each.toLowerCase().includes(this.text));
  }

  _key(row) {
    const { index } = this.sorted;
    if (index === 0) return this.matrix.nodes[row];
    if (index === 1) return this._why(row);
    if (index === 2) return this.verdict(row);
    if (index === TOTAL) return this.total(row) ?? -Infinity;
    const plugin = this.plugins[index - FIXED];
    const score = this.score(plugin, row);
    if (score) return score[this.shown === "chain" ? "weighted" : this.shown];
    return this.against(plugin, row) ? -Infinity : -1;
  }

  _sort(index) {
    const same = this.sorted.index === index;
    this.sorted = {
      index,
      descending: same ? !this.sorted.descending : Boolean(this._columns[index].number),
    };
    this._list();
  }

  _cells(row) {
    const total = this.total(row);
    const mark = this.tied.has(row) ? "= " : "";
    const why = this._why(row);
    return [
      ends(this.matrix.nodes[row]),
      why ? h("span", { title: told(this.refusal(row)) }, why) : "",
      this.verdict(row),
      total === null ? "" : `${mark}${total}`,
      ...this.plugins.map((plugin) => this._cell(plugin, row)),
    ];
  }

  /** Why a node was refused: what it has and what was asked, if the plugin says so, else the reason. */
  _why(row) {
    const refusal = this.refusal(row);
    if (!refusal) return "";
    const evidence = this.matrix.plugins.find(({ name }) => name === refusal.plugin)?.evidence[row] ?? [];
    return evidence.length ? evidence.join("; ") : told(refusal);
  }

  _cell(plugin, row) {
    const against = this.against(plugin, row);
    if (against) {
      const decided = this.refusal(row)?.plugin === plugin.name;
      return h(
        "span",
        { class: decided ? "no" : "dim", title: against.message },
        decided ? "✗ refused" : "(✗ would refuse)",
      );
    }
    const score = this.score(plugin, row);
    if (!score) return "";
    return this.shown === "chain" ? chain(score, plugin.weight) : String(score[this.shown]);
  }

  _open(row) {
    const { matrix } = this;
    const scored = matrix.plugins
      .map((plugin) => [plugin, this.score(plugin, row)])
      .filter(([, score]) => score);
    const said = matrix.plugins
      .map((plugin) => [plugin, this.against(plugin, row)])
      .filter(([, status]) => status);
    const decided = this.refusal(row);
    const rest = (this.total(row) ?? 0) - scored.reduce((sum, [, score]) => sum + score.weighted, 0);
    fill(
      this.details,
      h(
        "h3",
        {},
        `${matrix.nodes[row]}: ${this.verdict(row)}${this.tied.has(row) ? ", with the highest total" : ""}`,
      ),
      decided && !decided.plugin ? h("p", {}, decided.message) : null,
      ...said.flatMap(([plugin, status]) => [
        h(
          "p",
          {},
          `${this.refusal(row)?.plugin === plugin.name ? "refused by" : "would also have been refused by"} ` +
            told(status),
        ),
        ...(plugin.evidence[row] ?? []).map((text) => h("p", { class: "dim" }, `  ${text}`)),
      ]),
      scored.length ? scoreTable(scored, rest, this.total(row)) : null,
      this.onnode
        ? h(
            "p",
            {},
            h(
              "button",
              { type: "button", onclick: () => this.onnode(matrix.nodes[row]) },
              "Show it on the map",
            ),
          )
        : null,
    );
  }
}

function isTelling(plugin) {
  const differs = (column) => Array.isArray(column);
  return (plugin.raw !== null && differs(plugin.normalized)) || plugin.refusals !== NONE;
}

/** A refusal in words; that of an extender, or of all nodes together, has no plugin. */
function told({ plugin, message }) {
  return plugin ? `${plugin}: ${message}` : message;
}

function chain(score, weight) {
  return `${score.raw} → ${score.normalized} × ${weight} = ${score.weighted}`;
}

function scoreTable(scored, rest, total) {
  const line = (name, cells) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, name),
      ...cells.map((cell) => h("td", { class: "number" }, String(cell))),
    );
  return h(
    "table",
    {},
    h("caption", {}, "Scores"),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ...["plugin", "raw", "normalized", "weight", "weighted"].map((title, place) =>
          h("th", { scope: "col", class: place ? "number" : null }, title),
        ),
      ),
    ),
    h(
      "tbody",
      {},
      ...scored.map(([plugin, score]) =>
        line(plugin.name, [score.raw, score.normalized, plugin.weight, score.weighted]),
      ),
      rest ? line("extenders", ["", "", "", rest]) : null,
      line("total", ["", "", "", total]),
    ),
  );
}
