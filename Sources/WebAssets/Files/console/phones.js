// Simulated phones: real devices of this server, in this page, that show what they receive.

import { WeirDevice } from "/weir.js";
import { h, attempt, button, choice, copy, field, pill, segments, sheet, toast, values } from "./dom.js";
import { api, part } from "./api.js";
import { go, project } from "./shell.js";
import { APP_STATES, KINDS, frame, presentation } from "./phone.js";

const APP = "org.example.console";
const KEPT_MAX = 20;

/** One simulated phone; lives on while other views are looked at. */
class Phone extends EventTarget {
  notes = [];
  log = [];
  badge = null;
  state = "back";
  device = null;
  registration = null;

  constructor(kind, name) {
    super();
    Object.assign(this, { kind, name });
  }

  get isOn() { return this.device !== null; }

  /** Registers the phone at first; then connects as it. */
  async switchOn() {
    const { id, sender_id: senderID } = project();
    if (this.registration?.project !== id) {
      this.registration = { project: id, ...(await api("POST", "tokens", { project: id, app: APP, platform: this.kind })) };
    }
    const kept = new Map();
    const device = new WeirDevice({
      project: id, senderID, app: APP, platform: this.kind, notifications: false,
      storage: { getItem: (name) => (name.endsWith(":registration") ? JSON.stringify(this.registration) : kept.get(name) ?? null), setItem: (name, text) => kept.set(name, text), removeItem: (name) => kept.delete(name) },
    });
    device.addEventListener("message", ({ detail }) => this.receive(detail));
    device.addEventListener("deleted", ({ detail }) => { this.note("onDeletedMessages", `${detail} messages were dropped while it was away`); });
    device.addEventListener("state", () => this.tell());
    this.device = device;
    this.tell();
    try {
      await device.connect();
    } catch (error) {
      this.switchOff();
      throw error;
    }
  }

  switchOff() {
    this.device?.close();
    this.device = null;
    this.tell();
  }

  async throwAway() {
    this.switchOff();
    const { registration } = this;
    Object.assign(this, { registration: null, notes: [], log: [], badge: null });
    this.tell();
    if (registration) await api("DELETE", `tokens/${part(registration.token)}`);
  }

  receive(message) {
    const { note, badge, handed, why } = presentation(this.kind, message, this.state);
    if (badge !== undefined && badge !== null) this.badge = String(badge);
    if (note) {
      // One of the same tag takes the place of the one before.
      if (note.tag) this.notes = this.notes.filter(({ note: { tag } }) => tag !== note.tag);
      this.notes = [{ note, at: Date.now() }, ...this.notes].slice(0, KEPT_MAX);
    }
    this.note(handed ?? (note ? "shown" : "nothing"), [message.notification?.title, Object.entries(message.data ?? {}).map(([name, value]) => `${name}=${value}`).join(", ")].filter(Boolean).join(" · ") || why, why);
  }

  note(handed, text, why = "") {
    this.log = [{ handed, text, why }, ...this.log].slice(0, KEPT_MAX);
    this.tell();
  }

  clear() { Object.assign(this, { notes: [], badge: null }); this.tell(); }
  tell() { this.dispatchEvent(new Event("changed")); }
}

const known = KINDS.map(([kind, name]) => new Phone(kind, name));

function panel(phone) {
  const screen = h("div"), status = h("p", { class: "status" }), buttons = h("div", { class: "buttons" }), said = h("ul", { class: "plain said" });
  const draw = () => {
    const state = phone.device?.state;
    screen.replaceChildren(frame(phone.kind, { isOn: phone.isOn, state: phone.state, badge: phone.badge, app: "Example", log: phone.log.filter(({ handed }) => handed !== "nothing" && handed !== "shown").slice(0, 6),
      notes: phone.notes.slice(0, 3).map(({ note }) => ({ note, when: "now" })) }));
    status.replaceChildren(pill(!phone.isOn ? "off" : state, state === "connected" ? "delivered" : phone.isOn ? "expired" : "stored"));
    buttons.replaceChildren(...(phone.isOn
      ? [button("Send it a message", () => go("compose", { to: phone.registration.token }), "primary"), button("Upstream", () => upstream(phone)), button("Copy its token", () => copy(phone.registration.token)), button("Clear", () => phone.clear()), button("Switch off", () => phone.switchOff())]
      : [button("Switch on", attempt(() => phone.switchOn()), "primary"), phone.registration && button("Throw away", attempt(() => phone.throwAway()), "danger")].filter(Boolean)));
    said.replaceChildren(...phone.log.slice(0, 4).map(({ handed, text, why }) => h("li", {}, h("b", {}, handed), " ", h("span", {}, text), why && h("small", { class: "soft" }, why))));
  };
  phone.addEventListener("changed", draw);
  draw();
  const element = h("section", { class: "card simulated", "aria-label": phone.name }, h("header", {}, h("h2", {}, phone.name), status), screen,
    segments("The app is", `state-${phone.kind}`, APP_STATES, phone.state, (name) => { phone.state = name; draw(); }), buttons, said);
  return { element, leave: () => phone.removeEventListener("changed", draw) };
}

function upstream(phone) {
  const form = h("form", { class: "stack", onsubmit: attempt(async () => {
    await phone.device.send({ text: values(form).text });
    dialog.close();
    toast("Acked: an app server, or the store, has it.");
  }) }, field("Text", "text", { required: true, value: `Hello from the ${phone.name}` }), h("p", { class: "buttons" }, h("button", { class: "primary" }, "Send upstream")));
  const dialog = sheet("Send upstream", form, "box");
}

export function phones() {
  const panels = known.map(panel);
  return {
    title: "Phones",
    element: h("div", { class: "stack" }, h("div", { class: "head" }, h("h1", {}, "Phones"), h("p", { class: "soft" }, "Real devices of this server that live in this page. They ack what they get, and stay on while you look at other views.")),
      h("div", { class: "rack" }, panels.map(({ element }) => element))),
    leave() { for (const one of panels) one.leave(); },
  };
}
