// The answer that the page begins with: how many pods wait, and a card per workload with the cause and what helps.

import { nameButton, podList } from "./cards.js";
import { at } from "./columns.js";
import { button, choice, fill, h, refill } from "./dom.js";
import { count } from "./format.js";

// What the filter calls the causes; a code without a name here stands for itself.
const CAUSES = {
  device: "devices",
  gate: "gates",
  group: "groups",
  "host-port": "host ports",
  "no-pods": "without pods",
  "node-labels": "node labels",
  "node-state": "cordoned nodes",
  "not-created": "not created",
  "not-started": "not started",
  other: "other",
  "pod-affinity": "pod affinity",
  preemption: "preemption",
  resources: "resources",
  "scheduler-name": "scheduler name",
  spread: "spread",
  taint: "taints",
  volume: "volumes",
};
const PARTS = ["namespace", "cause", "text"];

/**
 * The panel. `ontry(change)` tries a remedy's change, or drops it if it is tried; `isTried(change)` says whether it is.
 * `open` has a function that opens a pod, and one that opens a group; `onfilter(filter)` is told when the filter changes.
 */
export class Answer {
  constructor({ ontry, isTried, open, onfilter }) {
    Object.assign(this, { ontry, isTried, open, onfilter });
    this.advice = null; // the server's, or what is known before it
    this.isBegun = false; // whether it is what is known before it
    this.filter = { namespace: "", cause: "", text: "" };
    this._cluster = null;
    this._opened = new Set(); // the details that are open, by card
    this._head = h("div", {});
    this._bar = h("div", { class: "bar filters", role: "group", "aria-label": "filter" });
    this._causes = h("div", { class: "causes", role: "group", "aria-label": "causes" });
    this._found = h("p", { class: "soft", role: "status" });
    this._cards = h("div", { class: "cards" });
    this._rest = h("div", {});
    this._parts = [this._head, this._causes, this._bar, this._found, this._cards, this._rest];
    this.element = h("div", { class: "answer" });
  }

  /** Show another answer of the server, or none (null). */
  answer(advice) {
    this.advice = advice;
    this.isBegun = false;
    this._opened.clear();
    this._controls();
    this._list();
  }

  /** Show what is known before the answer: `waiting` and `placed` of a state. */
  begin({ waiting, placed }, isSearching) {
    const { names } = this._cluster.map.pods;
    this._isSearching = isSearching;
    this.advice = {
      waiting: waiting.reduce((sum, { pods }) => sum + pods.length, 0),
      placed: placed.length,
      preempted: [],
      troubles: [],
      kinds: waiting.map(({ pods, why, ...workload }) => ({
        ...workload,
        pods: pods.map((pod) => names[pod]),
        message: why,
        remedies: null,
      })),
    };
    this.isBegun = true;
    this._controls();
    this._list();
  }

  /** Show what becomes of the pods in a cluster in which changes may be tried. */
  show(cluster, isTrying) {
    this._cluster = cluster;
    this._isTrying = isTrying;
    this._places = null;
    this._list();
  }

  /** Set some parts of the filter: what an address says. */
  setFilter(filter) {
    for (const part of PARTS) this.filter[part] = filter[part] ?? "";
    this._controls();
    this._list();
  }

  _controls() {
    const listed = this._listed();
    this._bar.hidden = listed.length < 2;
    const namespaces = [...new Set(listed.map(({ namespace }) => namespace))].sort();
    const every = [["", "All namespaces"], ...namespaces.map((each) => [each, each])];
    const namespace = choice(every, this.filter.namespace, (value) => this._set("namespace", value));
    namespace.setAttribute("aria-label", "namespace");
    fill(
      this._bar,
      h("input", {
        type: "search",
        "aria-label": "filter by text",
        placeholder: "Filter by workload, cause, text  ( f )",
        value: this.filter.text,
        oninput: (event) => this._set("text", event.target.value),
      }),
      namespaces.length > 1 ? namespace : null,
    );
  }

