// The map of the nodes on a canvas: a tile is a node, filled by what its pods request.

import { announce, h } from "./dom.js";
import { amount, count, percent } from "./format.js";
import { MapLayout } from "./map_layout.js";
import { caption, coloursOf, corner, cross, frame, hatch, outline, triangle } from "./map_marks.js";

const KEYS = ["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown", "Home", "End"];
// The smallest and the largest tile of a map that fills its place.
const SMALLEST = 12;
const LARGEST = 160;
// On tiles of fewer pixels pods aren't told apart.
const SLICES_FROM = 22;
// On tiles of more pixels nodes have their names.
const NAMES_FROM = 64;

/** `onnode(row)` is called when a node is chosen, `onpod(pod)` when one of its pods is clicked twice. */
export class NodeMap {
  constructor({ label, onnode, onpod = null }) {
    this.onnode = onnode;
    this.onpod = onpod;
    this.cluster = null;
    this.settings = { group: "", resource: "cpu", tile: 36 };
    this.gains = new Map();
    this.losses = new Map();
    this.active = -1;
    this._frame = 0;
    this._canvas = h("canvas", {
      tabindex: 0,
      role: "application",
      "aria-roledescription": "map of nodes",
      "aria-label": `${label}. The arrow keys go from node to node, Enter opens one.`,
    });
    this._room = h("div", { class: "room" });
    this._tip = h("div", { class: "tip", hidden: true });
    this.element = h("div", { class: "map" }, this._room, this._canvas, this._tip);
    this.element.addEventListener("scroll", () => this._later());
    this._canvas.addEventListener("mousemove", (event) => this._hover(event));
    this._canvas.addEventListener("mouseleave", () => (this._tip.hidden = true));
    this._canvas.addEventListener("click", (event) => this._click(event));
    this._canvas.addEventListener("keydown", (event) => this._key(event));
    this._canvas.addEventListener("focus", () => this._later());
    this._canvas.addEventListener("blur", () => this._later());
    new ResizeObserver(() => this.place()).observe(this.element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this._later());
  }

  /** The size of the tiles in pixels. */
  get tile() {
    return this._layout?.tile ?? this.settings.tile ?? 36;
  }

  /** Show a cluster; what isn't given stays as it was. */
  show(cluster, settings = {}) {
    this.cluster = cluster;
    Object.assign(this.settings, settings);
    if (this.active >= cluster.nodeCount) this.active = -1;
    this.place();
  }

  /** Mark the nodes that pods come to and go from: maps from rows to numbers of pods. */
  mark(gains, losses) {
    this.gains = gains;
    this.losses = losses;
    this._later();
  }

  /** Draw again, after pods were moved. */
  refresh() {
    this._later();
  }

  select(row) {
    this.active = row;
    const band = this._layout?.find(row);
    if (band) {
      const { y } = this._layout.bands[band.index];
      if (y < this.element.scrollTop) this.element.scrollTop = y - 8;
      const bottom = y + this._layout.tile + 8 - this.element.clientHeight;
      if (bottom > this.element.scrollTop) this.element.scrollTop = bottom;
    }
    this._later();
  }

  /** What there is to say of a node in one line. */
  told(row) {
    const {
      cluster,
      settings: { resource },
    } = this;
    const parts = [cluster.nodeName(row)];
    parts.push(
      `${resource}: ${amount(resource, cluster.requested(resource, row))} of ` +
        `${amount(resource, cluster.allocatable(resource, row))} requested (${percent(cluster.share(resource, row))})`,
    );
    parts.push(count(cluster.podsOn(row).length, "pod"));
    const states = cluster.states(row);
    if (states.length) parts.push(states.join(", "));
    if (this.gains.get(row)) parts.push(`gains ${count(this.gains.get(row), "pod")}`);
    if (this.losses.get(row)) parts.push(`loses ${count(this.losses.get(row), "pod")}`);
    return parts.join("\n");
  }

