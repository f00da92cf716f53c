// The page of `kschedfw explore`.

import { Address, readChanges, writtenChanges } from "./address.js";
import { Answer } from "./answer.js";
import { groupList, nodeCard } from "./cards.js";
import { Cluster } from "./cluster.js";
import { NONE, at } from "./columns.js";
import { decisionView } from "./decision.js";
import { groupView } from "./group.js";
import { announce, button, byId, fill, h, labelled, tabs } from "./dom.js";
import { keyHelp } from "./keys.js";
import { MapView } from "./map_view.js";
import { News } from "./news.js";
import { nodeActions } from "./node_actions.js";
import { podGroupList } from "./pod_groups.js";
import { searchField } from "./search.js";
import { server } from "./server.js";
import { splitter } from "./splitter.js";
import { timePanel } from "./time_panel.js";
import { WhatIf } from "./what_if.js";

let state = null; // the last one of the server
let cluster = null; // what the map shows
let opened = null; // what the open decision is about: {kind, key}, of a pod or a group
let request = 0; // the number of the last request whose answer the page shows
let sought = 0; // the number of the last search for what helps
let isSearching = false;
let isInterrupted = false; // whether the search was cancelled in favour of what the user asked for
const asked = new Set(); // what the user has asked for, until it is answered
let isOld = false; // whether the cluster has changed since what helps was sought

const QUICK = 2000; // milliseconds; a search that took longer isn't repeated by itself when the cluster changes
const PLACED = { title: "would be placed", note: "On the map they are where they would go." };
let took = 0; // milliseconds that the last search took

const fresh = h("input", { type: "checkbox", checked: true, onchange: () => show(state) });
const seeking = h("div", {}); // the search for what helps, while it goes on, and how to begin one
const mapView = new MapView({
  label: "nodes of the cluster",
  hasMarks: true,
  settings: { group: "", resource: "cpu", tile: null },
  onnode: openNode,
  onpod: (pod) => openPod(cluster.podName(pod)),
  onchosen: ({ group, resource }) => address.tell({ by: group, fill: resource }),
});
const whatIf = new WhatIf({
  onpod: openPod,
  ontry: (changes) => shown(changes.length ? () => server.tried(changes) : server.state),
  onkeep: (changes) => step(() => server.keep(changes)),
  onseek: (changes) => seek(changes),
});
const address = new Address(openPlace);
const answer = new Answer({
  ontry: (change) => (whatIf.draft.includes(change) ? whatIf.drop(change) : whatIf.change(change)),
  isTried: (change) => whatIf.draft.includes(change),
  open: { pod: (name) => openPod(name), group: (name) => openGroup(name) },
  onfilter: (filter) => address.tell(filter),
});
const news = new News(server, refresh, (problem) => (byId("gone").textContent = problem));
const namesOf = {
  node: ({ map }) => map.nodes.names,
  group: ({ pod_groups }) => pod_groups.map(({ name }) => name),
  pod: ({ map }) => map.pods.names,
};
const openNamed = {
  node: (name) => openNode(cluster.map.nodes.names.indexOf(name)),
  group: openGroup,
  pod: openPod,
};
const search = searchField(
  ["node", "group", "pod"],
  (kind) => (state === null ? [] : namesOf[kind](state)),
  (kind, name) => openNamed[kind](name),
);

