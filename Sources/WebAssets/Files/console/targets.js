// Topics, device groups and users.

import { h, ask, attempt, button, empty, field, problem, sheet, shortID, table, toast, values } from "./dom.js";
import { api, get, part } from "./api.js";
import { ago, count, day } from "./format.js";
import { PagedList } from "./lists.js";
import { go, project } from "./shell.js";
import { openDevice, platformName } from "./devices.js";

const inProject = () => `?project=${part(project()?.id ?? "")}`;
const tokensIn = (text) => text.split(/[\s,]+/).filter(Boolean);

const receivers = (label, rows) => table(label, ["Token", "App", "Platform", "User", "Last seen"], rows.map((row) => ({
  open: () => openDevice(row.token), cells: [shortID(row.token), row.app, platformName(row.platform), row.user, ago(row.last_seen)],
})));

function view(title, action, list) {
  return { title, element: h("div", { class: "stack" }, h("div", { class: "head" }, h("h1", {}, title), action), h("section", { class: "card flush", "aria-label": title }, list.element)) };
}

const tokensField = (label = "Tokens, one a line") => h("label", {}, h("span", {}, label), h("textarea", { name: "tokens", required: true, rows: 4, spellcheck: "false" }));

/** A form in a box; what it does gets the values. */
function ask4(title, verb, fields, act) {
  const form = h("form", { class: "stack", onsubmit: attempt(async () => { await act(values(form)); dialog.close(); }) }, fields, h("p", { class: "buttons" }, h("button", { class: "primary" }, verb)));
  const dialog = sheet(title, form, "box");
}

// Topics

export function topics() {
  const list = new PagedList({
    path: "topics", name: "topics", none: empty("No topic has a subscriber", "A topic is there while somebody is subscribed to it."),
    show: (rows) => {
      const largest = Math.max(...rows.map(({ subscribers }) => subscribers), 1);
      return table("Topics", ["Topic", "Subscribers", ""], rows.map((row) => {
        const bar = h("i", { class: "bar b1" });
        bar.style.inlineSize = `${(row.subscribers / largest) * 100}%`;
        return { open: () => openTopic(row.topic, () => list.reload()), cells: [h("b", {}, row.topic), h("span", { class: "share" }, h("span", {}, count(row.subscribers)), h("span", {}, bar)),
          button("Compose", () => go("compose", { to: `/topics/${row.topic}` }))] };
      }));
    },
  });
  const under = h("section", { class: "card flush", "aria-label": "On their way", hidden: true });
  const look = async () => {
    try {
      const found = (await get("fanouts")).fanouts;
      under.hidden = found.length === 0;
      under.replaceChildren(h("h2", { class: "inset" }, "On their way to subscribers"), table("On their way", ["To", "Begun", "Found", "Delivered", "Waiting", "State"], found.slice(-50).toReversed().map((row) => ({
        cells: [h("b", {}, row.audience), ago(row.begun), count(row.matched), count(row.delivered ?? 0), count(row.waiting), row.state],
      }))));
    } catch { /* The list below says what is wrong. */ }
  };
  look();
  const timer = setInterval(look, 3000);
  const shown = view("Topics", button("Subscribe devices", () => change("subscribe", null, () => list.reload()), "primary"), list);
  shown.element.append(under);
  return { ...shown, leave() { clearInterval(timer); } };
}

function change(verb, topic, done) {
  const title = verb === "subscribe" ? "Subscribe devices" : "Unsubscribe devices";
  ask4(title, title, [topic ? null : field("Topic", "topic", { required: true, pattern: "[a-zA-Z0-9_.~%\\-]+" }), tokensField()], async (given) => {
    const name = topic ?? given.topic;
    const answer = await api("POST", `topics/${part(name)}/${verb}`, { project: project()?.id, tokens: tokensIn(given.tokens) });
    toast(`${count(answer.changed)} changed${answer.failed ? `, ${answer.failed} failed: ${answer.results.find(({ outcome }) => !outcome.includes("changed"))?.outcome.replaceAll("_", " ")}` : ""}.`, answer.failed ? "bad" : "good");
    done();
  });
}

