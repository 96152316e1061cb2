// What views share: the projects, the one that is looked at, and how to go to another view.

import { get } from "./api.js";
import { $, h } from "./dom.js";

export let projects = [];
let current = sessionStorage.getItem("weir-project") ?? "";

/** The project that lists and forms are about. */
export const project = () => projects.find(({ id }) => id === current) ?? projects[0] ?? null;

export async function loadProjects() {
  projects = (await get("projects")).projects;
  const select = $("project");
  select.replaceChildren(...projects.map(({ id }) => h("option", { value: id, selected: id === project()?.id }, id)));
  $("project-label").hidden = projects.length < 2;
}

export function chooseProject(id) {
  current = id;
  sessionStorage.setItem("weir-project", id);
}

/** Goes to a view, with something for it to begin with. */
export function go(view, more = {}) {
  const query = new URLSearchParams(more).toString();
  const hash = `#/${view}${query ? `?${query}` : ""}`;
  if (location.hash === hash) dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = hash;
}
