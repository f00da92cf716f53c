// The page of `kschedfw explain --html`: all attempts of a pod, or of a group, of which one is shown.

import { decisionView } from "./decision.js";
import { byId, choice, fill, h, labelled } from "./dom.js";
import { groupView } from "./group.js";

const { attempts, shown } = JSON.parse(byId("data").textContent);
const view = h("div", {});

function show(place) {
  const attempt = attempts[place];
  const shownAs = "placements" in attempt ? groupView : decisionView;
  fill(view, h("h2", {}, `Attempt ${attempt.attempt}`), ...shownAs(attempt));
}

const all = attempts.map(({ attempt, result }, place) => [String(place), `${attempt}: ${result}`]);
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