byId("search").append(search);
byId("keys").append(
  keyHelp({
    f: () => sides.pending.querySelector(".filters input")?.focus(),
    1: () => goSide("pending"),
    2: () => goSide("node"),
    3: () => goSide("what-if"),
  }),
);
byId("work").append(news.element);
fill(byId("map"), mapView.element);
byId("side").after(splitter(byId("layout")));
byId("tried").append(whatIf.tried);
new ResizeObserver(([{ contentRect }]) => {
  byId("layout").style.setProperty("--tried", `${contentRect.height}px`);
  mapView.map.place();
}).observe(byId("tried"));
fill(byId("what-if-side"), whatIf.element);
const sides = { pending: byId("pending-side"), node: byId("node-side"), "what-if": byId("what-if-side") };
const chooseSide = tabs(
  byId("sides"),
  [
    ["pending", "Pending"],
    ["node", "Node"],
    ["what-if", "What if"],
  ],
  sides,
  (side) => address.go({ side }),
);
const pages = { cluster: byId("cluster-page"), time: byId("time-page") };
const choosePage = tabs(
  byId("pages"),
  [
    ["cluster", "Cluster"],
    ["time", "Time"],
  ],
  pages,
  (view) => address.go({ view }),
);
fill(sides.node, h("p", { class: "empty" }, "Choose a node on the map."));

function goSide(side) {
  choosePage("cluster");
  chooseSide(side);
  address.go({ view: null, side });
}

/** Ask the server, and tell of a problem; null then. */
async function answered(ask) {
  const problem = byId("problem");
  const given = interrupt().then(ask);
  asked.add(given);
  try {
    const told = await news.during(given);
    problem.textContent = "";
    return told;
  } catch (error) {
    problem.textContent = error.message;
    return null;
  } finally {
    asked.delete(given);
  }
}

/** Show the state that the server answers with, unless a later one was asked for; tells whether there was one. */
async function shown(ask) {
  const number = (request += 1);
  byId("map").setAttribute("aria-busy", "true");
  const latest = await answered(ask);
  if (number !== request) return true;
  byId("map").removeAttribute("aria-busy");
  if (latest === null) return false;
  show(latest);
  return true;
}

/** Keep, undo or redo; what was tried is forgotten. */
async function step(ask) {
  const before = whatIf.draft;
  whatIf.forget();
  if (!(await shown(ask))) {
    whatIf.draft = before;
    return;
  }
  address.tell({ kept: writtenChanges(state.kept_changes) });
  await seek([]);
}

/** Show the cluster as it is now, with what is tried. */
async function refresh() {
  announce("the cluster has changed");
  isOld = true;
  await shown(whatIf.draft.length ? () => server.tried(whatIf.draft) : server.state);
  if (took < QUICK) await seek([]);
}

function show(latest) {
  state = latest;
  const node = selectedNode();
  cluster = new Cluster(state.map);
  if (fresh.checked) cluster.fresh = new Set(state.fresh);
  else state.fresh.forEach((pod) => cluster.move(pod, NONE));
  const rows = new Map(state.map.nodes.names.map((name, row) => [name, row]));
  // First, since what is tried takes room from the map.
  whatIf.show(state);
  mapView.map.active = node === null ? -1 : (rows.get(node) ?? -1);
  mapView.show(cluster);
  mapView.map.mark(byRow(state.tried?.gains, rows), byRow(state.tried?.losses, rows));
  if (node !== null && rows.has(node)) showNode(rows.get(node));
  answer.show(cluster, whatIf.draft.length > 0);
  showPending();
  showSteps(state);
  if (opened !== null) explain(opened);
}

function showPending() {
  const open = (pod) => openPod(cluster.podName(pod));
  const isSearching = sides.pending.hasAttribute("aria-busy");
  if (answer.advice === null || answer.isBegun) answer.begin(state, isSearching);
  showSeeking();
  fill(
    sides.pending,
    seeking,
    answer.element,
    podGroupList(state.pod_groups, openGroup),
    ...(state.placed.length ? groupList(cluster, [{ ...PLACED, pods: state.placed }], open) : []),
    state.fresh.length
      ? h("div", { class: "bar" }, labelled("On the map, show pods where they would go", fresh))
      : null,
    ...state.notes.map((note) => h("p", { class: "soft" }, note)),
  );
}

