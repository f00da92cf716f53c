// The line between the map and the side, which the user moves; where it is, is remembered.

import { h } from "./dom.js";

const KEY = "kschedfw-side";
const LEAST = 19; // rem
const STEP = 2;
const USUAL = 29;

/** A separator that sets how wide the side of a layout is, in rem. */
export function splitter(layout) {
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  const most = () => Math.max(LEAST, Math.floor((0.7 * layout.clientWidth) / rem));
  let width = USUAL;
  const line = h("div", {
    class: "splitter",
    role: "separator",
    tabindex: 0,
    "aria-label": "width of the side",
    "aria-orientation": "vertical",
    "aria-controls": "side",
    title: "Drag it, or move it with the arrow keys",
    onkeydown: (event) => {
      const next = {
        ArrowLeft: width + STEP,
        ArrowRight: width - STEP,
        Home: most(),
        End: LEAST,
      }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      set(next);
    },
    onpointerdown: (event) => {
      event.preventDefault();
      line.focus();
      line.setPointerCapture(event.pointerId);
    },
    onpointermove: (event) => {
      if (line.hasPointerCapture(event.pointerId))
        set((layout.getBoundingClientRect().right - event.clientX) / rem);
    },
    ondblclick: () => set(USUAL),
  });

  function set(wanted, isKept = true) {
    width = Math.round(10 * Math.max(LEAST, Math.min(most(), wanted))) / 10;
    layout.style.setProperty("--side", `${width}rem`);
    line.setAttribute("aria-valuenow", Math.round(width));
    line.setAttribute("aria-valuemin", LEAST);
    line.setAttribute("aria-valuemax", most());
    if (isKept) remember(width);
  }

  set(remembered() ?? USUAL, false);
  return line;
}

// A browser may refuse to store anything; then the line is where it usually is.

function remembered() {
  try {
    return Number(localStorage.getItem(KEY)) || null;
  } catch {
    return null;
  }
}

function remember(width) {
  try {
    localStorage.setItem(KEY, width);
  } catch {
    // It isn't remembered.
  }
}
