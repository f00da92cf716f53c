// The marks on a tile of the map. Each has a shape of its own, so that they are told apart without colours.

/** Lines along the edge, inside of it. */
export function outline(context, x, y, size, colour, width, dashes) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.setLineDash(dashes);
  context.strokeRect(x + width / 2, y + width / 2, size - width, size - width);
  context.setLineDash([]);
}

/** Two lines along the edge: more is requested than there is. */
export function frame(context, x, y, size, colour) {
  outline(context, x, y, size, colour, 2, []);
  outline(context, x + 3, y + 3, size - 6, colour, 1, []);
}

/** Slanting lines: cordoned. */
export function hatch(context, x, y, size, colours) {
  context.save();
  context.beginPath();
  context.rect(x, y, size, size);
  context.clip();
  context.beginPath();
  for (let offset = -size; offset < size; offset += 6) {
    context.moveTo(x + offset, y + size);
    context.lineTo(x + offset + size, y);
  }
  haloed(context, colours, 1);
  context.restore();
}

/** A cross from corner to corner: not ready. */
export function cross(context, x, y, size, colours) {
  context.beginPath();
  context.moveTo(x + 2, y + 2);
  context.lineTo(x + size - 2, y + size - 2);
  context.moveTo(x + size - 2, y + 2);
  context.lineTo(x + 2, y + size - 2);
  haloed(context, colours, 2);
}

/** A triangle at the top on the left: the node is short of something. */
export function triangle(context, x, y, size, colours) {
  const side = markSize(size);
  context.beginPath();
  context.moveTo(x + 2 + side / 2, y + 3);
  context.lineTo(x + 2 + side, y + 3 + side);
  context.lineTo(x + 2, y + 3 + side);
  context.closePath();
  context.fillStyle = colours.text;
  haloed(context, colours, 1);
  context.fill();
}

/** The corner at the top on the right cut off: tainted. */
export function corner(context, x, y, size, colours) {
  const side = markSize(size);
  context.beginPath();
  context.moveTo(x + size - side, y);
  context.lineTo(x + size, y);
  context.lineTo(x + size, y + side);
  context.closePath();
  context.fillStyle = colours.text;
  haloed(context, colours, 1);
  context.fill();
}

function markSize(size) {
  return Math.max(4, Math.min(12, size * 0.3));
}

/** Stroke the path in the text's colour on a wider stroke in the ground's: it is seen on whatever is below. */
function haloed(context, colours, width) {
  context.strokeStyle = colours.ground;
  context.lineWidth = width + 2;
  context.stroke();
  context.strokeStyle = colours.text;
  context.lineWidth = width;
  context.stroke();
}

/** The colours of the map, which differ in lightness, too. */
export function coloursOf(element) {
  const style = getComputedStyle(element);
  const of = (name) => style.getPropertyValue(name).trim();
  return {
    text: of("--text"),
    ground: of("--ground"),
    line: of("--soft"),
    raised: of("--raised"),
    held: of("--held"),
    fresh: of("--fresh"),
    over: of("--s4"),
    gains: of("--s2"),
    loses: of("--s5"),
  };
}

/** The name at the bottom of a large tile, cut at its domain and then at its beginning: generated names differ in their ends. */
export function caption(context, x, y, size, name, colours) {
  const room = size - 10;
  let told = name.split(".", 1)[0];
  while (told.length > 1 && context.measureText(told).width > room) told = `…${told.slice(told.startsWith("…") ? 2 : 1)}`;
  // On the ground, since what is below it may have any colour.
  context.fillStyle = colours.ground;
  context.fillRect(x + 2, y + size - 18, context.measureText(told).width + 6, 16);
  context.fillStyle = colours.text;
  context.fillText(told, x + 5, y + size - 9.5);
}