  /** All that has a card: what waits and what else is wrong, those of the most pods first. */
  _listed() {
    if (this.advice === null) return [];
    const { kinds, troubles } = this.advice;
    return [...kinds, ...troubles].sort((one, other) => podCount(other) - podCount(one));
  }

  _set(part, value) {
    this.filter[part] = value;
    this._list();
    this.onfilter(this.filter);
  }

  /** The causes with their numbers of pods, or of workloads without any, the greatest first; each is a filter. */
  _showCauses() {
    this._causes.hidden = this.isBegun;
    if (this.isBegun) return;
    const counts = new Map();
    for (const each of this._listed()) counts.set(each.code, (counts.get(each.code) ?? 0) + (podCount(each) || 1));
    this._causes.hidden = counts.size < 2;
    const { cause } = this.filter;
    refill(
      this._causes,
      ...[...counts]
        .sort(([, one], [, other]) => other - one)
        .map(([code, number]) =>
          button([h("strong", {}, String(number)), ` ${causeName(code)}`], () => this._set("cause", code === cause ? "" : code), {
            "aria-pressed": String(code === cause),
            "aria-label": `${causeName(code)}: ${count(number, code === "no-pods" ? "workload" : "pod")}`,
          }),
        ),
    );
  }

  _list() {
    const { advice } = this;
    if (advice === null || this._cluster === null) return fill(this.element);
    const listed = this._listed();
    const shown = listed.filter((each) => matches(each, this.filter));
    fill(this._head, ...headline(advice));
    this._found.textContent = shown.length < listed.length ? `${shown.length} of ${count(listed.length, "workload")}` : "";
    this._showCauses();
    refill(this._cards, ...shown.map((each) => ("remedies" in each ? this._card(each) : this._troubleCard(each))));
    fill(this._rest, ...(this.isBegun ? [] : beside(advice, this.open)));
    if (!this.element.children.length) fill(this.element, ...this._parts);
    return this.element;
  }

  _card(kind) {
    const { pods, remedies } = kind;
    const title = titleOf(kind);
    const more = h("div", { class: "more", hidden: true });
    const toggle = button("More", () => open(more.hidden), {
      class: "quiet",
      "aria-expanded": "false",
      "aria-label": `more about ${title}`,
    });
    const open = (isOpen) => {
      this._opened[isOpen ? "add" : "delete"](title);
      // Made when it is opened first: there may be thousands of pods.
      if (isOpen && !more.children.length) fill(more, ...this._more(kind));
      more.hidden = !isOpen;
      toggle.setAttribute("aria-expanded", String(isOpen));
      toggle.textContent = isOpen ? "Less" : "More";
    };
    if (this._opened.has(title)) open(true);
    return h(
      "section",
      { class: "card kind", "aria-label": `why ${title} waits` },
      cardHead(this._name(kind), kind.workload, count(pods.length, "pod"), toggle),
      ...(remedies === null ? [this._begun(kind)] : this._told(kind)),
      more,
    );
  }

  /** A card of what isn't about places: its cause says what to do, as the cluster itself puts it. */
  _troubleCard(trouble) {
    const { code, pods, cause, number } = trouble;
    const name = `${trouble.namespace}/${trouble.name}`;
    const pill = code === "no-pods" ? "no pods" : `${count(number, "pod")} ${causeName(code)}`;
    const named = pods.length ? nameButton(name, () => this.open.pod(pods[0])) : name;
    return h(
      "section",
      { class: "card kind", "aria-label": `what is wrong with ${titleOf(trouble)}` },
      cardHead(named, trouble.workload, pill),
      h("p", { class: "cause" }, sentence(cause)),
    );
  }

  _told(kind) {
    const [first] = kind.remedies;
    return [
      h("p", { class: "cause" }, sentence(kind.cause)),
      ...kind.notes.map((note) => h("p", { class: "soft" }, sentence(note))),
      first ? this._remedy(first, true) : h("p", { class: "soft" }, noneText(kind)),
      this._state(kind),
    ];
  }

