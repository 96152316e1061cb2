// The console: what a Weir server does, for the person who runs it.
const $ = (id) => document.getElementById(id);
const HISTORY_MAX = 120;
const TAIL_MAX = 200;

let key = sessionStorage.getItem("weir-admin-key") ?? "";
let feed = null;
let history = [];
let tail = [];
let choice = {};
let view = "overview";
let projects = [];
let isTailHeld = false;

// Small things

function make(name, attributes = {}, ...children) {
  const element = name === "svg" || SVG.has(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (attribute.startsWith("on")) element.addEventListener(attribute.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(attribute, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}
const SVG = new Set(["polyline", "line", "text"]);
const number = (value) => value === null || value === undefined ? "–" : value >= 1e6 ? (value / 1e6).toFixed(1) + " M" : value >= 1e4 ? (value / 1e3).toFixed(1) + " k" : String(Math.round(value));
const ms = (us) => us === null || us === undefined ? "–" : us >= 1e6 ? (us / 1e6).toFixed(1) + " s" : (us / 1e3).toFixed(us < 1e4 ? 2 : 0) + " ms";
const clock = (at) => new Date(at).toLocaleTimeString();

async function api(method, path, body) {
  const answer = await fetch("/admin/v1/" + path, {
    method, headers: { authorization: "Bearer " + key, ...(body ? { "content-type": "application/json" } : {}) },
    body: body ? JSON.stringify(body) : undefined,
  });
  const text = await answer.text();
  const value = text ? JSON.parse(text) : {};
  if (!answer.ok) throw new Error(value.error?.message ?? `${answer.status}`);
  return value;
}

function section(title, ...children) {
  return make("section", { "aria-label": title }, make("h2", {}, title), ...children);
}

function wide(element) {
  element.classList.add("wide");
  return element;
}

function table(heads, rows) {
  return make("div", { class: "table", tabindex: 0, role: "region", "aria-label": "table" },
    make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
      make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell ?? "–")))))));
}

const state = (name) => make("span", { class: "state " + name }, name);
const short = (text, count = 24) => make("code", { title: text }, text.length > count ? text.slice(0, count) + "…" : text);
const button = (label, action, kind) => make("button", { type: "button", class: kind, onclick: action }, label);
const field = (label, name, options = {}) => make("label", {}, label, make("input", { name, autocomplete: "off", ...options }));

/** Runs an action of a button and tells what went wrong. */
function attempt(action, after = () => show()) {
  return async (event) => {
    event?.preventDefault();
    try {
      await action(event);
      await after();
    } catch (error) {
      $("state").textContent = error.message;
    }
  };
}

// Charts

function chart(title, series, format = number) {
  const width = 600, height = 160, top = 8;
  const largest = Math.max(1, ...series.flatMap(({ values }) => values.filter((value) => value !== null)));
  const x = (index) => ((index + HISTORY_MAX - series[0].values.length) / (HISTORY_MAX - 1)) * width;
  const y = (value) => height - (value / largest) * (height - top);
  const drawing = make("svg", { class: "chart", viewBox: `0 0 ${width} ${height + 14}`, preserveAspectRatio: "none", role: "img",
    "aria-label": series.map(({ name, values }) => `${name}: ${format(values.at(-1))}`).join(", ") });
  for (const part of [0, 0.5, 1]) drawing.append(make("line", { class: "grid", x1: 0, x2: width, y1: y(largest * part), y2: y(largest * part) }));
  drawing.append(make("text", { x: 0, y: top + 10 }, format(largest)));
  for (const { values, color } of series) {
    const points = values.map((value, index) => value === null ? null : `${x(index).toFixed(1)},${y(value).toFixed(1)}`).filter(Boolean);
    drawing.append(make("polyline", { points: points.join(" "), stroke: color }));
  }
  const legend = make("ul", { class: "legend" }, ...series.map(({ name, values, color }) => {
    const mark = make("i");
    mark.style.background = color;
    return make("li", {}, mark, `${name} ${format(values.at(-1))}`);
  }));
  return section(title, drawing, legend);
}

const COLORS = ["#2f80ed", "#12a150", "#e0821c", "#c2407a", "#7a5af8"];
/** How much a counter grew each second. */
const rates = (take) => history.map((now, index) => index === 0 ? 0 : Math.max(0, ((take(now) - take(history[index - 1])) * 1000) / Math.max(1, now.at - history[index - 1].at)));

// Views

