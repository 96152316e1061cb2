// The live tail of messages, and the history of one.

import { $, h, attempt, button, card, choice, empty, field, opens, pill, problem, sheet, shortID, table, values } from "./dom.js";
import { feed } from "./feed.js";
import { get, part } from "./api.js";
import { ago, clock, count, day, span } from "./format.js";
import { projects } from "./shell.js";

export const STATES = ["accepted", "stored", "in_flight", "delivered", "nacked", "expired", "collapsed", "dropped_overflow", "dropped_unregistered", "dropped_offline"];
const SAID = {
  accepted: "taken from its sender", stored: "durable, waiting for its device", in_flight: "handed to the device's stream", delivered: "acked by its device",
  nacked: "refused", expired: "its time to live ran out", collapsed: "a newer one took its place", dropped_overflow: "dropped: too many waited",
  dropped_unregistered: "dropped: its registration went away", dropped_offline: "dropped: time to live 0, and the device was away",
  fanning_out: "on its way to the subscribers", fanned_out: "every subscriber was visited", received: "arrived", dry_run: "validated only",
};

export const statePill = (name) => pill(name.replace("dropped_", "dropped: ").replaceAll("_", " "), name.startsWith("dropped") ? "dropped" : name);

function target(step) {
  if (!step.target) return step.device ? h("span", { class: "soft" }, `device ${step.device}`) : null;
  return step.target.startsWith("/") || step.target.length < 30 ? step.target : shortID(step.target, 10);
}

function row(step) {
  const cells = [
    ["time", h("time", {}, clock(step.at))], ["state", h("span", {}, statePill(step.state), step.code && h("small", { class: "code" }, step.code))],
    ["way", h("span", { title: step.direction, "aria-label": step.direction }, step.direction === "upstream" ? "↑" : "↓")],
    ["message", step.message_id ? h("b", {}, step.message_id) : step.device_message_id ? h("code", { class: "soft" }, step.device_message_id.slice(0, 12) + "…") : null],
    ["to", target(step)], ["sender", step.sender_id],
  ];
  const element = h("div", { class: "step", role: "row" }, cells.map(([name, cell]) => h("span", { class: name, role: "cell" }, cell ?? "")));
  if (step.direction === "downstream" && (step.device_message_id || step.message_id)) opens(element, () => openHistory(step));
  return element;
}

/** The history of a message, by what is known of it. */
export function openHistory({ sender_id: sender, message_id: id, device_message_id: deviceID, ...step }) {
  if (step.state === "nacked") {
    const facts = [["Message id", id], ["Sender id", sender], ["To", step.target], ["At", clock(step.at)]];
    sheet("One message", [h("p", {}, statePill("nacked"), " ", h("b", {}, step.code)), h("dl", { class: "facts" }, facts.filter(([, value]) => value).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, h("code", {}, value))])),
      h("p", { class: "soft" }, "It was not taken, so nothing else is known of it. Its sender was told why.")]);
    return;
  }
  const body = h("div", { class: "stack" }, h("p", { class: "soft" }, "Looking…"));
  sheet("One message", body);
  const load = async () => {
    try {
      const found = deviceID ? await get("messages", { device_message_id: deviceID }) : await get(`messages/${part(sender)}/${part(id)}`);
      body.replaceChildren(...historyOf(found));
    } catch (error) {
      body.replaceChildren(problem(error, load));
    }
  };
  load();
}

function historyOf(found) {
  const first = found.history[0]?.at;
  const facts = [["Message id", found.message_id], ["Sender id", found.sender_id], ["Goes to", found.target ?? found.fanout?.audience], ["The device sees", found.device_message_id]];
  return [
    h("p", {}, statePill(found.state), " ", h("span", { class: "soft" }, SAID[found.state] ?? "")),
    h("dl", { class: "facts" }, facts.filter(([, value]) => value).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, h("code", {}, value))])),
    found.fanout && h("dl", { class: "facts" }, Object.entries(found.fanout).filter(([, value]) => typeof value === "number" && value < 1e11).flatMap(([name, value]) => [h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, count(value))])),
    timeline(found.history, first),
    ...(found.stored ?? []).map((stored) => h("p", { class: "soft small" }, `Stored: ${stored.bytes} bytes, ${stored.priority} priority, until ${day(stored.expires)}`)),
    h("p", { class: "buttons" }, button("Look again", () => { document.querySelector("dialog[open]")?.close(); openHistory(found); })),
  ].filter(Boolean);
}

