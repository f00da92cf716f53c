// What the server has to tell by itself: how far its work is, whether the cluster has changed, and whether it is there.

import { button, fill, h } from "./dom.js";

const CALM = 3000; // milliseconds between questions
const BUSY = 250; // the same while an answer is awaited
const PATIENCE = 400; // milliseconds that an answer may take before its progress is shown

/** Asks `server.news()` again and again. `onchange()` is called when the cluster has changed, `ongone(problem)` when told so. */
export class News {
  constructor(server, onchange, ongone) {
    this.server = server;
    this.onchange = onchange;
    this.ongone = ongone;
    this.element = h("div", { class: "work", hidden: true });
    this._bar = h("progress", { "aria-label": "progress" });
    this._what = h("span", {});
    fill(
      this.element,
      this._what,
      this._bar,
      button("Cancel", () => this.server.cancel().catch(() => {})),
    );
    this._awaited = new Set(); // when each question was asked whose answer is awaited
    this._revision = null;
    this._timer = null;
    document.addEventListener("visibilitychange", () => this._soon(0));
    this._soon(CALM);
  }

  /** The same promise; until it is settled, progress is shown. */
  async during(promise) {
    const since = { at: performance.now() };
    this._awaited.add(since);
    this._soon(PATIENCE);
    try {
      return await promise;
    } finally {
      this._awaited.delete(since);
      if (!this._awaited.size) this.element.hidden = true;
    }
  }

  _soon(wait) {
    clearTimeout(this._timer);
    this._timer = setTimeout(() => this._ask(), wait);
  }

  async _ask() {
    if (document.hidden) return; // asks again when it is seen
    let problem = "";
    try {
      this._tell(await this.server.news());
    } catch (error) {
      problem = error.message;
    }
    this.ongone(problem);
    this._soon(this._awaited.size ? BUSY : CALM);
  }

  _tell({ revision, work, problem }) {
    const isLong = [...this._awaited].some(({ at }) => performance.now() - at >= PATIENCE);
    this.element.hidden = !(isLong && work);
    if (work) {
      const { what, done, total } = work;
      this._what.textContent = total ? `${what}: ${done.toLocaleString("en")} of ${total.toLocaleString("en")}` : what;
      this._bar.max = total || 1;
      if (total) this._bar.value = done;
      else this._bar.removeAttribute("value"); // it isn't known how much there is to do
    }
    if (problem) throw new Error(problem);
    const isNew = this._revision !== null && this._revision !== revision;
    this._revision = revision;
    if (isNew) this.onchange();
  }
}