  /** A card before the answer: while it is sought only that; then, if it was cancelled, the scheduler's message. */
  _begun({ message }) {
    return h("p", { class: "soft" }, this._isSearching ? "Looking for what would help…" : message);
  }

  /** What a card tells when it is opened: the other remedies, the pods, and the message. */
  _more({ pods, group, remedies, message, recorded }) {
    const [first, ...others] = remedies ?? [];
    return [
      first ? h("p", { class: "soft" }, sentence(`The pods would run ${onNodes(first)}`)) : null,
      others.length ? h("h4", {}, "What else helps") : null,
      ...others.map((each) => this._remedy(each, false)),
      ...(group || pods.length > 1 ? [h("h4", {}, "Pods"), this._podList(pods)] : []),
      h("h4", {}, "In the scheduler’s words"),
      h("p", { class: "words" }, message),
      recorded ? h("p", { class: "words" }, `In the cluster: ${recorded}`) : null,
    ];
  }

  _name({ workload, namespace, name, group, pods }) {
    if (group) return nameButton(group, () => this.open.group(group));
    return nameButton(workload ? `${namespace}/${name}` : pods[0], () => this.open.pod(pods[0]));
  }

  /** A remedy: what to do, how many pods it places, and the button; of the first one, the nodes are told by `_more`. */
  _remedy(remedy, isFirst) {
    const { text, placed, pods, change } = remedy;
    const isTried = change !== null && this.isTried(change);
    return h(
      "div",
      { class: isFirst ? "remedy first" : "remedy" },
      h("p", {}, sentence(text)),
      h("span", { class: "soft", title: onNodes(remedy) }, `Places ${placed} of ${pods}${isFirst ? "" : `, ${onNodes(remedy)}`}`),
      change === null
        ? null
        : button(isTried ? "Tried" : "Try", () => this.ontry(change), {
            "aria-label": `try: ${text}`,
            "aria-pressed": String(isTried),
          }),
    );
  }

  /** What becomes of the pods of a card with what is tried; null if nothing is. */
  _state({ pods }) {
    if (!this._isTrying) return null;
    const placed = pods.filter((name) => this._isPlaced(name)).length;
    if (!placed) return null;
    return h("p", { class: "done" }, `✓ ${placed} of ${pods.length} would run with what is tried`);
  }

  /** The pod of a name; undefined if a change has deleted it. */
  _pod(name) {
    this._places ??= new Map(this._cluster.map.pods.names.map((each, pod) => [each, pod]));
    return this._places.get(name);
  }

  _isPlaced(name) {
    const pod = this._pod(name);
    return pod !== undefined && at(this._cluster.map.pods.nodes, pod) >= 0;
  }

  _podList(names) {
    const pods = names.map((name) => this._pod(name)).filter((pod) => pod !== undefined);
    return podList(this._cluster, pods, (pod) => this.open.pod(this._cluster.podName(pod)));
  }
}

/** On which nodes a remedy places pods, and which other pods lose theirs. */
function onNodes({ nodes, displaced }) {
  return `on ${nodes || "no node"}${displaced ? `; ${count(displaced, "other pod")} would find no place` : ""}`;
}

function titleOf({ workload, namespace, name, pods }) {
  return workload ? `${workload} ${namespace}/${name}` : pods[0];
}

function causeName(code) {
  return CAUSES[code] ?? code.replaceAll("-", " ");
}

/** Whether a kind is what the filter asks for; each word of its text has to be somewhere in the kind. */
function matches(kind, { namespace, cause, text }) {
  if (namespace && kind.namespace !== namespace) return false;
  // The causes aren't known before the answer.
  if (cause && kind.code !== undefined && kind.code !== cause) return false;
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return true;
  const { notes = [], cause: told = "", message = "" } = kind;
  const remedies = (kind.remedies ?? []).map((remedy) => remedy.text);
  const all = [kind.workload, kind.namespace, kind.name, told, message, ...notes, ...remedies, ...kind.pods];
  const texts = all.join("\n").toLowerCase();
  return words.every((word) => texts.includes(word));
}