/** Steps with what passed since `first`; null tells no such times. */
export function timeline(steps, first = null) {
  if (!steps.length) return h("p", { class: "soft calm" }, "No step is remembered.");
  return h("ol", { class: "timeline" }, steps.map((step, index) => h("li", { class: `is-${step.state.startsWith("dropped") ? "dropped" : step.state}` },
    h("div", {}, statePill(step.state), h("small", { class: "soft" }, SAID[step.state] ?? "")),
    h("time", { title: day(step.at) }, clock(step.at), index > 0 && first !== null ? h("b", {}, ` ${span(step.at - first)}`) : ""))));
}

export function messages() {
  const chosen = feed.filter;
  const form = h("form", { class: "filters", "aria-label": "Filters", onsubmit: (event) => event.preventDefault() },
    choice("Sender", "sender_id", [["", "any"], ...projects.map((one) => [one.sender_id, `${one.id} (${one.sender_id})`])], chosen.sender_id ?? ""),
    field("Token", "token", { value: chosen.token ?? "", placeholder: "any device" }),
    field("Topic", "topic", { value: chosen.topic ?? "", placeholder: "any" }),
    choice("State", "state", [["", "any"], ...STATES.map((name) => [name, name.replaceAll("_", " ")])], chosen.state ?? ""),
    choice("Way", "direction", [["", "both"], ["downstream", "downstream"], ["upstream", "upstream"]], chosen.direction ?? ""));
  const trouble = h("p", { class: "problem", role: "alert", hidden: true });
  const note = h("p", { class: "soft small", role: "status" });
  const hold = button("Pause", () => { feed.hold(!feed.isHeld); }, "primary");
  const rows = h("div", { role: "rowgroup" });
  const heads = h("div", { class: "step heads", role: "row" }, [["time", "Time"], ["state", "State"], ["way", ""], ["message", "Message"], ["to", "Target"], ["sender", "Sender"]].map(([name, head]) => h("span", { class: name, role: "columnheader" }, head)));
  let timer = 0;
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => { trouble.hidden = true; feed.choose(Object.fromEntries(Object.entries(values(form)).map(([name, text]) => [name, text.trim()]))); }, 300);
  });

  const none = empty("Nothing yet", "Steps of messages appear here as they happen.");
  function update({ detail }) {
    hold.textContent = feed.isHeld ? (feed.held ? `Go on (${count(feed.held)} new)` : "Go on") : "Pause";
    const isChosen = Object.keys(feed.filter).length > 0;
    note.textContent = feed.isHeld ? "Paused. What happens meanwhile is counted, not kept."
      : feed.every > 1 ? `Busy: one message in ${count(feed.every)} is shown, with all its steps. Filters show all that match.`
        : feed.leftOut > 0 ? `${count(feed.leftOut)} steps of the last second had no room here. The messages went their way all the same.`
          : isChosen ? "Everything that matches is shown." : "Everything is shown.";
    if (feed.isHeld) return;
    if (!feed.tail.length) return rows.replaceChildren(none);
    if (detail === null || rows.contains(none) || !detail.length || !feed.tail.includes(detail.at(-1)) || rows.childElementCount === 0) {
      if (detail?.length !== 0 || rows.contains(none) || rows.childElementCount === 0) rows.replaceChildren(...feed.tail.map(row));
      return;
    }
    rows.prepend(...detail.map(row));
    while (rows.childElementCount > feed.tail.length) rows.lastElementChild.remove();
  }
  const refused = ({ detail }) => { trouble.textContent = detail; trouble.hidden = false; };
  feed.addEventListener("steps", update);
  feed.addEventListener("problem", refused);
  update({ detail: null });

  const one = h("form", { class: "filters", "aria-label": "One message", onsubmit: attempt(async () => {
    const { sender, id } = values(one);
    openHistory({ sender_id: sender, message_id: id });
  }) }, choice("Sender", "sender", projects.map(({ id, sender_id: sender }) => [sender, `${id} (${sender})`])), field("Message id", "id", { required: true }), h("button", {}, "Show its history"));

  return {
    title: "Messages",
    element: h("div", { class: "stack" }, h("div", { class: "head" }, h("h1", {}, "Messages"), hold),
      h("section", { class: "card flush", "aria-label": "Live tail" }, h("div", { class: "inset" }, form, trouble, note),
        h("div", { class: "steps", role: "table", "aria-label": "Steps of messages, newest first", tabindex: "0" }, heads, rows)),
      card("The history of one message", one)),
    leave() {
      feed.removeEventListener("steps", update);
      feed.removeEventListener("problem", refused);
    },
  };
}