const VIEWS = {
  overview: ["Overview", () => {
    const now = history.at(-1);
    if (!now) return [section("Waiting for the first figures")];
    const figures = { Devices: now.devices, "App servers": now.app_servers, Connections: now.connections, Registrations: now.registrations,
      "Messages stored": now.stored, "In the store's queue": now.store_queue, "Memory, MB": now.resident / 1e6 };
    const lines = (names) => names.map(([name, take], index) => ({ name, color: COLORS[index], values: rates(take) }));
    const nacks = Object.entries(now.nacks).sort((a, b) => b[1] - a[1]);
    return [
      wide(make("dl", { class: "figures" }, ...Object.entries(figures).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, number(value)))))),
      chart("Messages a second", lines([["accepted", (at) => at.downstream.accepted], ["delivered", (at) => at.downstream.delivered], ["nacked", (at) => at.downstream.nacked], ["upstream", (at) => at.upstream.accepted]])),
      chart("Time to accept a message", [["p50", "p50"], ["p99", "p99"], ["p99.9", "p999"]].map(([name, part], index) => ({ name, color: COLORS[index], values: history.map((at) => at.accept_us[part]) })), ms),
      chart("Time to the device's ack", [["p50", "p50"], ["p99", "p99"], ["p99.9", "p999"]].map(([name, part], index) => ({ name, color: COLORS[index], values: history.map((at) => at.delivery_us[part]) })), ms),
      chart("Connected", [{ name: "devices", color: COLORS[0], values: history.map((at) => at.devices) }, { name: "app servers", color: COLORS[1], values: history.map((at) => at.app_servers) }]),
      section("Nacks since the start", nacks.length ? table(["Code", "Count"], nacks.map(([code, count]) => [code, number(count)])) : make("p", {}, "None.")),
      section("Server", make("p", {}, now.draining ? "It is draining." : "It takes messages."),
        make("p", { class: "buttons" }, button("Drain and stop", attempt(async () => {
          if (confirm("The server will end when it has drained. Go on?")) await api("POST", "drain");
        }), "danger"))),
    ];
  }],
  live: ["Live", () => {
    const choose = make("form", { class: "row", onsubmit: (event) => {
      event.preventDefault();
      choice = Object.fromEntries([...new FormData(event.target)].filter(([, value]) => value !== ""));
      if (choice.device) choice.device = Number(choice.device);
      tail = [];
      feed?.send(JSON.stringify(choice));
      show();
    } }, field("Sender id", "sender", { value: choice.sender ?? "" }), field("Device number", "device", { value: choice.device ?? "", inputmode: "numeric" }),
    make("label", {}, "State", make("select", { name: "state" }, ...["", "accepted", "stored", "in_flight", "delivered", "nacked", "expired", "collapsed", "dropped_overflow", "dropped_unregistered", "dropped_offline"].map((name) => make("option", { value: name, selected: name === (choice.state ?? "") }, name || "any")))),
    make("button", {}, "Filter"), button(isTailHeld ? "Go on" : "Hold", () => { isTailHeld = !isTailHeld; show(); }));
    return [wide(section("Steps of messages, newest first", choose, make("p", {}, "At most 50 a second of each loop; the rest is left out here, never on the way."),
      table(["Time", "State", "Sender", "Device", "Message, as the device knows it"], tail.map((step) => [clock(step.at), state(step.state), step.sender, String(step.device), short(step.id, 32)]))))
    , wide(section("One message", make("form", { class: "row", onsubmit: attempt(async (event) => {
      const { sender, id } = Object.fromEntries(new FormData(event.target));
      const found = await api("GET", `messages/${encodeURIComponent(sender)}/${encodeURIComponent(id)}`);
      $("one").replaceChildren(make("p", {}, "It is ", state(found.state), "."), table(["Time", "State", "Device"], found.history.map((step) => [new Date(step.at).toLocaleString(), state(step.state), String(step.device)])));
    }, () => {}) }, field("Sender id", "sender", { required: true, value: projects[0]?.sender_id ?? "" }), field("Message id", "id", { required: true }), make("button", {}, "Look up")), make("div", { id: "one" })))];
  }],
  devices: ["Devices", paged("Registrations", "tokens", "token", ["Token", "App", "Platform", "User", "State", "Last seen", ""], (row) => [
    short(row.token), row.app, row.platform, row.user, state(row.state), new Date(row.last_seen).toLocaleString(),
    make("span", {}, button("Messages", attempt(async () => {
      const found = await api("GET", `messages?token=${encodeURIComponent(row.token)}`);
      $("detail").replaceChildren(section(`Messages of ${row.app}`, make("p", {}, `${found.stored.length}${found.more_stored ? " and more" : ""} wait.`),
        table(["Time", "State", "Message"], found.history.reverse().map((step) => [clock(step.at), state(step.state), short(step.device_message_id, 32)]))));
    }, () => {})), " ", button("Compose", () => { draft.to = row.token; open("compose"); }), " ",
    row.state === "active" ? button("Unregister", attempt(async () => { if (confirm("Unregister this device?")) await api("DELETE", `tokens/${encodeURIComponent(row.token)}`); }), "danger") : null)])],
  topics: ["Topics", paged("Topics", "topics", "topic", ["Topic", "Subscribers", ""], (row) => [row.topic, number(row.subscribers), button("Compose", () => { draft.to = "/topics/" + row.topic; open("compose"); })])],
  groups: ["Groups", paged("Device groups", "groups", "name", ["Name", "Key", "Members"], (row) => [row.notification_key_name ?? row.name, short(row.notification_key ?? ""), number(row.members?.length ?? row.members ?? 0)])],
  users: ["Users", paged("Users", "users", "user", ["User", "Devices", ""], (row) => [row.user, number(row.registrations?.length ?? row.registrations ?? 0), button("Compose", () => { draft.to = "/users/" + row.user; open("compose"); })])],
  projects: ["Projects and keys", async () => {
    const keys = (await api("GET", "keys")).keys;
    return [
      section("Projects", table(["Id", "Sender id", "Made"], projects.map((row) => [row.id, row.sender_id, new Date(row.created_at).toLocaleString()])),
        make("form", { class: "row", onsubmit: attempt(async (event) => {
          const made = await api("POST", "projects", Object.fromEntries(new FormData(event.target)));
          alert(`Server key, shown once:\n${made.server_key}\n\nAPI key, shown once:\n${made.api_key}`);
          projects = (await api("GET", "projects")).projects;
        }) }, field("Id", "id", { required: true, pattern: "[a-z0-9\\-]+" }), field("Sender id", "sender_id", { required: true, inputmode: "numeric" }), make("button", {}, "Make a project"))),
      wide(section("Keys", table(["Purpose", "Sender id", "Begins", "Made", "", ""], keys.map((row) => [row.purpose, row.sender_id, row.hint, new Date(row.created_at).toLocaleString(), row.revoked ? "revoked" : "",
        row.revoked ? null : button("Revoke", attempt(async () => { if (confirm("Revoke this key?")) await api("DELETE", `keys/${row.id}`); }), "danger")])),
        make("form", { class: "row", onsubmit: attempt(async (event) => {
          const made = await api("POST", "keys", Object.fromEntries(new FormData(event.target)));
          alert(`The key, shown once:\n${made.key}`);
        }) }, make("label", {}, "Project", make("select", { name: "project" }, ...projects.map((row) => make("option", {}, row.id)))),
        make("label", {}, "Purpose", make("select", { name: "purpose" }, make("option", {}, "server"), make("option", {}, "api"))), make("button", {}, "Make a key")))),
    ];
  }],
  compose: ["Compose", compose],
};

