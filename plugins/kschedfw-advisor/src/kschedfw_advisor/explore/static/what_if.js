// What if: changes by hand. They are tried at once, and what moves is shown before they are kept.

import { control } from "./forms.js";
import { announce, breakable, button, h, labelled, refill } from "./dom.js";
import { count } from "./format.js";
import { moveList } from "./tried.js";

const WAIT = 200; // milliseconds after the last move of a slider
const FARES = {
  moves: "→ another node",
  "newly placed": "→ a node",
  "no longer placed": "→ pending",
  added: "added",
  gone: "gone",
};
const HIGHEST = 20; // of the slider; the number beside it may be higher

/**
 * The panel; `tried` is the element that says what moves. `ontry(changes)` has the server try the changes and returns when the
 * page shows the result; `onkeep(changes)` keeps them, `onseek(changes)` has what helps beside them sought.
 */
export class WhatIf {
  constructor({ ontry, onkeep, onseek, onpod }) {
    this.ontry = ontry;
    this.onkeep = onkeep;
    this.onseek = onseek;
    this.onpod = onpod;
    this.draft = [];
    this._timer = null;
    this.tried = h("section", {
      class: "card draft",
      "aria-label": "changes that aren’t kept",
      hidden: true,
    });
    this._plugins = h("div", {});
    this._pods = this._podForm();
    this.element = h(
      "div",
      {},
      h("p", { class: "soft" }, "Nothing is written to the cluster."),
      h("details", { open: true }, h("summary", {}, "Weights and plugins"), this._plugins),
      h("details", { open: true }, h("summary", {}, "Nodes"), this._allNodes()),
      h("details", {}, h("summary", {}, "Pods and other objects"), this._pods),
      h(
        "details",
        {},
        h("summary", {}, "Download"),
        h(
          "ul",
          { class: "plain" },
          h(
            "li",
            {},
            h(
              "a",
              { href: "/api/configuration.yaml", download: "configuration.yaml" },
              "the resulting configuration",
            ),
          ),
          h(
            "li",
            {},
            h("a", { href: "/api/manifests.yaml", download: "manifests.yaml" }, "the resulting manifests"),
          ),
        ),
        h("p", { class: "soft" }, "with all changes that are kept"),
      ),
    );
  }

  /** Show the plugins of a state, unless that is what the user is changing. */
  show(state) {
    this._state = state;
    const { activeElement } = document;
    const isTyping =
      this._plugins.contains(activeElement) && ["range", "number", "text"].includes(activeElement.type);
    if (!isTyping || !this.draft.length) this._showPlugins();
    this._showDraft();
  }

  /** Drop what isn't kept. */
  forget() {
    this.draft = [];
  }

  /** Add a change to those that are tried; one of the same subject replaces the former one. */
  change(change) {
    const subject = subjectOf(change);
    const others = subject ? this.draft.filter((each) => subjectOf(each) !== subject) : this.draft;
    return this._try([...others, change]);
  }

  /** Drop a change of those that are tried. */
  drop(change) {
    return this._try(this.draft.filter((each) => each !== change));
  }

  /** Try all of these, in place of what is tried. */
  tryAll(changes) {
    return this._try(changes);
  }

  async _try(draft) {
    const before = this.draft;
    this.draft = draft;
    if (!(await this.ontry(draft)) && this.draft === draft) this.draft = before;
  }

  // Weights and plugins

  _showPlugins() {
    const open = new Set([...this._plugins.querySelectorAll("details[open]")].map((each) => each.dataset.of));
    const isOwn = (plugin) => plugin.enabled || this._known.has(plugin.name);
    this._known ??= new Set(
      this._state.profiles.flatMap(({ plugins }) =>
        plugins.filter((each) => each.enabled).map((each) => each.name),
      ),
    );
    refill(
      this._plugins,
      ...this._state.profiles.flatMap((profile) => {
        const rows = (list) => list.map((plugin) => this._plugin(profile.name, plugin, open));
        return [
          this._state.profiles.length > 1 ? h("h3", {}, profile.name) : null,
          ...rows(profile.plugins.filter((each) => isOwn(each) && each.scores)),
          folded(
            "Plugins without scores",
            `silent ${profile.name}`,
            open,
            rows(profile.plugins.filter((each) => isOwn(each) && !each.scores)),
          ),
          folded(
            "Other installed plugins",
            `other ${profile.name}`,
            open,
            rows(profile.plugins.filter((each) => !isOwn(each))),
          ),
        ];
      }),
    );
  }

  _plugin(profile, plugin, open) {
    const { name } = plugin;
    const toggle = h("input", {
      type: "checkbox",
      checked: plugin.enabled,
      onchange: () => this.change({ kind: "plugin", profile, plugin: name, enabled: toggle.checked }),
    });
    const weights =
      plugin.scores && plugin.enabled ? this._weight(profile, plugin) : [h("span", {}), h("span", {})];
    return h(
      "div",
      { class: "plugin" },
      h("label", {}, toggle, h("span", {}, ...breakable(name))),
      ...weights,
      plugin.shape && plugin.enabled ? this._arguments(profile, plugin, open) : null,
    );
  }

