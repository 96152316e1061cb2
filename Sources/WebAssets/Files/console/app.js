// The console's frame: sign in, views, colours.

import { $, h, icon, problem } from "./dom.js";
import { Refused, forget, hasKey, keep } from "./api.js";
import { feed } from "./feed.js";
import { chooseProject, loadProjects } from "./shell.js";
import { overview } from "./overview.js";
import { messages } from "./messages.js";
import { devices } from "./devices.js";
import { groups, topics, users } from "./targets.js";
import { projects } from "./projects.js";
import { compose } from "./compose.js";
import { nodes } from "./nodes.js";
import { phones } from "./phones.js";
import { faults } from "./faults.js";

const VIEWS = {
  overview: ["Overview", overview], messages: ["Messages", messages], devices: ["Devices", devices], topics: ["Topics", topics], groups: ["Groups", groups],
  users: ["Users", users], projects: ["Projects", projects], nodes: ["Nodes", nodes], compose: ["Compose", compose], phones: ["Phones", phones], faults: ["Faults", faults],
};
const SECTIONS = [["Watch", ["overview", "messages", "nodes"]], ["Manage", ["devices", "topics", "groups", "users", "projects"]], ["Try", ["compose", "phones", "faults"]]];

let current = null;
let isIn = false;

// Views

function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return [VIEWS[path] ? path : "overview", new URLSearchParams(query ?? "")];
}

function show() {
  if (!isIn) return;
  const [name, query] = place();
  current?.leave?.();
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  try {
    current = VIEWS[name][1](query);
    $("view").replaceChildren(current.element);
  } catch (error) {
    current = null;
    $("view").replaceChildren(problem(error, show));
  }
  $("view").dataset.view = name;
  document.title = `${VIEWS[name][0]} · Weir console`;
  for (const link of $("nav").querySelectorAll("a")) {
    if (link.dataset.view === name) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else link.removeAttribute("aria-current");
  }
}

$("nav").append(...SECTIONS.map(([title, names]) => h("div", { role: "group", "aria-label": title }, h("span", { class: "section", "aria-hidden": "true" }, title),
  names.map((name) => h("a", { href: `#/${name}`, "data-view": name }, icon(name), h("span", {}, VIEWS[name][0]))))));

addEventListener("hashchange", () => {
  show();
  if (isIn) { $("view").focus({ preventScroll: true }); scrollTo(0, 0); }
});
$("project").addEventListener("change", ({ target }) => { chooseProject(target.value); show(); });

// Signing in

const login = $("login");

function tell(state, text) {
  $("state").dataset.state = state;
  $("state").textContent = text;
}

function signedOut(why = "") {
  isIn = false;
  current?.leave?.();
  current = null;
  feed.close();
  forget();
  tell("out", "signed out");
  $("nav").hidden = $("leave").hidden = $("project-label").hidden = true;
  $("view").replaceChildren(login);
  login.hidden = false;
  $("login-error").textContent = why;
  $("login-error").hidden = why === "";
  login.elements.key.focus();
}

async function signIn() {
  try {
    await loadProjects();
  } catch (error) {
    if (error instanceof Refused) return signedOut(error.message);
    login.hidden = true;
    return $("view").replaceChildren(problem(error, signIn));
  }
  isIn = true;
  login.elements.key.value = "";
  $("nav").hidden = $("leave").hidden = false;
  tell("lost", "connecting");
  feed.open();
  show();
}

login.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = login.elements.key.value.trim();
  if (!text) return login.elements.key.focus();
  keep(text);
  signIn();
});
$("leave").addEventListener("click", () => signedOut());
feed.addEventListener("figures", ({ detail }) => tell(detail.draining ? "draining" : "live", detail.draining ? "draining" : "live"));
feed.addEventListener("lost", () => tell("lost", "reconnecting"));
feed.addEventListener("refused", () => signedOut("This is not the administration key of this server."));
addEventListener("unhandledrejection", ({ reason }) => { if (reason instanceof Refused) signedOut(reason.message); });

// Colours

const THEMES = { auto: "◐ Auto", light: "○ Light", dark: "● Dark" };
function colour(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  localStorage.setItem("weir-theme", name);
  $("theme").textContent = THEMES[name];
  $("theme").setAttribute("aria-label", `Colours: ${name === "auto" ? "as the system" : name}`);
}
const saved = localStorage.getItem("weir-theme");
colour(THEMES[saved] ? saved : "auto");
$("theme").addEventListener("click", () => {
  const names = Object.keys(THEMES), now = document.documentElement.dataset.theme ?? "auto";
  colour(names[(names.indexOf(now) + 1) % names.length]);
});

if (hasKey()) signIn();
else signedOut();