function openTopic(topic, changed) {
  const list = new PagedList({ path: `topics/${part(topic)}`, name: "subscribers", show: (rows) => receivers("Subscribers", rows), none: empty("Nobody", "The topic has no subscriber.") });
  const done = () => { list.reload(); changed(); };
  sheet(`Topic ${topic}`, [h("p", { class: "buttons" }, button("Compose to it", () => { document.querySelector("dialog[open]")?.close(); go("compose", { to: `/topics/${topic}` }); }, "primary"),
    button("Subscribe", () => change("subscribe", topic, done)), button("Unsubscribe", () => change("unsubscribe", topic, done))), list.element]);
}

// Groups

export function groups() {
  const list = new PagedList({
    path: "groups", name: "groups", none: empty("No device group", "A group is a few devices of one user under one key."),
    show: (rows) => table("Groups", ["Name", "Notification key", "Members", "Made", ""], rows.map((row) => ({
      open: () => openGroup(row.name, () => list.reload()),
      cells: [h("b", {}, row.name), shortID(row.notification_key), count(row.members.length), day(row.created_at), button("Compose", () => go("compose", { to: row.notification_key }))],
    }))),
  });
  return view("Groups", button("Make a group", () => ask4("Make a group", "Make it", [field("Name", "name", { required: true }), tokensField("Tokens of its members, one a line")], async ({ name, tokens }) => {
    await api("POST", "groups", { project: project()?.id, name, tokens: tokensIn(tokens) });
    list.reload();
  }), "primary"), list);
}

function openGroup(name, changed) {
  const body = h("div", { class: "stack" });
  const dialog = sheet(`Group ${name}`, body);
  const load = async () => {
    try {
      const group = await get(`groups/${part(name)}`, { project: project()?.id });
      body.replaceChildren(h("dl", { class: "facts" }, h("dt", {}, "Notification key"), h("dd", {}, h("code", {}, group.notification_key))),
        h("p", { class: "buttons" }, button("Compose to it", () => { dialog.close(); go("compose", { to: group.notification_key }); }, "primary"), button("Add members", () => ask4("Add members", "Add", [tokensField()], async ({ tokens }) => {
          await api("POST", `groups/${part(name)}/add`, { project: project()?.id, tokens: tokensIn(tokens) });
          changed();
          load();
        }))),
        table("Members", ["Token", ""], group.members.map((token) => ({ open: () => openDevice(token), cells: [shortID(token, 24), button("Remove", attempt(async () => {
          if (!await ask("Remove this member?", group.members.length === 1 ? "It is the last one: the group goes with it." : "The others stay.", "Remove")) return;
          const answer = await api("POST", `groups/${part(name)}/remove`, { project: project()?.id, tokens: [token] });
          changed();
          if (answer.state === "deleted") dialog.close(); else load();
        }), "danger")] }))));
    } catch (error) {
      body.replaceChildren(problem(error, load));
    }
  };
  load();
}

// Users

export function users() {
  const list = new PagedList({
    path: "users", name: "users", none: empty("No user", "A user is there while a device is registered for it."),
    show: (rows) => table("Users", ["User", "Devices", "Badge", ""], rows.map((row) => ({
      open: () => openUser(row.user, () => list.reload()),
      cells: [h("b", {}, row.user), count(row.registrations), row.badge ? h("span", { class: "badge" }, count(row.badge)) : "0", button("Compose", () => go("compose", { to: `/users/${row.user}` }))],
    }))),
  });
  return view("Users", null, list);
}

function openUser(user, changed) {
  const body = h("div", { class: "stack" });
  const dialog = sheet(`User ${user}`, body);
  const load = async () => {
    try {
      const found = await get(`users/${part(user)}`, { project: project()?.id });
      const form = h("form", { class: "filters", onsubmit: attempt(async () => {
        await api("PUT", `users/${part(user)}/badge${inProject()}`, { badge: Number(form.elements.badge.value) });
        toast("The badge is set.");
        changed();
        load();
      }) }, field("Badge", "badge", { type: "number", min: 0, required: true, value: found.badge }), h("button", {}, "Set the badge"));
      body.replaceChildren(h("p", { class: "buttons" }, button("Compose to it", () => { dialog.close(); go("compose", { to: `/users/${user}` }); }, "primary")), form, receivers("Devices", found.devices));
    } catch (error) {
      body.replaceChildren(problem(error, load));
    }
  };
  load();
}