/** Seek what helps with these changes, beside those that are kept, and show it. */
async function seek(changes) {
  const number = (sought += 1);
  const since = performance.now();
  sides.pending.setAttribute("aria-busy", "true");
  fill(seeking);
  showPending();
  announce("Looking for what would help");
  await interrupt();
  const found = await searched(changes, number);
  if (number !== sought) return;
  took = performance.now() - since;
  sides.pending.removeAttribute("aria-busy");
  isOld = false;
  fill(seeking);
  answer.answer(found);
  showPending();
  if (found !== null) announce(`${found.waiting} pods wait, of ${found.kinds.length} workloads`);
}

/** Have the server end a search: it works on one request at a time, and the user's comes first. */
async function interrupt() {
  if (!isSearching) return;
  isInterrupted = true;
  await server.cancel();
}

/** What helps; null if that can't be found out. An interrupted search begins anew, unless there is a later one. */
async function searched(changes, number) {
  while (number === sought) {
    await Promise.allSettled(asked);
    isSearching = true;
    isInterrupted = false;
    try {
      const found = await news.during(server.advice(changes));
      if (found !== null || !isInterrupted) return found;
    } catch (error) {
      byId("problem").textContent = error.message;
      return null;
    } finally {
      isSearching = false;
    }
  }
  return null;
}

/** Offer a search where there was none, or the cluster has changed since. */
function showSeeking() {
  if (sides.pending.hasAttribute("aria-busy")) return;
  fill(
    seeking,
    isOld ? h("p", { class: "soft" }, "The cluster has changed since.") : null,
    isOld || answer.isBegun
      ? h("div", { class: "bar" }, button("What would help?", () => seek([])))
      : null,
  );
}

function byRow(counts, rows) {
  return new Map(Object.entries(counts ?? {}).map(([name, number]) => [rows.get(name), number]));
}

function showSteps(state) {
  fill(
    byId("steps"),
    button("Undo", () => step(server.undo), {
      disabled: state.undo === null,
      title: state.undo ?? "nothing to undo",
    }),
    button("Redo", () => step(server.redo), {
      disabled: state.redo === null,
      title: state.redo ?? "nothing to redo",
    }),
    h(
      "span",
      { class: state.kept.length ? "soft kept" : "soft none" },
      state.kept.length ? `kept: ${state.kept.join("; ")}` : "no changes are kept",
    ),
  );
}

function selectedNode() {
  const row = mapView.map.active;
  return cluster === null || row < 0 ? null : cluster.nodeName(row);
}

function showNode(row) {
  const name = cluster.nodeName(row);
  const actions = nodeActions(
    name,
    cluster.cordoned.has(row),
    (change) => whatIf.change(change),
    () => answered(() => server.emptied(name, whatIf.draft)),
  );
  fill(sides.node, ...nodeCard(cluster, row, (pod) => openPod(cluster.podName(pod)), actions));
}

function openNode(row) {
  const side = sides["what-if"].hidden ? "node" : "what-if";
  address.go({ view: null, side, node: cluster.nodeName(row) });
  selectNode(row, side);
}

function selectNode(row, side) {
  choosePage("cluster");
  mapView.map.select(row);
  showNode(row);
  chooseSide(side);
  announce(mapView.map.told(row).replaceAll("\n", ", "));
}

function openPod(key) {
  address.go({ view: null, pod: key, group: null });
  return showDecision({ kind: "pod", key });
}

function openGroup(key) {
  address.go({ view: null, pod: null, group: key });
  return showDecision({ kind: "group", key });
}

async function showDecision(subject) {
  choosePage("cluster");
  opened = subject;
  await explain(subject);
  byId("decision").scrollIntoView({ behavior: "smooth", block: "start" });
  byId("decision").focus({ preventScroll: true });
}