/** A list that is fetched a page at a time. */
function paged(title, path, name, heads, row) {
  let pages = [null];
  return async () => {
    const after = pages.at(-1);
    const query = new URLSearchParams({ max: 51, ...(after ? { after } : {}), ...(projects[0] ? { project: projects[0].id } : {}) });
    const rows = (await api("GET", `${path}?${query}`))[path];
    const more = rows.length > 50;
    const shown = rows.slice(0, 50);
    return [wide(section(title, shown.length ? table(heads, shown.map(row)) : make("p", {}, "None here."), make("p", { class: "buttons" },
      make("button", { type: "button", disabled: pages.length === 1, onclick: () => { pages.pop(); show(); } }, "Back"),
      make("button", { type: "button", disabled: !more, onclick: () => { pages.push(shown.at(-1)[name]); show(); } }, "More")))), make("div", { id: "detail", class: "wide" })];
  };
}

const draft = { to: "", title: "Hello", body: "From the console", image: "", data: "", form: "legacy" };

function compose() {
  const notification = () => Object.fromEntries(["title", "body", "image"].filter((name) => draft[name]).map((name) => [name, draft[name]]));
  const data = () => draft.data ? JSON.parse(draft.data) : undefined;
  const bodies = {
    legacy: () => ({ to: draft.to, notification: notification(), data: data() }),
    v1: () => ({ message: { ...(draft.to.startsWith("/topics/") ? { topic: draft.to.slice(8) } : draft.to.startsWith("/users/") ? { user: draft.to.slice(7) } : { token: draft.to }), notification: notification(), data: data() } }),
    stream: () => ({ to: draft.to, message_id: "console-1", notification: notification(), data: data() }),
  };
  const text = make("textarea", { readonly: true, "aria-label": "The JSON of the message" });
  const phones = make("div", { class: "phones" });
  const refresh = () => {
    try { text.value = JSON.stringify(bodies[draft.form](), null, 2); } catch { text.value = "The data is not JSON yet."; }
    phones.replaceChildren(...["iOS", "Android", "Browser"].map((kind) => {
      const picture = /^https?:/.test(draft.image) ? make("img", { class: "picture", src: draft.image, alt: "" }) : null;
      const app = make("small", {}, kind === "Browser" ? location.host : kind === "Android" ? "Example app · now" : "now");
      const note = make("div", { class: "note " + kind.toLowerCase() }, make("img", { class: "icon", src: "/demo.svg", alt: "" }), make("b", {}, draft.title || "(no title)"), make("span", {}, draft.body), app, picture);
      return make("div", { class: "phone" }, make("h3", {}, kind), note);
    }));
  };
  const form = make("form", { oninput: (event) => { draft[event.target.name] = event.target.value; refresh(); }, onsubmit: attempt(async () => {
    const path = draft.form === "v1" ? `/v1/projects/${projects[0].id}/messages:send` : "/fcm/send";
    const answer = await fetch(path, { method: "POST", headers: { "content-type": "application/json", authorization: (draft.form === "v1" ? "Bearer " : "key=") + $("sendkey").value }, body: JSON.stringify(bodies[draft.form === "v1" ? "v1" : "legacy"]()) });
    $("answer").textContent = `${answer.status} ${await answer.text()}`;
  }, () => {}) },
  make("label", {}, "To: a token, /topics/NAME or /users/ID", make("input", { name: "to", required: true, value: draft.to })),
  make("label", {}, "Title", make("input", { name: "title", value: draft.title })), make("label", {}, "Text", make("input", { name: "body", value: draft.body })),
  make("label", {}, "Address of an image", make("input", { name: "image", type: "url", value: draft.image })),
  make("label", {}, "Data, as JSON with string values", make("input", { name: "data", value: draft.data, placeholder: "{\"order\":\"88\"}" })),
  make("label", {}, "Form", make("select", { name: "form" }, ...[["legacy", "Legacy HTTP"], ["v1", "HTTP v1"], ["stream", "XMPP stream, to look at"]].map(([name, label]) => make("option", { value: name, selected: name === draft.form }, label)))),
  make("label", {}, "Server key (legacy) or access token (v1)", make("input", { id: "sendkey", type: "password", autocomplete: "off" })),
  make("p", { class: "buttons" }, make("button", {}, "Send"), make("output", { id: "answer" })));
  refresh();
  return [section("Message", form), section("Its JSON", text), wide(section("How it would look", phones))];
}

