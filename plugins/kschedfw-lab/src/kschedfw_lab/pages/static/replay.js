// Time: simulations with a slider, side by side if there are several.

import { chart } from "./chart.js";
import { expanded, lastAtMost } from "./columns.js";
import { button, fill, h, labelled } from "./dom.js";
import { groupList, nodeCard } from "./cards.js";
import { amount, duration } from "./format.js";
import { MapView } from "./map_view.js";
import { Run } from "./run.js";

// Playing shows so many frames from the start to the end.
const FRAMES = 200;
// So many events of a step are told; others are counted.
const EVENTS = 2;
// Milliseconds between two frames.
const TICK = 50;

/** The view of a replay. The slider goes by time, or by attempts if no time passes. */
export class ReplayView {
  constructor(replay) {
    this.runs = replay.runs.map((run) => new Run(replay.map, run));
    const end = Math.max(...this.runs.map((run) => run.run.times[run.length - 1]));
    this.byTime = end > 0;
    this.end = this.byTime ? end : Math.max(...this.runs.map((run) => run.length - 1));
    this.settings = { group: "", resource: replay.map.resources[0], tile: this.runs.length > 1 ? 28 : 36 };
    this.now = this.end;
    this._timer = null;
    this.slider = h("input", {
      type: "range",
      min: 0,
      max: this.end,
      step: this.byTime ? "any" : 1,
      value: this.end,
      "aria-label": this.byTime ? "time" : "attempt",
      oninput: (event) => this.to(Number(event.target.value)),
    });
    this.clock = h("output", {});
    this.player = button("Play", () => this._play());
    this.views = this.runs.map((run) => this._view(run));
    this.element = h(
      "div",
      {},
      h(
        "div",
        { class: "bar time" },
        this.player,
        button("‹", () => this._jump(-1), { "aria-label": "one step back" }),
        this.slider,
        button("›", () => this._jump(1), { "aria-label": "one step on" }),
        labelled("", this.clock),
      ),
      h("div", { class: "runs" }, ...this.views.map((view) => view.element)),
    );
    this.to(this.end);
  }

  to(now) {
    this.now = Math.max(0, Math.min(this.end, now));
    this.slider.value = this.now;
    this.slider.setAttribute("aria-valuetext", this._told());
    this.clock.textContent = this._told();
    this.views.forEach((view) => view.show());
  }

  _told() {
    if (this.byTime) return `${duration(this.now)} of ${duration(this.end)}`;
    return `attempt ${Math.round(this.now)} of ${this.end}`;
  }

  _stepOf(run) {
    return this.byTime
      ? Math.max(0, lastAtMost(run.run.times, this.now))
      : Math.min(run.length - 1, Math.round(this.now));
  }

  /** Go to where the next or the previous step of any run is. */
  _jump(sign) {
    if (!this.byTime) return this.to(this.now + sign);
    const near = this.runs
      .map((run) => {
        let step = this._stepOf(run);
        // Several steps may have one time: to the next one that differs.
        while (run.run.times[step] !== undefined && sign * (run.run.times[step] - this.now) <= 0)
          step += sign;
        return run.run.times[step];
      })
      .filter((time) => time !== undefined);
    return this.to(
      near.length ? (sign > 0 ? Math.min(...near) : Math.max(...near)) : sign > 0 ? this.end : 0,
    );
  }

  _play() {
    const stop = () => {
      clearInterval(this._timer);
      this._timer = null;
      this.player.textContent = "Play";
    };
    if (this._timer !== null) return stop();
    if (this.now >= this.end) this.to(0);
    this.player.textContent = "Pause";
    this._timer = setInterval(() => {
      this.to(this.now + Math.max(this.byTime ? 0 : 1, this.end / FRAMES));
      // A view that was taken out of the document stops, too.
      if (this.now >= this.end || !this.element.isConnected) stop();
    }, TICK);
  }

  _view(run) {
    const card = h("div", { class: "card", hidden: true });
    const open = (row) => {
      card.hidden = false;
      fill(card, ...nodeCard(run.cluster, row, null));
    };
    const map = new MapView({
      label: `nodes under ${run.label}`,
      settings: this.settings,
      onnode: open,
      onsettings: () => this.views.forEach((view) => view.settle()),
    });
    const xs = this.byTime ? run.run.times : run.run.times.map((_, step) => step);
    const queues = chart({
      title: "Pods in the queues",
      xs,
      onpick: (x) => this.to(x),
      told: (value) => String(Math.round(value)),
      series: Object.entries(run.run.queues).map(([name, column]) => ({
        name,
        values: expanded(column, run.length),
      })),
    });
    const place = h("div", {});
    let timeline = null;
    const settle = () => {
      const { resource } = this.settings;
      const { offered } = run.cluster.total(resource);
      const amounts = Object.entries(run.amounts(resource));
      timeline = chart({
        title: `${resource}, of ${amount(resource, offered)} on all nodes`,
        xs,
        told: (value) => amount(resource, value),
        series: amounts.map(([name, values]) => ({ name, values })),
        onpick: (x) => this.to(x),
      });
      fill(place, timeline.element);
      timeline.at(run.step);
      map.settingsChanged();
    };
    const events = h("ul", { class: "plain events", "aria-label": "what happens at this step" });
    map.show(run.cluster);
    settle();
    const show = () => {
      run.to(this._stepOf(run));
      map.refresh();
      queues.at(run.step);
      timeline.at(run.step);
      const told = run.events();
      const more =
        told.length > EVENTS ? [h("li", { class: "soft" }, `and ${told.length - EVENTS} more`)] : [];
      fill(events, ...told.slice(0, EVENTS).map((text) => h("li", {}, text)), ...more);
    };
    const element = h(
      "section",
      { "aria-label": run.label },
      h("h2", {}, run.label),
      h("div", { class: "charts" }, place, queues.element),
      events,
      map.element,
      card,
      h("h3", {}, "In the end"),
      h(
        "dl",
        { class: "facts" },
        ...run.run.figures.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
      ),
      ...run.run.notes.map((note) => h("p", { class: "soft" }, note)),
      h("h3", {}, "Pods that weren’t placed"),
      ...groupList(run.cluster, run.refused(), null),
    );
    return { element, show, settle };
  }
}
