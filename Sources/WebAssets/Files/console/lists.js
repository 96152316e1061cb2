// Lists that are fetched a page at a time, however long they are.

import { h, button, empty, problem } from "./dom.js";
import { get } from "./api.js";
import { project } from "./shell.js";

const PAGE = 50;

/**
 * A list of the administration API. `path` answers { [name]: rows, next }; `show` makes a page of rows an element.
 * reload() fetches the page again; begin(query) starts over.
 */
export class PagedList {
  constructor({ path, name, query = {}, show, none }) {
    Object.assign(this, { path, name, query, show, none, cursors: [null], turn: 0 });
    this.body = h("div", { "aria-live": "off" });
    this.back = button("Previous", () => { this.cursors.pop(); this.reload(); });
    this.more = button("Next", () => { this.cursors.push(this.next); this.reload(); });
    this.place = h("span", { class: "soft small", role: "status" });
    this.element = h("div", {}, this.body, h("p", { class: "buttons pages" }, this.back, this.more, this.place));
    this.reload();
  }

  begin(query) {
    this.query = query;
    this.cursors = [null];
    return this.reload();
  }

  async reload() {
    const turn = ++this.turn;
    this.body.setAttribute("aria-busy", "true");
    try {
      const found = await get(this.path, { project: project()?.id, max: PAGE, after: this.cursors.at(-1), ...this.query });
      if (turn !== this.turn) return;
      const rows = found[this.name];
      this.next = found.next ?? null;
      this.body.replaceChildren(rows.length ? this.show(rows, found) : this.none);
      const first = (this.cursors.length - 1) * PAGE + 1;
      this.place.textContent = rows.length ? `${first} to ${first + rows.length - 1}${this.next === null ? "" : ", and more"}` : "";
      this.back.disabled = this.cursors.length === 1;
      this.more.disabled = this.next === null;
      this.back.parentElement.hidden = this.cursors.length === 1 && this.next === null && !rows.length;
    } catch (error) {
      if (turn === this.turn) this.body.replaceChildren(problem(error, () => this.reload()));
    } finally {
      this.body.removeAttribute("aria-busy");
    }
  }
}

export { empty };