  /** Lay the tiles out anew, after the room for them has changed. */
  place() {
    if (!this.cluster || !this.element.clientWidth) return;
    const { group, tile } = this.settings;
    const groups = this.cluster.groups(group);
    const width = this.element.clientWidth;
    this._layout =
      tile === null
        ? fittingLayout(groups, width, this._most())
        : new MapLayout(groups, tile, width);
    this._room.style.height = `${this._layout.height}px`;
    // The style sheet limits it.
    this.element.style.height = `${this._layout.height + 2}px`;
    this._later();
  }

  /** The height in pixels up to which the map grows; the style sheet says it. */
  _most() {
    const most = parseFloat(getComputedStyle(this.element).maxHeight);
    return Number.isFinite(most) ? most : innerHeight;
  }

  _later() {
    // However many changes there are before the next frame, they are drawn once.
    if (!this._frame) this._frame = requestAnimationFrame(() => this._draw());
  }

  _draw() {
    this._frame = 0;
    if (!this._layout || !this.cluster) return;
    const width = this.element.clientWidth;
    const height = Math.min(this.element.clientHeight, Math.max(this._layout.height, 60));
    const scale = devicePixelRatio;
    // Setting a canvas's size clears it and makes it anew, so only when it differs.
    if (
      this._canvas.width !== Math.round(width * scale) ||
      this._canvas.height !== Math.round(height * scale)
    ) {
      this._canvas.width = Math.round(width * scale);
      this._canvas.height = Math.round(height * scale);
      this._canvas.style.width = `${width}px`;
      this._canvas.style.height = `${height}px`;
    }
    const context = this._canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const top = this.element.scrollTop;
    context.translate(0, -top);
    this._colours = coloursOf(this.element);
    context.font = `600 13px ${getComputedStyle(this.element).fontFamily}`;
    context.textBaseline = "middle";
    context.fillStyle = this._colours.text;
    for (const heading of this._layout.headings) {
      if (heading.y < top - 30 || heading.y > top + height) continue;
      context.fillText(this._heading(heading), 8, heading.y + 11, width - 16);
    }
    context.font = `11px ${getComputedStyle(this.element).fontFamily}`;
    for (const band of this._layout.between(top, top + height)) {
      band.rows.forEach((row, place) => this._tile(context, row, this._layout.x(place), band.y));
    }
  }

  /** A group's name with its figures. */
  _heading({ title, rows }) {
    const {
      cluster,
      settings: { resource },
    } = this;
    const sum = (amountOf) => rows.reduce((total, row) => total + amountOf.call(cluster, resource, row), 0);
    const offered = sum(cluster.allocatable);
    const share = percent(sum(cluster.requested) / (offered || NaN));
    return `${title}   ${count(rows.length, "node")} · ${resource} ${share} of ${amount(resource, offered)}`;
  }

  _tile(context, row, x, y) {
    const {
      tile,
      cluster,
      settings: { resource },
    } = this;
    const colours = this._colours;
    context.fillStyle = colours.raised;
    context.fillRect(x, y, tile, tile);
    const offered = cluster.allocatable(resource, row);
    if (offered > 0) {
      for (const slice of this._slices(row)) {
        context.fillStyle = slice.isNew ? colours.fresh : colours.held;
        context.globalAlpha = slice.isOdd ? 0.72 : 0.95;
        context.fillRect(x, y + slice.top, tile, slice.height);
      }
      context.globalAlpha = 1;
    }
    if (cluster.cordoned.has(row)) hatch(context, x, y, tile, colours);
    if (cluster.tainted.has(row)) corner(context, x, y, tile, colours);
    if (cluster.pressure(row) !== null) triangle(context, x, y, tile, colours);
    if (cluster.unready.has(row)) cross(context, x, y, tile, colours);
    if (tile >= NAMES_FROM) caption(context, x, y, tile, cluster.nodeName(row), colours);
    outline(context, x, y, tile, colours.line, 1, []);
    if (offered > 0 && cluster.requested(resource, row) > offered) frame(context, x, y, tile, colours.over);
    if (this.losses.get(row)) outline(context, x, y, tile, colours.loses, 2, [4, 3]);
    if (this.gains.get(row)) outline(context, x, y, tile, colours.gains, 3, []);
    if (row === this.active) {
      outline(
        context,
        x - 2,
        y - 2,
        tile + 4,
        colours.text,
        document.activeElement === this._canvas ? 3 : 2,
        [],
      );
    }
  }