/** The head of a card: a name, the kind of its workload, its number of pods, and what opens more. */
function cardHead(name, workload, pods, toggle = null) {
  return h(
    "div",
    { class: "kind-head" },
    h("h3", {}, name),
    h("span", { class: "soft" }, workload),
    h("span", { class: "pill" }, pods),
    toggle,
  );
}

function podCount({ pods, number }) {
  return number ?? pods.length;
}

function headline({ waiting, placed, kinds, troubles, preempted }) {
  const inTrouble = (code) =>
    troubles.filter((each) => each.code === code).reduce((sum, { number }) => sum + number, 0);
  const told = [
    waiting ? count(kinds.length, "workload") : null,
    placed ? `${count(placed, waiting ? "other pod" : "pending pod")} ${placed === 1 ? "finds" : "find"} a place` : null,
    preempted.length ? `${count(preempted.length, "pod")} would be preempted for them` : null,
    inTrouble("not-created") ? `${count(inTrouble("not-created"), "pod")} can’t be created` : null,
    inTrouble("not-started") ? `${count(inTrouble("not-started"), "pod")} on nodes not started` : null,
  ].filter((each) => each !== null);
  const wait = waiting === 1 ? "waits" : "wait";
  return [
    h("h2", { class: "figure" }, waiting ? `${count(waiting, "pod")} ${wait} for a place` : "No pod waits for a place"),
    told.length ? h("p", { class: "soft" }, told.join(" · ")) : null,
  ];
}

function noneText({ fits, seen, tried }) {
  if (fits) return "It needs no change.";
  if (!seen) return "No change was tried: other workloads have more pods.";
  return tried === 1
    ? "The only change that was tried doesn't help."
    : `None of ${count(tried, "change")} that were tried helps.`;
}

/** What else is known: preempted pods, contradictions to the cluster itself, missing objects, notes. */
function beside({ contradictions, elsewhere, preempted, missing, notes }, open) {
  const pod = (name) => nameButton(name, () => open.pod(name));
  return [
    preempted.length ? part("Would be preempted", preempted, (name) => [pod(name)]) : null,
    contradictions.length
      ? part("Unschedulable in the cluster, and with a place here", contradictions, (each) => [
          pod(each.pod),
          h("p", {}, `would go to ${each.node}. Likely: ${each.likely}`),
          h("p", { class: "soft" }, `In the cluster: ${each.recorded}`),
        ])
      : null,
    elsewhere.length ? part("For other schedulers", elsewhere, (name) => [pod(name)]) : null,
    missing.length ? part(missing[0], missing.slice(1), (line) => [line]) : null,
    notes.length ? part("Notes", notes, (note) => [note]) : null,
  ];
}

const MOST_LISTED = 50;

function part(title, items, told) {
  const rest = items.length - MOST_LISTED;
  return h(
    "details",
    { class: "beside" },
    h("summary", {}, title, h("span", { class: "soft" }, ` ${items.length.toLocaleString("en")}`)),
    h(
      "ul",
      { class: "plain" },
      ...items.slice(0, MOST_LISTED).map((item) => h("li", {}, ...told(item))),
      rest > 0 ? h("li", { class: "soft" }, `and ${rest.toLocaleString("en")} more`) : null,
    ),
  );
}

/** A text as a sentence: the command's lines begin small, have no full stop and typewriters' apostrophes. */
function sentence(text) {
  const told = text.replaceAll(/(\w)'(\w)/g, "$1’$2");
  // Names of fields, such as minDomains, stay as they are.
  const first = /^\w*[A-Z]/.test(told) ? told.charAt(0) : told.charAt(0).toUpperCase();
  return first + told.slice(1) + (/[.?!]$/.test(told) ? "" : ".");
}