/** Show what an address says: after going back or forward, and at the start. */
function openPlace(place) {
  const { view, side, node, pod, group } = place;
  answer.setFilter(place);
  mapView.choose({ group: place.by ?? "", resource: place.fill });
  const row = node === null ? -1 : cluster.map.nodes.names.indexOf(node);
  if (row >= 0) selectNode(row, side ?? "node");
  else if (node !== null) byId("problem").textContent = `there is no node ${node}`;
  chooseSide(side in sides ? side : row >= 0 ? "node" : "pending");
  choosePage(view in pages ? view : "cluster");
  const subject =
    pod !== null ? { kind: "pod", key: pod } : group !== null ? { kind: "group", key: group } : null;
  if (subject === null) closeDecision();
  else if (subject.kind !== opened?.kind || subject.key !== opened.key) showDecision(subject);
}

function closeDecision() {
  opened = null;
  fill(byId("decision"));
}

/** Show the decision on a pod or a group, with the changes that are tried. */
async function explain(subject) {
  const { kind, key } = subject;
  const place = byId("decision");
  place.setAttribute("aria-busy", "true");
  const ask = kind === "pod" ? server.explain : server.explainGroup;
  const matrix = await answered(() => ask(key, whatIf.draft));
  if (subject !== opened) return;
  place.removeAttribute("aria-busy");
  if (matrix === null) return closeDecision();
  const close = () => {
    address.go({ pod: null, group: null });
    closeDecision();
    byId("map").querySelector("canvas, .window")?.focus();
  };
  fill(
    place,
    h(
      "div",
      { class: "top" },
      h("h2", {}, kind === "pod" ? key : `podgroup ${key}`),
      h("div", { class: "bar" }, ...actionsOn(kind, key), button("Close", close)),
    ),
    kind === "pod" ? placeOf(key, matrix) : null,
    ...(kind === "pod" ? decisionView(matrix, openNamed.node) : groupView(matrix, openPod, openNamed.node)),
  );
  place.onkeydown = (event) => {
    if (event.key === "Escape" && !event.target.matches("input, select")) close();
  };
}

/** Where a pod that runs is, and where it would go if it were scheduled anew; null for a pod that is pending. */
function placeOf(key, { node }) {
  const pod = cluster.map.pods.names.indexOf(key);
  const row = pod < 0 ? NONE : at(cluster.map.pods.nodes, pod);
  if (row < 0 || state.fresh.includes(pod)) return null;
  const here = cluster.nodeName(row);
  const anew =
    node === null
      ? "scheduled anew it would find no place"
      : node === here
        ? "scheduled anew it would go there again"
        : `scheduled anew it would go to ${node}`;
  return h("p", { class: "place" }, `On ${here}; ${anew}.`);
}

/** What can be done with a pod, or with a group's members. */
function actionsOn(kind, key) {
  const of = kind === "pod" ? groupOf(key) : null;
  const pods =
    kind === "pod" ? [key] : (state.pod_groups.find(({ name }) => name === key)?.pods ?? []).map((pod) => cluster.podName(pod));
  return [
    of === null ? null : button("Its group", () => openGroup(of)),
    button(kind === "pod" ? "Delete it" : "Delete its pods", () =>
      whatIf.change({ kind: "delete-pods", pods }),
    ),
  ];
}

/** The name of the group that a pod is a member of; null if it is in none. */
function groupOf(key) {
  const pod = cluster.map.pods.names.indexOf(key);
  return state.pod_groups.find(({ pods }) => pods.includes(pod))?.name ?? null;
}

/** Try the changes that a link keeps, if this page doesn't keep them already: the user decides whether it shall. */
async function tryLinked(kept) {
  const changes = readChanges(kept);
  const isKept = JSON.stringify(changes) === JSON.stringify(state.kept_changes);
  address.tell({ kept: writtenChanges(state.kept_changes) });
  if (changes.length && !isKept) await whatIf.tryAll(changes);
}

const labels = await answered(server.configurations);
fill(
  byId("time-page"),
  timePanel(labels ?? [], (wanted) => answered(() => server.replay(wanted))),
);
if (await shown(server.state)) {
  const place = address.place();
  openPlace(place);
  await tryLinked(place.kept);
  seek([]);
}
document.documentElement.dataset.ready = "true";
