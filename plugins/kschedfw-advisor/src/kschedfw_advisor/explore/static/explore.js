// The page of `kschedfw explore`.

import { groupList, nodeCard } from "./cards.js";
import { Cluster } from "./cluster.js";
import { NONE } from "./columns.js";
import { decisionView } from "./decision.js";
import { announce, button, byId, fill, h, labelled, tabs } from "./dom.js";
import { MapView } from "./map_view.js";
import { server } from "./server.js";
import { timePanel } from "./time_panel.js";
import { WhatIf } from "./what_if.js";

let state = null; // the last one of the server
let cluster = null; // what the map shows
let shownPod = null; // the pod whose decision is open
let request = 0; // the number of the last request whose answer the page shows

const fresh = h("input", { type: "checkbox", checked: true, onchange: () => show(state) });
const mapView = new MapView({
  label: "nodes of the cluster",
  hasMarks: true,
  settings: { group: "", resource: "cpu", tile: 36 },
  onnode: openNode,
  onpod: (pod) => openPod(cluster.podName(pod)),
});
const whatIf = new WhatIf({
  selected: selectedNode,
  onpod: openPod,
  ontry: (changes) => shown(changes.length ? () => server.tried(changes) : server.state),
  onkeep: (changes) => step(() => server.keep(changes)),
});

fill(byId("map"), mapView.element);
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
);
const pages = { cluster: byId("cluster-page"), time: byId("time-page") };
tabs(
  byId("pages"),
  [
    ["cluster", "Cluster"],
    ["time", "Time"],
  ],
  pages,
);
fill(sides.node, h("p", { class: "soft" }, "Choose a node on the map."));

/** Ask the server, and tell of a problem; null then. */
async function answered(ask) {
  const problem = byId("problem");
  try {
    const answer = await ask();
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
  if (!(await shown(ask))) whatIf.draft = before;
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
  const open = (pod) => openPod(cluster.podName(pod));
  fill(
    sides.pending,
    ...groupList(cluster, state.groups, open),
    state.fresh.length
      ? h("div", { class: "bar" }, labelled("On the map, show them where they would go", fresh))
      : null,
    ...state.notes.map((note) => h("p", { class: "soft" }, note)),
  );
  whatIf.show(state);
  showSteps(state);
  if (shownPod !== null) explain(shownPod);
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
  fill(sides.node, ...nodeCard(cluster, row, (pod) => openPod(cluster.podName(pod))));
}

function openNode(row) {
  mapView.map.select(row);
  showNode(row);
  whatIf.showNode();
  if (sides["what-if"].hidden) chooseSide("node");
  announce(mapView.map.told(row).replaceAll("\n", ", "));
}

async function openPod(key) {
  shownPod = key;
  await explain(key);
  byId("decision").scrollIntoView({ behavior: "smooth", block: "start" });
  byId("decision").focus({ preventScroll: true });
}

/** Show the decision on a pod, with the changes that are tried. */
async function explain(key) {
  const place = byId("decision");
  place.setAttribute("aria-busy", "true");
  const matrix = await answered(() => server.explain(key, whatIf.draft));
  if (key !== shownPod) return;
  place.removeAttribute("aria-busy");
  const close = () => {
    shownPod = null;
    fill(place);
  };
  if (matrix === null) return close();
  fill(
    place,
    h(
      "div",
      { class: "top" },
      h("h2", {}, key),
      h(
        "div",
        { class: "bar" },
        button("Delete it", () => whatIf.change({ kind: "delete-pods", pods: [key] })),
        button("Close", close),
      ),
    ),
    ...decisionView(matrix, (name) => openNode(cluster.map.nodes.names.indexOf(name))),
  );
}

const labels = await answered(server.configurations);
fill(
  byId("time-page"),
  timePanel(labels ?? [], (wanted) => answered(() => server.replay(wanted))),
);
await shown(server.state);
document.documentElement.dataset.ready = "true";
