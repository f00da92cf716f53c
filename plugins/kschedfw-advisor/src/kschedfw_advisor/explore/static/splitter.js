// The line between the side and the map, which the user moves; where it is, is remembered.

import { h } from "./dom.js";

const KEY = "kschedfw-side";
const LEAST = 19; // rem
const STEP = 2;
const LEAST_USUAL = 36;
const USUAL_SHARE = 0.4; // of the layout: two cards are side by side in a wide window
const MOST_USUAL = 50;

/** A separator that sets how wide the side of a layout is, in rem. */
export function splitter(layout) {
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  const most = () => Math.max(LEAST, Math.floor((0.7 * layout.clientWidth) / rem));
  const usual = () =>
    Math.max(LEAST_USUAL, Math.min(MOST_USUAL, (USUAL_SHARE * layout.clientWidth) / rem));
  let width = usual();
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
        ArrowLeft: width - STEP,
        ArrowRight: width + STEP,
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
        set((event.clientX - layout.getBoundingClientRect().left) / rem);
    },
    ondblclick: () => set(usual()),
  });

  function set(wanted, isKept = true) {
    width = Math.round(10 * Math.max(LEAST, Math.min(most(), wanted))) / 10;
    layout.style.setProperty("--side", `${width}rem`);
    line.setAttribute("aria-valuenow", Math.round(width));
    line.setAttribute("aria-valuemin", LEAST);
    line.setAttribute("aria-valuemax", most());
    if (isKept) remember(width);
  }

  set(remembered() ?? usual(), false);
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
