// Where the user is, as the end of the address: back and forward work, and a link opens the same again: the view, what is
// open, how the map is grouped, the filter, and the changes that are kept.

const PARTS = ["view", "side", "node", "pod", "group", "by", "fill", "namespace", "cause", "text", "kept"];
const LONGEST = 6000; // letters of kept changes; longer addresses are cut by chats and mail

/** `onmove(place)` is called when the user goes back or forward, or follows such a link. */
export class Address {
  constructor(onmove) {
    addEventListener("popstate", () => onmove(this.place()));
  }

  /** The place: a text or null for each part; null is a part that the address doesn't say. */
  place() {
    const given = new URLSearchParams(location.hash.slice(1));
    return Object.fromEntries(PARTS.map((part) => [part, given.get(part)]));
  }

  /** Go elsewhere in some parts: back leads here again. */
  go(changes) {
    const hash = this._hash(changes);
    if (hash !== location.hash) history.pushState(null, "", hash || location.pathname);
  }

  /** Say more of where the user is. */
  tell(changes) {
    const hash = this._hash(changes);
    if (hash !== location.hash) history.replaceState(null, "", hash || location.pathname);
  }

  _hash(changes) {
    const place = { ...this.place(), ...changes };
    const said = new URLSearchParams();
    for (const part of PARTS) if (place[part]) said.set(part, place[part]);
    return said.size ? `#${said}` : "";
  }
}

/** Changes as a part of the address; null for none, and for those that are too long. */
export function writtenChanges(changes) {
  const text = JSON.stringify(changes);
  return changes.length && text.length <= LONGEST ? text : null;
}

/** The changes of such a part. A part that isn't one has none: someone has cut the address. */
export function readChanges(text) {
  try {
    const changes = JSON.parse(text ?? "[]");
    return Array.isArray(changes) ? changes : [];
  } catch {
    return [];
  }
}
