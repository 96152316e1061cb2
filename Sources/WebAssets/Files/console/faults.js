// Faults on purpose, streams, and the end.

import { h, ask, attempt, button, card, choice, empty, field, pill, problem, table, toast, values } from "./dom.js";
import { api, get, part } from "./api.js";
import { ago, count, day } from "./format.js";
import { projects } from "./shell.js";

const KINDS = {
  nack: "refuse with a code", drop_ack: "take it, never answer", unavailable: "store it, say 503", cut: "take it, cut off",
  drain: "take it, drain", half_open: "fall silent", delay: "answer late",
};
const CODES = ["SERVICE_UNAVAILABLE", "INTERNAL_SERVER_ERROR", "DEVICE_MESSAGE_RATE_EXCEEDED", "TOPICS_MESSAGE_RATE_EXCEEDED", "DEVICE_UNREGISTERED", "BAD_REGISTRATION", "INVALID_JSON", "SENDER_ID_MISMATCH", "CONNECTION_DRAINING"];

export function faults() {
  const armed = h("div"), streams = h("div");
  const only = (kinds, element) => { element.dataset.kinds = kinds; return element; };
  const form = h("form", { class: "grid", oninput: shape, onsubmit: attempt(async () => {
    const given = values(form), body = { kind: given.kind };
    for (const name of ["message", "count", "delay_ms", "status"]) if (given[name] && !form.elements[name].closest("label").hidden) body[name] = Number(given[name]);
    for (const name of ["project", "token", "retry_after"]) if (given[name]) body[name] = given[name];
    if (given.kind === "nack") body.code = given.code;
    await api("POST", "faults", body);
    toast("Armed.");
    load();
  }) },
  choice("What goes wrong", "kind", Object.entries(KINDS), "nack"), only("nack", choice("Code", "code", CODES.map((code) => [code, code]), CODES[0])),
  only("unavailable", field("HTTP status", "status", { type: "number", min: 400, max: 599, value: 503 })),
  field("First message", "message", { type: "number", min: 1, value: 1 }, "counted from now"), field("How many", "count", { type: "number", min: 0, value: 1 }, "0: until it is disarmed"),
  field("Delay, ms", "delay_ms", { type: "number", min: 0, max: 600000, placeholder: "0" }), field("Retry-After", "retry_after", { placeholder: "none" }, "right or wrong: 5, -1, abc"),
  choice("Only of project", "project", [["", "any"], ...projects.map(({ id }) => [id, id])], ""), field("Only to token", "token", { placeholder: "any" }),
  h("p", { class: "buttons" }, h("button", { class: "primary" }, "Arm the fault")));
  function shape() {
    for (const element of form.querySelectorAll("[data-kinds]")) element.hidden = element.dataset.kinds !== form.elements.kind.value;
    form.elements.delay_ms.required = form.elements.kind.value === "delay";
  }
  shape();

  async function load() {
    try {
      const found = (await get("faults")).faults;
      armed.replaceChildren(found.length ? h("div", {}, table("Armed faults", ["Kind", "From message", "Left", "Only", "Delay", ""], found.map((row) => ({ cells: [
        h("span", {}, h("b", {}, row.kind.replaceAll("_", " ")), row.code && h("small", { class: "code" }, row.code)), count(row.message), row.count === 0 ? "all" : count(row.count),
        [row.sender_id, row.token?.slice(0, 16)].filter(Boolean).join(", ") || "everybody", row.delay_ms ? `${row.delay_ms} ms` : null,
        button("Disarm", attempt(async () => { await api("DELETE", `faults/${part(row.id)}`); load(); }))] }))),
      h("p", { class: "buttons inset" }, button("Disarm all", attempt(async () => { await api("DELETE", "faults"); load(); }))))
        : empty("No fault is armed", "Messages go their way."));
      const open = (await get("streams", { kind: "app_server", max: 200 })).streams;
      streams.replaceChildren(open.length ? table("Streams of app servers", ["Sender id", "From", "Since", "Pending", "Upstream", "", ""], open.map((row) => ({ cells: [
        h("code", {}, row.sender_id), row.peer, h("time", { title: day(row.since) }, ago(row.since)), count(row.pending), count(row.upstream_pending), row.draining ? pill("draining", "expired") : pill("open", "delivered"),
        row.draining ? "" : button("Drain", attempt(async () => { await api("POST", "drain", { stream: row.stream }); toast("Told to go elsewhere."); load(); }))] })))
        : empty("No app server is connected", "Streams of app servers appear here; HTTP has none."));
    } catch (error) {
      armed.replaceChildren(problem(error, load));
      streams.replaceChildren();
    }
  }
  load();
  const timer = setInterval(load, 5000);
  return {
    title: "Faults and drain",
    element: h("div", { class: "stack" }, h("div", { class: "head" }, h("h1", {}, "Faults and drain")),
      card("Make something go wrong", h("p", { class: "soft" }, "To see what your sender does then. It befalls real messages of everybody it matches."), form),
      h("section", { class: "card flush", "aria-label": "Armed" }, h("h2", { class: "inset" }, "Armed"), armed),
      h("section", { class: "card flush", "aria-label": "Streams of app servers" }, h("h2", { class: "inset" }, "Streams of app servers"), streams),
      card("Drain the server", h("p", { class: "soft" }, "Streams are told, what is under way is finished, and the process ends. Something else has to start it again."),
        h("p", { class: "buttons" }, button("Drain and end", attempt(async () => {
          if (!await ask("Drain the whole server?", "New messages are refused from now on, and the process ends.", "Drain and end", "drain")) return;
          await api("POST", "drain");
          toast("Draining.");
        }), "danger")))),
    leave() { clearInterval(timer); },
  };
}
