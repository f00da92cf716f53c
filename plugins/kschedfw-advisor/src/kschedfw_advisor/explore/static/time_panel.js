// The view of time in the served page: which simulations to run, and their replay.

import { announce, button, choice, fill, h, labelled } from "./dom.js";
import { ReplayView } from "./replay.js";

const NOTHING = "";

/** `load(wanted)` returns the replay of simulations, or null if there is none. */
export function timePanel(labels, load) {
  const wanted = { first: labels[0], second: NOTHING };
  const pairs = labels.map((label) => [label, label]);
  const rate = number("all at once");
  const stay = number("for good");
  const own = h("input", { type: "checkbox" });
  const anew = h("input", { type: "checkbox" });
  const view = h(
    "div",
    {},
    h(
      "p",
      { class: "soft" },
      "The pending pods are scheduled in virtual time, as kschedfw simulate does it.",
    ),
  );
  const run = button(
    "Simulate",
    async () => {
      run.disabled = true;
      view.setAttribute("aria-busy", "true");
      announce("simulating");
      const replay = await load({
        runs: [wanted.first, ...(wanted.second === NOTHING ? [] : [wanted.second])],
        reschedule: anew.checked,
        own_times: own.checked,
        arrival_rate: positive(rate),
        mean_duration: positive(stay),
      });
      view.removeAttribute("aria-busy");
      run.disabled = false;
      if (!replay) return;
      announce("done");
      fill(view, new ReplayView(replay).element);
    },
    { class: "main" },
  );
  return h(
    "div",
    {},
    h(
      "div",
      { class: "bar" },
      labelled(
        "Configuration",
        choice(pairs, wanted.first, (value) => (wanted.first = value)),
      ),
      labelled(
        "Beside it",
        choice([[NOTHING, "nothing"], ...pairs], NOTHING, (value) => (wanted.second = value)),
      ),
    ),
    h(
      "div",
      { class: "bar" },
      labelled("Pods arrive, a second", rate),
      labelled("and stay, seconds", stay),
      labelled("Use their own times", own),
      labelled("Take all pods off first", anew),
      run,
    ),
    view,
  );
}

function number(unit) {
  return h("input", { type: "number", min: 0, step: "any", placeholder: unit });
}

function positive(input) {
  return Number(input.value) > 0 ? Number(input.value) : null;
}
