// Where the tiles of the map are: groups of nodes below each other, each with a heading and rows of tiles.

const GAP = 3;
const HEADING = 24;
const MARGIN = 8;

/** The places of all tiles for a width in pixels; with `fills`, the gaps between them grow until each row is as wide. */
export class MapLayout {
  constructor(groups, tile, width, fills = false) {
    this.tile = tile;
    this.step = tile + GAP;
    this.perRow = Math.max(1, Math.floor((width - 2 * MARGIN + GAP) / this.step));
    this.across = fills && this.perRow > 1 ? (width - 2 * MARGIN - tile) / (this.perRow - 1) : this.step;
    this.headings = [];
    // A band is one row of tiles: {y, rows, first}, with the place of its first tile among all.
    this.bands = [];
    // The rows of nodes in the order of the tiles.
    this.order = [];
    let y = MARGIN;
    for (const [title, rows] of groups) {
      if (groups.length > 1) {
        this.headings.push({ title, rows, y });
        y += HEADING;
      }
      for (let start = 0; start < rows.length; start += this.perRow) {
        this.bands.push({
          y,
          rows: rows.slice(start, start + this.perRow),
          first: this.order.length + start,
        });
        y += this.step;
      }
      this.order.push(...rows);
      y += GAP;
    }
    this.height = y + MARGIN;
    this._places = null;
  }

  x(place) {
    return MARGIN + Math.round(place * this.across); // on whole pixels, so that lines are sharp
  }

  /** The bands that are in sight between two heights. */
  *between(top, bottom) {
    let low = 0;
    let high = this.bands.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.bands[middle].y + this.tile < top) low = middle + 1;
      else high = middle;
    }
    for (let index = low; index < this.bands.length && this.bands[index].y <= bottom; index += 1)
      yield this.bands[index];
  }

  /** The tile at a point: {row, x, y}; null between tiles. */
  hit(x, y) {
    for (const band of this.between(y, y)) {
      const place = Math.floor((x - MARGIN) / this.across);
      const inside = place >= 0 && place < band.rows.length && x - this.x(place) < this.tile;
      if (inside && y >= band.y && y < band.y + this.tile)
        return { row: band.rows[place], x: this.x(place), y: band.y };
    }
    return null;
  }

  /** The tile of a node: {band, place}. */
  find(row) {
    this._places ??= new Map(
      this.bands.flatMap((band, index) => band.rows.map((each, place) => [each, { index, place }])),
    );
    return this._places.get(row) ?? null;
  }

  /** The node beside, above or below another one. */
  neighbour(row, key) {
    const here = this.find(row);
    if (!here) return this.order[0] ?? null;
    const at = this.bands[here.index].first + here.place;
    const clamp = (index) => this.order[Math.max(0, Math.min(this.order.length - 1, index))];
    if (key === "ArrowRight") return clamp(at + 1);
    if (key === "ArrowLeft") return clamp(at - 1);
    if (key === "Home") return clamp(0);
    if (key === "End") return clamp(this.order.length - 1);
    const band = this.bands[here.index + (key === "ArrowDown" ? 1 : -1)];
    return band ? band.rows[Math.min(here.place, band.rows.length - 1)] : row;
  }
}
