// The cluster as the page sees it: where each pod is, and what that requests of each node.

import { at, expanded, textAt } from "./columns.js";

const NO_LABEL = "(without it)";

/** A cluster of which pods can be moved. `places` has the row of each pod's node, or NONE, or ABSENT. */
export class Cluster {
  constructor(map, places = map.pods.nodes) {
    this.map = map;
    this.resources = map.resources;
    this.nodeCount = map.nodes.names.length;
    this.podCount = map.pods.names.length;
    this.places = expanded(places, this.podCount);
    this.cordoned = new Set(map.nodes.cordoned);
    this.unready = new Set(map.nodes.unready);
    this.tainted = new Set(map.nodes.tainted);
    this.fresh = new Set();
    this._sums = new Map();
    this._onNode = null;
  }

  nodeName(row) {
    return this.map.nodes.names[row];
  }

  podName(pod) {
    return this.map.pods.names[pod];
  }

  /** What the node is short of, as a text; null if nothing. */
  pressure(row) {
    return textAt(this.map.nodes.pressures, row);
  }

  /** What keeps new pods off the node, or may: a list of texts. */
  states(row) {
    return [
      this.unready.has(row) ? "not ready" : null,
      this.pressure(row),
      this.cordoned.has(row) ? "cordoned" : null,
      this.tainted.has(row) ? "tainted" : null,
    ].filter((state) => state !== null);
  }

  allocatable(resource, row) {
    return at(this.map.nodes.allocatable[resource] ?? 0, row);
  }

  request(resource, pod) {
    return at(this.map.pods.requests[resource] ?? 0, pod);
  }

  /** What the pods on the node request. */
  requested(resource, row) {
    return this._sum(resource)[row];
  }

  /** The requested share of the node; NaN where the node has nothing of the resource. */
  share(resource, row) {
    return this.requested(resource, row) / (this.allocatable(resource, row) || NaN);
  }

  /** Requested and allocatable on all nodes. */
  total(resource) {
    let requested = 0;
    let offered = 0;
    for (let row = 0; row < this.nodeCount; row += 1) {
      requested += this.requested(resource, row);
      offered += this.allocatable(resource, row);
    }
    return { requested, offered };
  }

  /** The pods on a node. */
  podsOn(row) {
    this._onNode ??= this._listed();
    return this._onNode[row];
  }

  /** Put a pod on a row, on none (NONE), or away (ABSENT). */
  move(pod, row) {
    const old = this.places[pod];
    this.places[pod] = row;
    this._onNode = null;
    // Sums of bytes are exact: doubles hold whole numbers up to 2^53.
    for (const [resource, sums] of this._sums) {
      if (old >= 0) sums[old] -= this.request(resource, pod);
      if (row >= 0) sums[row] += this.request(resource, pod);
    }
  }

  /** The rows of the nodes in groups by a label: a list of [value, rows], sorted; without a label in one group. */
  groups(label) {
    const column = this.map.nodes.labels[label];
    const found = new Map();
    for (let row = 0; row < this.nodeCount; row += 1) {
      const value = column === undefined ? "" : (textAt(column, row) ?? NO_LABEL);
      if (!found.has(value)) found.set(value, []);
      found.get(value).push(row);
    }
    return [...found].sort(([one], [other]) => one.localeCompare(other, "en", { numeric: true }));
  }

  _sum(resource) {
    let sums = this._sums.get(resource);
    if (sums === undefined) {
      sums = new Float64Array(this.nodeCount);
      for (let pod = 0; pod < this.podCount; pod += 1) {
        if (this.places[pod] >= 0) sums[this.places[pod]] += this.request(resource, pod);
      }
      this._sums.set(resource, sums);
    }
    return sums;
  }

  _listed() {
    const lists = Array.from({ length: this.nodeCount }, () => []);
    for (let pod = 0; pod < this.podCount; pod += 1) {
      if (this.places[pod] >= 0) lists[this.places[pod]].push(pod);
    }
    return lists;
  }
}
