// The page of `kschedfw explore`.

import { Address } from "./address.js";
import { adviceList } from "./advice.js";
import { groupList, nodeCard } from "./cards.js";
import { Cluster } from "./cluster.js";
import { NONE } from "./columns.js";
import { decisionView } from "./decision.js";
import { groupView } from "./group.js";
import { announce, button, byId, fill, h, labelled, tabs } from "./dom.js";
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

const fresh = h("input", { type: "checkbox", checked: true, onchange: () => show(state) });
const advice = h("div", {}); // what helps the pending pods, once it was asked for
const mapView = new MapView({
  label: "nodes of the cluster",
  hasMarks: true,
  settings: { group: "", resource: "cpu", tile: 36 },
  onnode: openNode,
  onpod: (pod) => openPod(cluster.podName(pod)),
});
const whatIf = new WhatIf({
  onpod: openPod,
  ontry: (changes) => shown(changes.length ? () => server.tried(changes) : server.state),
  onkeep: (changes) => step(() => server.keep(changes)),
});
const address = new Address(openPlace);
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
byId("work").append(news.element);
fill(byId("map"), mapView.element);
byId("map").after(splitter(byId("layout")));
byId("tried").append(whatIf.tried);
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
fill(sides.node, h("p", { class: "soft" }, "Choose a node on the map."));

/** Ask the server, and tell of a problem; null then. */
async function answered(ask) {
  const problem = byId("problem");
  try {
    const answer = await news.during(ask());
    problem.textContent = "";
    return answer;
  } catch (error) {
    problem.textContent = error.message;
    return null;
  }
}

/** Show the state that the server answers with, unless a later one was asked for; tells whether there was one. */
async function shown(ask) {
  const number = (request += 1);
  byId("map").setAttribute("aria-busy", "true");
  const answer = await answered(ask);
  if (number !== request) return true;
  byId("map").removeAttribute("aria-busy");
  if (answer === null) return false;
  show(answer);
  return true;
}

/** Keep, undo or redo; what was tried is forgotten. */
async function step(ask) {
  const before = whatIf.draft;
  whatIf.forget();
  fill(advice);
  if (!(await shown(ask))) whatIf.draft = before;
}

/** Show the cluster as it is now, with what is tried. */
function refresh() {
  announce("the cluster has changed");
  fill(advice);
  return shown(whatIf.draft.length ? () => server.tried(whatIf.draft) : server.state);
}

function show(answer) {
  state = answer;
  const node = selectedNode();
  cluster = new Cluster(state.map);
  if (fresh.checked) cluster.fresh = new Set(state.fresh);
  else state.fresh.forEach((pod) => cluster.move(pod, NONE));
  const rows = new Map(state.map.nodes.names.map((name, row) => [name, row]));
  mapView.map.active = node === null ? -1 : (rows.get(node) ?? -1);
  mapView.show(cluster);
  mapView.map.mark(byRow(state.tried?.gains, rows), byRow(state.tried?.losses, rows));
  if (node !== null && rows.has(node)) showNode(rows.get(node));
  showPending();
  whatIf.show(state);
  showSteps(state);
  if (opened !== null) explain(opened);
}

function showPending() {
  const open = (pod) => openPod(cluster.podName(pod));
  const every = [...state.pod_groups, ...state.groups];
  const waiting = every.some(({ pods }) => pods.some((pod) => cluster.places[pod] === NONE));
  fill(
    sides.pending,
    waiting ? h("div", { class: "bar" }, button("What would help?", askAdvice)) : null,
    advice,
    podGroupList(state.pod_groups, openGroup),
    ...(state.groups.length || !waiting ? groupList(cluster, state.groups, open) : []),
    state.fresh.length
      ? h("div", { class: "bar" }, labelled("On the map, show them where they would go", fresh))
      : null,
    ...state.notes.map((note) => h("p", { class: "soft" }, note)),
  );
}

async function askAdvice() {
  fill(advice, h("p", { class: "soft", role: "status" }, "Changes are tried…"));
  const found = await answered(() => server.advice(whatIf.draft));
  fill(advice, ...(found === null ? [] : adviceList(found, (change) => whatIf.change(change), openNamed)));
  if (found !== null) announce(`${found.kinds.length} kinds of pending pods`);
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
      { class: "soft" },
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
function openPlace({ view, side, node, pod, group }) {
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
    ...(kind === "pod" ? decisionView(matrix, openNamed.node) : groupView(matrix, openPod, openNamed.node)),
  );
  place.onkeydown = (event) => {
    if (event.key === "Escape" && !event.target.matches("input, select")) close();
  };
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

const labels = await answered(server.configurations);
fill(
  byId("time-page"),
  timePanel(labels ?? [], (wanted) => answered(() => server.replay(wanted))),
);
if (await shown(server.state)) openPlace(address.place());
document.documentElement.dataset.ready = "true";
