// The live feed: figures and steps of messages, once a second, over a WebSocket.

import { theKey } from "./api.js";

const HISTORY_MS = 180000;
const TAIL_MAX = 300;

class Feed extends EventTarget {
  /** Figures of the last minutes, oldest first. */
  history = [];
  /** Steps of messages, newest first. */
  tail = [];
  filter = {};
  every = 1;
  leftOut = 0;
  isHeld = false;
  held = 0;
  #socket = null;
  #timer = 0;
  #wait = 500;
  #numbers = 0;

  get now() { return this.history.at(-1) ?? null; }

  open() {
    this.close();
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/admin/v1/feed`);
    this.#socket = socket;
    socket.onopen = () => {
      socket.send(JSON.stringify({ key: theKey() }));
      socket.send(JSON.stringify({ filter: this.filter }));
    };
    socket.onmessage = ({ data }) => { if (socket === this.#socket) this.#received(JSON.parse(data)); };
    socket.onclose = ({ code }) => {
      if (socket !== this.#socket) return;
      this.#socket = null;
      if (code === 1008) return this.#tell("refused");
      this.#tell("lost");
      this.#timer = setTimeout(() => this.open(), this.#wait);
      this.#wait = Math.min(this.#wait * 2, 10000);
    };
  }

  close() {
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  choose(filter) {
    this.filter = filter;
    this.tail = [];
    this.held = 0;
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify({ filter }));
    this.#tell("steps", []);
  }

  hold(isHeld) {
    this.isHeld = isHeld;
    this.held = 0;
    this.#tell("steps", []);
  }

  #received(message) {
    if (message.error) return this.#tell("problem", message.error);
    this.#wait = 500;
    const { figures, steps, every, left_out: leftOut } = message;
    // A server that was started again counts from nothing.
    if (this.now && figures.started_at !== this.now.started_at) this.history = [];
    this.history.push(figures);
    while (figures.at - this.history[0].at > HISTORY_MS) this.history.shift();
    Object.assign(this, { every, leftOut });
    this.#tell("figures", figures);
    if (this.isHeld) {
      this.held += steps.length;
      return this.#tell("steps", []);
    }
    const fresh = steps.reverse();
    for (const step of fresh) step.number = this.#numbers++;
    this.tail = [...fresh, ...this.tail].slice(0, TAIL_MAX);
    this.#tell("steps", fresh);
  }

  #tell(name, detail) { this.dispatchEvent(new CustomEvent(name, { detail })); }

  /** How much a counter grew a second, for each second of the history; null for the first. */
  rates(take) {
    return this.history.map((now, index) => {
      const before = this.history[index - 1];
      if (!before) return null;
      return Math.max(0, ((take(now) - take(before)) * 1000) / Math.max(1, now.at - before.at));
    });
  }
}

export const feed = new Feed();
