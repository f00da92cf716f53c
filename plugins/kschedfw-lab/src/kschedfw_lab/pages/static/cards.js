// A node and a pod in words.

import { at, textAt } from "./columns.js";
import { button, ends, fill, h } from "./dom.js";
import { amount, count, percent } from "./format.js";
import { WindowedTable, fitting } from "./windowed.js";

/** Everything about a node; `onpod(pod)` opens one of its pods, `actions` are what can be done with it. */
export function nodeCard(cluster, row, onpod, actions = null) {
  const { labels, taints } = cluster.map.nodes;
  const offered = cluster.resources.filter((resource) => cluster.allocatable(resource, row) > 0);
  const texts = Object.keys(labels)
    .map((key) => [key, textAt(labels[key], row)])
    .filter(([, value]) => value !== null);
  const taint = textAt(taints, row);
  const states = cluster.states(row);
  return [
    h("h2", { tabindex: -1 }, cluster.nodeName(row)),
    states.length ? h("p", {}, h("strong", {}, states.join(", "))) : null,
    taint ? h("p", {}, `taints: ${taint}`) : null,
    actions,
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "resources of the node" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ...["resource", "requested", "allocatable", "share"].map((title, place) =>
              h("th", { scope: "col", class: place ? "number" : null }, title),
            ),
          ),
        ),
        h(
          "tbody",
          {},
          ...offered.map((resource) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, resource),
              h("td", { class: "number" }, amount(resource, cluster.requested(resource, row))),
              h("td", { class: "number" }, amount(resource, cluster.allocatable(resource, row))),
              h("td", { class: "number" }, percent(cluster.share(resource, row))),
            ),
          ),
        ),
      ),
    ),
    h("h3", {}, count(cluster.podsOn(row).length, "pod")),
    podList(cluster, cluster.podsOn(row), onpod),
    h(
      "details",
      {},
      h("summary", {}, count(texts.length, "label")),
      h(
        "ul",
        { class: "plain tags" },
        ...texts.map(([key, value]) => h("li", {}, value ? `${key}=${value}` : key)),
      ),
    ),
  ];
}

/** A list of pods that may be long. */
export function podList(cluster, pods, onpod, label = "pods") {
  const table = new WindowedTable({
    label,
    columns: podColumns(cluster, pods),
    rowHeight: 27,
    height: `${Math.min(11, pods.length + 1) * 27 + 18}px`,
    rowOf: (index) => podCells(cluster, pods[index], onpod),
  });
  table.show(pods.length);
  return table.element;
}

const POD_COLUMNS = [
  { title: "cpu", text: (cluster, pod) => amount("cpu", cluster.request("cpu", pod)) },
  { title: "memory", text: (cluster, pod) => amount("memory", cluster.request("memory", pod)) },
  { title: "priority", text: (cluster, pod) => String(at(cluster.map.pods.priorities, pod)) },
];

function podColumns(cluster, pods) {
  return [
    { title: "pod", width: "9.5rem", grows: true },
    ...POD_COLUMNS.map(({ title, text }) => ({
      title,
      number: true,
      width: fitting(
        title,
        pods.map((pod) => text(cluster, pod)),
      ),
    })),
  ];
}

function podCells(cluster, pod, onpod) {
  const name = cluster.podName(pod);
  return [
    onpod ? nameButton(name, () => onpod(pod)) : ends(name),
    ...POD_COLUMNS.map(({ text }) => text(cluster, pod)),
  ];
}

/** A button with a name on it that may be long. */
export function nameButton(name, onclick) {
  return button(ends(name), onclick, { class: "link name", title: name, "aria-label": name });
}

/** The pods that wait, by why: a list of {title, note, pods}. */
export function groupList(cluster, groups, onpod) {
  if (!groups.length) return [h("p", { class: "soft" }, "No pod is pending.")];
  return groups.map((group) => {
    const place = h("div", {});
    const details = h(
      "details",
      {
        ontoggle: () => {
          // Made when it is opened first: there may be many long lists.
          if (details.open && !place.children.length)
            fill(place, podList(cluster, group.pods, onpod, group.title));
        },
      },
      h("summary", {}, h("strong", {}, count(group.pods.length, "pod")), ` ${group.title}`),
      group.note ? h("p", { class: "soft" }, group.note) : null,
      place,
    );
    return details;
  });
}
