// One simulation, which can be wound to any step.

import { Cluster } from "./cluster.js";
import { ABSENT, at, expanded, lastAtMost } from "./columns.js";

/** A run and the cluster at its present step. */
export class Run {
  constructor(map, run) {
    this.label = run.label;
    this.run = run;
    this.cluster = new Cluster(map, run.start);
    this.length = run.times.length;
    this.step = 0;
    this._steps = columnOf(run.moves.steps, run.moves.pods, run.moves.nodes);
    this._count = this._steps.length;
    // Where each move takes its pod from, so that it can be undone.
    this._from = new Float64Array(this._count);
    const places = Float64Array.from(this.cluster.places);
    for (let move = 0; move < this._count; move += 1) {
      this._from[move] = places[this._pod(move)];
      places[this._pod(move)] = this._to(move);
    }
    this._done = 0;
  }

  /** Wind to a step. */
  to(step) {
    this.step = step;
    const target = lastAtMost(this._steps, step) + 1;
    for (; this._done < target; this._done += 1)
      this.cluster.move(this._pod(this._done), this._to(this._done));
    for (; this._done > target; this._done -= 1)
      this.cluster.move(this._pod(this._done - 1), this._from[this._done - 1]);
    this.cluster.fresh = new Set(
      this._movesAt(step)
        .filter((move) => this._to(move) >= 0)
        .map((move) => this._pod(move)),
    );
  }

  /** What happened at the present step, in words. */
  events() {
    const { cluster } = this;
    return this._movesAt(this.step).map((move) => {
      const pod = cluster.podName(this._pod(move));
      const to = this._to(move);
      const from = this._from[move];
      if (to >= 0) return `${pod} goes to ${cluster.nodeName(to)}`;
      if (to === ABSENT) return from >= 0 ? `${pod} leaves ${cluster.nodeName(from)}` : `${pod} is deleted`;
      return from >= 0 ? `${pod} is taken off ${cluster.nodeName(from)}` : `${pod} arrives`;
    });
  }

  /**
   * Amounts of a resource after each step, of all pods that are there: `requested` by them, `allocated` to those on nodes,
   * `pending` of those that aren't.
   */
  amounts(resource) {
    const { cluster } = this;
    const start = expanded(this.run.start, cluster.podCount);
    let allocated = 0;
    let pending = 0;
    const count = (pod, place, sign) => {
      if (place >= 0) allocated += sign * cluster.request(resource, pod);
      else if (place !== ABSENT) pending += sign * cluster.request(resource, pod);
    };
    start.forEach((place, pod) => count(pod, place, 1));
    const found = { requested: [], allocated: [], pending: [] };
    let move = 0;
    for (let step = 0; step < this.length; step += 1) {
      for (; move < this._count && this._steps[move] <= step; move += 1) {
        count(this._pod(move), this._from[move], -1);
        count(this._pod(move), this._to(move), 1);
      }
      found.requested.push(allocated + pending);
      found.allocated.push(allocated);
      found.pending.push(pending);
    }
    return found;
  }

  /** The pods that were refused in the end, by why. */
  refused() {
    const groups = new Map();
    for (const { pod, outcome, message } of this.run.outcomes) {
      if (outcome === "placed") continue;
      const title = message ? `${outcome}: ${message}` : outcome;
      if (!groups.has(title)) groups.set(title, []);
      groups.get(title).push(pod);
    }
    return [...groups]
      .map(([title, pods]) => ({ title, pods, note: "" }))
      .sort((one, other) => other.pods.length - one.pods.length);
  }

  _movesAt(step) {
    const last = lastAtMost(this._steps, step);
    const found = [];
    for (let move = last; move >= 0 && this._steps[move] === step; move -= 1) found.unshift(move);
    return found;
  }

  _pod(move) {
    return at(this.run.moves.pods, move);
  }

  _to(move) {
    return at(this.run.moves.nodes, move);
  }
}

/** The first column as an array; the others tell how long it is where it is a single number. */
function columnOf(column, ...others) {
  if (typeof column !== "number") return column;
  const length = others.find((each) => typeof each !== "number")?.length ?? 1;
  return new Array(length).fill(column);
}
