// Curves over time as SVG, with a line where the slider is.

import { h, s } from "./dom.js";

const WIDTH = 640;
const HEIGHT = 150;
// Room for the values beside the axis.
const LEFT = 56;
const VIEW = LEFT + WIDTH + 12;
const MOST_POINTS = 600;

/**
 * Curves over the same ascending `xs`: `series` are {name, values}, and `told(value)` writes a value. `onpick(x)` is called when
 * the user points at an x with a button pressed. Returns {element, at(index)}.
 */
export function chart({ title, xs, series, told, onpick }) {
  // Even, so that the tick in the middle is a whole number.
  const highest = 2 * Math.ceil(Math.max(2, ...series.map(({ values }) => maximum(values))) / 2);
  const first = xs[0] ?? 0;
  const span = (xs[xs.length - 1] ?? 1) - first || 1;
  const x = (value) => (WIDTH * (value - first)) / span;
  const y = (value) => HEIGHT * (1 - value / highest);
  const cursor = s("line", { class: "cursor", y1: 0, y2: HEIGHT, x1: 0, x2: 0 });
  const ticks = [0, highest / 2, highest];
  const picture = s(
    "svg",
    {
      viewBox: `${-LEFT} -8 ${VIEW} ${HEIGHT + 16}`,
      role: "img",
      "aria-label": `${title}: ${series.map(({ name, values }) => `${name} up to ${told(maximum(values))}`).join(", ")}`,
    },
    ...ticks.flatMap((tick) => [
      s("line", { class: "axis", x1: 0, x2: WIDTH, y1: y(tick), y2: y(tick) }),
      s("text", { class: "soft", x: -6, y: y(tick) + 4, "text-anchor": "end" }, told(tick)),
    ]),
    ...series.map(({ values }, number) =>
      s("polyline", { class: `curve l${number % 4} d${number % 4}`, points: points(xs, values, x, y) }),
    ),
    cursor,
  );
  const pick = (event) => {
    if (!event.buttons) return;
    const box = picture.getBoundingClientRect();
    const inside = ((event.clientX - box.left) / box.width) * VIEW - LEFT;
    onpick(first + (span * Math.max(0, Math.min(WIDTH, inside))) / WIDTH);
  };
  picture.addEventListener("pointerdown", pick);
  picture.addEventListener("pointermove", pick);
  const figures = series.map(() => h("span", {}));
  const keys = h(
    "ul",
    { class: "keys" },
    ...series.map(({ name }, number) =>
      h(
        "li",
        {},
        s(
          "svg",
          { viewBox: "0 0 28 10", "aria-hidden": "true" },
          s("line", {
            class: `curve l${number % 4} d${number % 4}`,
            x1: 0,
            x2: 28,
            y1: 5,
            y2: 5,
            "stroke-width": 3,
          }),
        ),
        `${name} `,
        figures[number],
      ),
    ),
  );
  return {
    element: h("figure", { class: "chart" }, h("figcaption", {}, h("strong", {}, title)), keys, picture),
    at(index) {
      cursor.setAttribute("x1", x(xs[index]));
      cursor.setAttribute("x2", x(xs[index]));
      series.forEach(({ values }, number) => (figures[number].textContent = told(values[index])));
    },
  };
}

function maximum(values) {
  // Not `Math.max(...values)`: engines limit the number of arguments of a call.
  let most = -Infinity;
  for (const value of values) most = Math.max(most, value);
  return most;
}

/** A step curve; of many points those that differ. */
function points(xs, values, x, y) {
  const stride = Math.max(1, Math.ceil(xs.length / MOST_POINTS));
  const found = [];
  for (let index = 0; index < xs.length; index += stride)
    found.push(`${x(xs[index]).toFixed(1)},${y(values[index]).toFixed(1)}`);
  const last = xs.length - 1;
  found.push(`${x(xs[last]).toFixed(1)},${y(values[last]).toFixed(1)}`);
  return found.join(" ");
}