  _weight(profile, { name, weight }) {
    const slider = h("input", {
      type: "range",
      min: 0,
      max: Math.max(HIGHEST, weight),
      value: weight,
      "aria-label": `weight of ${name}`,
    });
    const number = h("input", {
      type: "number",
      min: 0,
      step: 1,
      value: weight,
      "aria-label": `weight of ${name}, as a number`,
    });
    const set = (value) => {
      if (!Number.isInteger(value) || value < 0) return;
      slider.max = Math.max(slider.max, value);
      slider.value = value;
      if (Number(number.value) !== value) number.value = value;
      clearTimeout(this._timer);
      this._timer = setTimeout(
        () => this.change({ kind: "weight", profile, plugin: name, weight: value }),
        WAIT,
      );
    };
    slider.addEventListener("input", () => set(Number(slider.value)));
    number.addEventListener("input", () => number.value !== "" && set(Number(number.value)));
    return [slider, number];
  }

  _arguments(profile, { name, shape, arguments: given }, open) {
    const form = control(shape, given, `arguments of ${name}`);
    const problem = h("p", { class: "problem", role: "alert" });
    return folded("arguments", `arguments ${profile} ${name}`, open, [
      form.element,
      problem,
      button("Try these", () => {
        problem.textContent = "";
        try {
          this.change({ kind: "arguments", profile, plugin: name, arguments: form.read() ?? {} });
        } catch (error) {
          problem.textContent = error.message;
        }
      }),
    ]);
  }

  // All nodes

  _allNodes() {
    return h(
      "div",
      {},
      h(
        "div",
        { class: "bar" },
        button("Take all pods off all nodes", () => this.change({ kind: "reschedule", nodes: [] })),
      ),
      h(
        "p",
        { class: "soft" },
        "Pods that are taken off are scheduled anew, except those of DaemonSets and mirror pods. " +
          "What can be done with one node is beside the map when the node is chosen.",
      ),
    );
  }

  // Pods

  _podForm() {
    const text = h("textarea", {
      spellcheck: "false",
      placeholder:
        "apiVersion: v1\nkind: Pod\nmetadata: {name: new}\nspec:\n  containers:\n  - name: main\n    image: busybox\n    resources: {requests: {cpu: 500m}}",
    });
    const copies = h("input", { type: "number", min: 1, max: 10000, value: 1 });
    return h(
      "div",
      {},
      labelled("Manifests (YAML or JSON), of pods, nodes, workloads, disruption budgets and so on", text),
      h(
        "div",
        { class: "bar" },
        labelled("How many of each", copies),
        button("Add", () => {
          if (text.value.trim())
            this.change({
              kind: "add",
              manifests: text.value,
              count: Math.max(1, Number(copies.value) || 1),
            });
        }),
      ),
      h("p", { class: "soft" }, "To delete a pod, open it."),
    );
  }

  // What would move

  _showDraft() {
    const { tried } = this._state;
    this.tried.hidden = !tried;
    if (!tried) return;
    const counts = Object.entries(tried.counts);
    const said = counts.length
      ? counts.map(([kind, number]) => `${count(number, "pod")} ${FARES[kind]}`)
      : ["No pod moves."];
    announce(`Tried, not kept: ${said.join(", ")}`);
    refill(
      this.tried,
      h("h2", {}, "Tried, not kept"),
      h(
        "ul",
        { class: "plain" },
        ...tried.changes.map((title, index) =>
          h(
            "li",
            { class: "change" },
            h("span", {}, title),
            button("Drop", () => this._try(this.draft.filter((_, each) => each !== index)), {
              "aria-label": `drop ${title}`,
            }),
          ),
        ),
      ),
      ...this._state.notes.map((note) => h("p", { class: "soft" }, note)),
      h("ul", { class: "counts" }, ...said.map((text) => h("li", {}, h("strong", {}, text)))),
      h(
        "div",
        { class: "bar" },
        button("Keep", () => this.onkeep(this.draft), { class: "main" }),
        button("Drop all", () => this._try([])),
        button("What would help beside that?", () => this.onseek(this.draft)),
      ),
      tried.moves.length ? moveList(tried.moves, this.onpod) : null,
    );
  }
}

/** What a change is about, if a later one of the same subject replaces it. */
function subjectOf({ kind, profile, plugin, pods }) {
  if (kind === "edit") return `remedy for ${pods[0]}`;
  return ["weight", "plugin", "arguments"].includes(kind) ? [kind, profile, plugin].join(" ") : "";
}

function folded(title, name, open, children) {
  if (!children.length) return null;
  return h("details", { "data-of": name, open: open.has(name) }, h("summary", {}, title), ...children);
}
