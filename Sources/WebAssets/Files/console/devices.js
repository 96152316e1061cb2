// Registrations and what can be done with one.

import { h, ask, attempt, button, card, choice, copy, empty, field, pill, problem, reveal, sheet, shortID, table, toast, values } from "./dom.js";
import { api, get, part } from "./api.js";
import { ago, count, day } from "./format.js";
import { PagedList } from "./lists.js";
import { go, project } from "./shell.js";
import { openHistory, statePill, timeline } from "./messages.js";

const PLATFORMS = [["android", "Android"], ["ios", "iOS"], ["web", "web"], ["linux", "Linux"]];
export const platformName = (name) => PLATFORMS.find(([key]) => key === name)?.[1] ?? name;

const presence = (row) => row.state !== "active" ? pill(row.state, "nacked") : row.connected ? pill("connected", "delivered") : pill("away", "stored");

export const registrationTable = (rows, reload) => table("Registrations", ["", "Token", "App", "Platform", "User", "Last seen"], rows.map((row) => ({
  open: () => openDevice(row.token, reload),
  cells: [presence(row), shortID(row.token), row.app, platformName(row.platform), row.user, h("time", { title: day(row.last_seen) }, row.connected ? "now" : ago(row.last_seen))],
})));

export function devices(query) {
  const list = new PagedList({
    path: "tokens", name: "tokens", query: query.get("starting") ? { starting: query.get("starting") } : {},
    show: (rows) => registrationTable(rows, () => list.reload()),
    none: empty("No registration here", "Devices appear when their app registers. You can register one yourself, to try things out."),
  });
  let timer = 0;
  const search = h("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault(), oninput: () => {
    clearTimeout(timer);
    timer = setTimeout(() => list.begin({ starting: search.elements.starting.value.trim() }), 250);
  } }, field("Token begins with", "starting", { type: "search", value: query.get("starting") ?? "" }));
  if (query.get("token")) openDevice(query.get("token"), () => list.reload());
  return {
    title: "Devices",
    element: h("div", { class: "stack" }, h("div", { class: "head" }, h("h1", {}, "Devices"), button("Register a device", () => register(() => list.reload()), "primary")),
      h("section", { class: "card flush", "aria-label": "Registrations" }, h("div", { class: "inset" }, search), list.element)),
  };
}

function register(done) {
  const form = h("form", { class: "stack", onsubmit: attempt(async () => {
    const made = await api("POST", "tokens", { project: project()?.id, ...values(form) });
    dialog.close();
    reveal("Registered. The secret is shown once.", JSON.stringify(made, null, 2));
    done();
  }) }, field("App", "app", { required: true, value: "org.example.app" }), choice("Platform", "platform", PLATFORMS, "android"),
  field("User", "user", { placeholder: "nobody" }), h("p", { class: "buttons" }, h("button", { class: "primary" }, "Register")));
  const dialog = sheet("Register a device", form, "box");
}

/** One registration: who it is, what it was sent, and what to do with it. */
export function openDevice(token, changed = () => {}) {
  const body = h("div", { class: "stack" }, h("p", { class: "soft" }, "Looking…"));
  const dialog = sheet("Device", body);
  const load = async () => {
    try {
      const [row, sent, handed] = await Promise.all([get(`tokens/${part(token)}`), get("messages", { token, max: 100 }), get(`devices/${part(token)}/messages`, { max: 20 })]);
      body.replaceChildren(...content(row, sent, handed));
    } catch (error) {
      body.replaceChildren(problem(error, load));
    }
  };

  const content = (row, sent, handed) => [
    h("p", {}, presence({ ...row, connected: handed.connected }), " ", h("span", { class: "soft" }, `${platformName(row.platform)}, device ${row.device}`)),
    h("dl", { class: "facts" }, [["Token", h("code", {}, row.token)], ["App", row.app], ["User", row.user], ["Sender id", row.sender_id], ["New token", row.canonical && h("code", {}, row.canonical)],
      ["Registered", day(row.registered_at)], ["Last seen", handed.connected ? "now" : `${day(row.last_seen)} (${ago(row.last_seen)})`],
      ["Waiting for it", `${count(sent.stored.length)}${sent.more_stored ? " and more" : ""} messages`], ["Told of overflow", sent.overflowed ? `${sent.overflowed} dropped` : null]]
      .filter(([, value]) => value).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    h("p", { class: "buttons" }, button("Compose to it", () => { dialog.close(); go("compose", { to: row.token }); }, "primary"), button("Copy the token", () => copy(row.token)),
      row.state === "active" && button("Send upstream as it", () => upstream(row)), row.state === "active" && button("Subscribe to a topic", () => subscribe(row)),
      row.state === "active" && button("Unregister", attempt(async () => {
        if (!await ask("Unregister this device?", "Messages that wait for it are dropped, and sends to its token are refused from now on.", "Unregister")) return;
        await api("DELETE", `tokens/${part(row.token)}`);
        toast("Unregistered.");
        changed();
        load();
      }), "danger")),
    card("Handed to it of late", handed.messages.length || handed.waiting.length ? h("ul", { class: "plain" },
      handed.waiting.map((message) => entry(message, "stored")), handed.messages.toReversed().map(({ message, state, at }) => entry(message, state, at)))
      : h("p", { class: "soft calm" }, "Nothing is remembered.")),
    card("Steps of its messages", timeline(sent.history.slice(-40).toReversed())),
  ];

  const entry = (message, state, at = null) => h("li", {}, h("details", {},
    h("summary", {}, statePill(state), " ", h("b", {}, message.notification?.title ?? Object.keys(message.data ?? {}).join(", ") ?? "message"), at && h("time", { class: "soft" }, ` ${ago(at)}`)),
    h("pre", {}, JSON.stringify(message, null, 2)), button("History", () => openHistory({ device_message_id: message.message_id }))));

  function upstream(row) {
    const form = h("form", { class: "stack", onsubmit: attempt(async () => {
      const { id, data } = values(form);
      const answer = await api("POST", `devices/${part(row.token)}/upstream`, { message_id: id, data: { text: data } });
      inner.close();
      toast(answer.outcome === "ack" ? "Acked: an app server, or the store, has it." : answer.error, answer.outcome === "ack" ? "good" : "bad");
    }) }, field("Message id", "id", { required: true, value: `u-${Date.now().toString(36)}` }), field("Text", "data", { required: true, value: "Hello from a device" }),
    h("p", { class: "buttons" }, h("button", { class: "primary" }, "Send upstream")));
    const inner = sheet("Send upstream in its name", form, "box");
  }

  function subscribe(row) {
    const form = h("form", { class: "stack", onsubmit: attempt(async () => {
      const { topic } = values(form);
      const answer = await api("POST", `topics/${part(topic)}/subscribe`, { project: project()?.id, tokens: [row.token] });
      inner.close();
      toast(`Topic ${topic}: ${answer.results[0].outcome.replaceAll("_", " ")}.`);
    }) }, field("Topic", "topic", { required: true, pattern: "[a-zA-Z0-9_.~%\\-]+" }), h("p", { class: "buttons" }, h("button", { class: "primary" }, "Subscribe")));
    const inner = sheet("Subscribe to a topic", form, "box");
  }
  load();
}