  /** The pods of a node from below: {pod, top, height, isNew, isOdd}, in pixels of the tile. */
  *_slices(row) {
    const {
      tile,
      cluster,
      settings: { resource },
    } = this;
    const perUnit = tile / cluster.allocatable(resource, row);
    if (tile < SLICES_FROM) {
      const height = Math.min(tile, perUnit * cluster.requested(resource, row));
      yield { pod: -1, top: tile - height, height, isNew: false, isOdd: false };
      return;
    }
    let used = 0;
    let isOdd = false;
    for (const pod of cluster.podsOn(row)) {
      const height = Math.min(perUnit * cluster.request(resource, pod), tile - used);
      if (height <= 0) continue;
      used += height;
      yield { pod, top: tile - used, height, isNew: cluster.fresh.has(pod), isOdd };
      isOdd = !isOdd;
    }
  }

  _at(event) {
    if (!this._layout) return null;
    const box = this._canvas.getBoundingClientRect();
    const found = this._layout.hit(
      event.clientX - box.left,
      event.clientY - box.top + this.element.scrollTop,
    );
    if (!found) return null;
    const inside = event.clientY - box.top + this.element.scrollTop - found.y;
    const slices =
      this.cluster.allocatable(this.settings.resource, found.row) > 0 ? [...this._slices(found.row)] : [];
    const slice = slices.find((each) => inside >= each.top && inside < each.top + each.height);
    return { row: found.row, pod: slice && slice.pod >= 0 ? slice.pod : null };
  }

  _hover(event) {
    const found = this._at(event);
    this._tip.hidden = !found;
    this._canvas.style.cursor = found ? "pointer" : "";
    if (!found) return;
    const { resource } = this.settings;
    const lines = [this.told(found.row)];
    if (found.pod !== null) {
      const state = this.cluster.fresh.has(found.pod) ? ", placed now" : "";
      if (found.row === this.active && this.onpod) lines.push("click: the decision on this pod");
      lines.unshift(
        `${this.cluster.podName(found.pod)} (${resource} ` +
          `${amount(resource, this.cluster.request(resource, found.pod))}${state})`,
      );
    }
    this._tip.textContent = lines.join("\n");
    const room = innerWidth - this._tip.offsetWidth - 8;
    this._tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, room))}px`;
    this._tip.style.top = `${Math.min(event.clientY + 14, innerHeight - this._tip.offsetHeight - 8)}px`;
  }

  _click(event) {
    const found = this._at(event);
    if (!found) return;
    const again = found.row === this.active;
    this.active = found.row;
    this._later();
    this.onnode(found.row);
    if (again && found.pod !== null) this.onpod?.(found.pod);
  }

  _key(event) {
    if (!this._layout || !this.cluster.nodeCount) return;
    if (KEYS.includes(event.key)) {
      event.preventDefault();
      this.select(this._layout.neighbour(this.active, event.key));
      announce(this.told(this.active).replaceAll("\n", ", "));
    } else if ((event.key === "Enter" || event.key === " ") && this.active >= 0) {
      event.preventDefault();
      this.onnode(this.active);
    }
  }
}

/** The layout with the largest tiles that fit a height; where even the smallest don't, one scrolls. */
function fittingLayout(groups, width, height) {
  let low = SMALLEST;
  let high = LARGEST;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (new MapLayout(groups, middle, width).height + 2 <= height) low = middle;
    else high = middle - 1;
  }
  return new MapLayout(groups, low, width, true);
}