// The page

async function show() {
  const [, render] = VIEWS[view];
  $("tabs").replaceChildren(...Object.entries(VIEWS).map(([name, [label]]) => make("button", { type: "button", "aria-current": name === view ? "page" : false, onclick: () => open(name) }, label)));
  try {
    $("view").replaceChildren(...(await render()));
  } catch (error) {
    $("view").replaceChildren(section("This cannot be shown", make("p", { role: "alert" }, error.message)));
  }
}

function open(name) {
  view = name;
  location.hash = name;
  show().then(() => $("view").focus({ preventScroll: true }));
}

function connect() {
  feed = new WebSocket(`ws://${location.host}/admin/v1/feed`);
  feed.onopen = () => { feed.send(JSON.stringify({ key })); feed.send(JSON.stringify(choice)); };
  feed.onmessage = ({ data }) => {
    const now = JSON.parse(data);
    history.push(now);
    if (history.length > HISTORY_MAX) history.shift();
    $("state").textContent = now.draining ? "draining" : "live";
    $("state").dataset.state = "connected";
    if (!isTailHeld) tail = [...now.steps.reverse(), ...tail].slice(0, TAIL_MAX);
    // A list being read or a form being filled in stays as it is.
    const isBusy = $("view").contains(document.activeElement) && document.activeElement !== $("view");
    if (!isBusy && (view === "overview" || (view === "live" && !isTailHeld))) show();
  };
  feed.onclose = ({ code }) => {
    $("state").textContent = "not connected";
    $("state").dataset.state = "";
    if (code === 1008) return signOut("This key is not the administration key.");
    setTimeout(connect, 2000);
  };
}

function signOut(why) {
  sessionStorage.removeItem("weir-admin-key");
  $("login").hidden = false;
  $("tabs").hidden = $("view").hidden = true;
  $("trouble").textContent = why;
}

async function signIn() {
  try {
    projects = (await api("GET", "projects")).projects;
  } catch (error) {
    return signOut(error.message);
  }
  sessionStorage.setItem("weir-admin-key", key);
  $("login").hidden = true;
  $("tabs").hidden = $("view").hidden = false;
  if (VIEWS[location.hash.slice(1)]) view = location.hash.slice(1);
  connect();
  show();
}

$("login").addEventListener("submit", (event) => {
  event.preventDefault();
  key = $("login").elements.key.value.trim();
  signIn();
});
addEventListener("hashchange", () => {
  const name = location.hash.slice(1);
  if (VIEWS[name] && name !== view && !$("view").hidden) { view = name; show(); }
});
if (key) signIn();
