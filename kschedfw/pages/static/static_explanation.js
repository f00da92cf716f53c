// The page of `kschedfw explain --html`: all attempts, of which one is shown.

import { decisionView } from "./decision.js";
import { byId, choice, fill, h, labelled } from "./dom.js";

const { attempts, shown } = JSON.parse(byId("data").textContent);
const view = h("div", {});

function show(place) {
  fill(view, ...decisionView(attempts[place]));
}

const all = attempts.map((attempt, place) => [String(place), attempt.headline]);
fill(
  byId("content"),
  attempts.length > 1
    ? h(
        "div",
        { class: "bar" },
        labelled(
          "Attempt",
          choice(all, String(shown), (value) => show(Number(value))),
        ),
      )
    : null,
  view,
);
show(shown);
