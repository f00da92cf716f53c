// Where the user is, as the end of the address: back and forward work, and a link opens a view, a node, a pod or a group.

const PARTS = ["view", "side", "node", "pod", "group"];

/** `onmove(place)` is called when the user goes back or forward, or follows such a link. */
export class Address {
  constructor(onmove) {
    addEventListener("popstate", () => onmove(this.place()));
  }

  /** The place: {view, side, node, pod, group}; null is a part that the address doesn't say. */
  place() {
    const given = new URLSearchParams(location.hash.slice(1));
    return Object.fromEntries(PARTS.map((part) => [part, given.get(part)]));
  }

  /** Go elsewhere in some parts. */
  go(changes) {
    const place = { ...this.place(), ...changes };
    const said = new URLSearchParams();
    for (const part of PARTS) if (place[part]) said.set(part, place[part]);
    const hash = said.size ? `#${said}` : "";
    if (hash !== location.hash) history.pushState(null, "", hash || location.pathname);
  }
}
