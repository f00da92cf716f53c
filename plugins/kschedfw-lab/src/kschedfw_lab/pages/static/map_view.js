// The map with its controls, and the same nodes as a table.

import { button, choice, ends, fill, h, labelled } from "./dom.js";
import { amount, percent } from "./format.js";
import { NodeMap } from "./node_map.js";
import { WindowedTable, fitting } from "./windowed.js";

const LEGEND = [
  ["held", "requested"],
  ["new", "by pods placed now"],
  ["unready", "not ready"],
  ["pressure", "short of memory, disk, PIDs or network"],
  ["shut", "cordoned"],
  ["tainted", "tainted"],
  ["over", "more than allocatable"],
];
const MARKS = [
  ["gains", "gains pods"],
  ["loses", "loses pods"],
];

/**
 * `settings` ({group, resource, tile}) may be shared by several views; `onsettings` is called when they change. A tile of null
 * is as large as lets the map fill its place. `onchosen(settings)` is called when the user has changed them.
 */
export class MapView {
  constructor({ label, settings, onnode, onpod = null, onsettings = null, onchosen = null, hasMarks = false }) {
    this.settings = settings;
    this.onsettings = onsettings ?? (() => this._settingsChanged());
    this.onchosen = onchosen ?? (() => {});
    this.onnode = onnode;
    this.map = new NodeMap({ label, onnode: (row) => onnode(row), onpod });
    this._order = [];
    this._isTable = false;
    this.table = new WindowedTable({
      label: `${label}, as a table`,
      columns: [],
      height: "min(64vh, 46rem)",
      rowOf: (index) => this._cells(this._order[index]),
      onactive: (index) => onnode(this._order[index]),
      onsort: (index) => this._sort(index),
    });
    this._sorted = { index: 0, descending: false };
    this._bar = h("div", { class: "bar" });
    this._total = h("p", { class: "soft" });
    const legend = [...LEGEND, ...(hasMarks ? MARKS : [])];
    this._legend = h(
      "ul",
      { class: "legend" },
      ...legend.map(([name, text]) => h("li", {}, h("i", { class: name }), text)),
    );
    this._place = h("div", {}, this.map.element);
    this.element = h("div", {}, this._bar, this._total, this._place, this._legend);
  }

  /** Show a cluster, and offer its labels and resources. */
  show(cluster) {
    const isNew = this.cluster?.map !== cluster.map;
    this.cluster = cluster;
    if (!cluster.resources.includes(this.settings.resource)) this.settings.resource = cluster.resources[0];
    if (this.settings.group && !(this.settings.group in cluster.map.nodes.labels)) this.settings.group = "";
    if (isNew) this._controls();
    this._settingsChanged();
  }

  /** Group and fill as an address says; what the cluster doesn't have is left as it is. */
  choose({ group, resource }) {
    const { settings, cluster } = this;
    if (group === "" || group in cluster.map.nodes.labels) settings.group = group;
    if (cluster.resources.includes(resource)) settings.resource = resource;
    this.settingsChanged();
  }

  /** Show again, after pods were moved. */
  refresh() {
    this.map.refresh();
    this._sum();
    if (this._isTable) this.table.show(this._order.length);
  }

  /** Show with other settings. */
  _settingsChanged() {
    this.map.show(this.cluster, this.settings);
    this._sum();
    this._listNodes();
  }

  settingsChanged() {
    this._controls();
    this._settingsChanged();
  }

  _sum() {
    const { resource } = this.settings;
    const { requested, offered } = this.cluster.total(resource);
    this._total.textContent =
      `${this.cluster.nodeCount.toLocaleString("en")} nodes; ${resource}: ` +
      `${amount(resource, requested)} of ${amount(resource, offered)} requested (${percent(requested / offered)})`;
  }

  _controls() {
    const { settings } = this;
    const labels = Object.keys(this.cluster.map.nodes.labels);
    const set = (name, value) => {
      settings[name] = value;
      this.onsettings();
      this.onchosen(settings);
    };
    fill(
      this._bar,
      labelled(
        "Group by",
        choice([["", "nothing"], ...labels.map((each) => [each, each])], settings.group, (value) =>
          set("group", value),
        ),
      ),
      labelled(
        "Fill by",
        choice(
          this.cluster.resources.map((each) => [each, each]),
          settings.resource,
          (value) => set("resource", value),
        ),
      ),
      labelled(
        "Size",
        h("input", {
          type: "range",
          min: 8,
          max: 160,
          step: 2,
          value: this.map.tile,
          oninput: (event) => set("tile", Number(event.target.value)),
          onchange: () => this._controls(),
        }),
      ),
      settings.tile === null ? null : button("Fit", () => set("tile", null)),
      button(this._isTable ? "As a map" : "As a table", () => this._toggle()),
    );
  }

  _toggle() {
    this._isTable = !this._isTable;
    fill(this._place, this._isTable ? this.table.element : this.map.element);
    this._legend.hidden = this._isTable;
    this._controls();
    this._bar.querySelector("button").focus();
    this._listNodes();
  }

  _columns() {
    const { resource, group } = this.settings;
    return [
      { title: "node", width: "9rem", grows: true, value: (row) => this.cluster.nodeName(row), text: ends },
      ...(group ? [{ title: group, value: (row) => this._label(row) }] : []),
      {
        title: `${resource} requested`,
        number: true,
        value: (row) => this.cluster.requested(resource, row),
        text: (value) => amount(resource, value),
      },
      {
        title: "allocatable",
        number: true,
        value: (row) => this.cluster.allocatable(resource, row),
        text: (value) => amount(resource, value),
      },
      {
        title: "share",
        number: true,
        // NaN has no place in an order.
        value: (row) => this.cluster.share(resource, row) || 0,
        text: percent,
      },
      { title: "pods", number: true, value: (row) => this.cluster.podsOn(row).length },
      { title: "state", value: (row) => this.cluster.states(row).join(", ") },
    ];
  }

  _label(row) {
    const { values, codes } = this.cluster.map.nodes.labels[this.settings.group];
    return values[typeof codes === "number" ? codes : codes[row]] ?? "";
  }

  _cells(row) {
    return this._shown.map((column) => textOf(column, row));
  }

  _listNodes() {
    if (!this._isTable) return;
    const all = Array.from({ length: this.cluster.nodeCount }, (_, row) => row);
    this._shown = this._columns().map((column) => ({
      ...column,
      width: column.width ?? fitting(column.title, all.map((row) => textOf(column, row))),
    }));
    const column = this._shown[Math.min(this._sorted.index, this._shown.length - 1)];
    const keys = all.map((row) => column.value(row));
    this._order = all.sort((one, other) => compared(keys[one], keys[other]) || one - other);
    if (this._sorted.descending) this._order.reverse();
    this.table.setColumns(this._shown, this._sorted.index, this._sorted.descending);
    this.table.show(this._order.length);
  }

  _sort(index) {
    const same = this._sorted.index === index;
    this._sorted = {
      index,
      descending: same ? !this._sorted.descending : Boolean(this._shown[index].number),
    };
    this._listNodes();
  }
}

function textOf(column, row) {
  const value = column.value(row);
  return column.text ? column.text(value) : String(value);
}

/** The order of two numbers, or of two texts by their numbers. */
export function compared(one, other) {
  if (typeof one === "number") return one - other;
  return one.localeCompare(other, "en", { numeric: true });
}
