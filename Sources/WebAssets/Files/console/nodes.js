// The nodes that share a store.

import { h, empty, pill, problem, table } from "./dom.js";
import { get } from "./api.js";
import { count, day } from "./format.js";

/** How often it is looked again, in ms: a node's lease is 5 s. */
const AGAIN = 2500;

const rows = (nodes) => nodes.map((node) => ({
  cells: [node.alive ? pill("alive", "delivered") : pill("gone", "nacked"), h("code", {}, String(node.node)), h("span", {}, node.name, node.self && h("span", { class: "soft" }, " (this one)")),
    count(node.devices), h("time", {}, day(node.started_ms))],
}));

export function nodes() {
  const list = h("div");
  let timer = 0, ended = false;

  async function load() {
    clearTimeout(timer);
    try {
      const found = (await get("nodes")).nodes;
      if (ended) return;
      list.replaceChildren(found.length ? table("Nodes", ["", "Number", "Name", "Devices", "Started"], rows(found))
        : empty("This server is alone", "Its store is its own. Servers that are started with --store postgres://… share one, and are listed here."));
    } catch (error) {
      if (ended) return;
      list.replaceChildren(problem(error, load));
    }
    timer = setTimeout(load, AGAIN);
  }

  load();
  return {
    title: "Nodes",
    element: h("div", { class: "stack" }, h("div", { class: "head" }, h("h1", {}, "Nodes"), h("p", { class: "soft" }, "A node that says nothing for 5 s counts as gone; others take over what it had.")),
      h("section", { class: "card flush", "aria-label": "Nodes" }, list)),
    leave() { ended = true; clearTimeout(timer); },
  };
}
