// Projects and their keys.

import { h, ask, attempt, button, card, choice, empty, field, pill, problem, reveal, sheet, table, toast, values } from "./dom.js";
import { api, get, part } from "./api.js";
import { day } from "./format.js";
import { go, loadProjects, projects as known } from "./shell.js";

const PURPOSES = { server: "server key: app servers send with it", api: "API key: apps register with it", admin: "administration key" };

export function projects() {
  const list = h("div"), keys = h("div");

  async function load() {
    try {
      await loadProjects();
      const found = (await get("keys")).keys;
      const name = (sender) => known.find(({ sender_id: id }) => id === sender)?.id ?? "–";
      list.replaceChildren(table("Projects", ["Project", "Sender id", "Made", ""], known.map((row) => ({
        cells: [h("b", {}, row.id), h("code", {}, row.sender_id), day(row.created_at), button("Make a service account", attempt(async () => {
          const account = await api("POST", `projects/${part(row.id)}/service-accounts`);
          reveal("Service account: its private key is shown once", JSON.stringify(account, null, 2));
        }))],
      }))));
      keys.replaceChildren(found.length ? table("Keys", ["Key", "For", "Project", "Made", "", ""], found.map((row) => ({
        cells: [h("code", {}, row.hint), PURPOSES[row.purpose] ?? row.purpose, row.sender_id ? name(row.sender_id) : "all", day(row.created_at), row.revoked ? pill("revoked", "nacked") : pill("active", "delivered"),
          row.revoked || row.purpose === "admin" ? "" : button("Revoke", attempt(async () => {
            if (!await ask("Revoke this key?", `Whoever uses ${row.hint} is refused from now on. This cannot be taken back.`, "Revoke")) return;
            await api("DELETE", `keys/${part(row.id)}`);
            toast("Revoked.");
            load();
          }), "danger")],
      }))) : empty("No key", "Make one to let an app server in."));
    } catch (error) {
      list.replaceChildren(problem(error, load));
      keys.replaceChildren();
    }
  }

  function makeProject() {
    const form = h("form", { class: "stack", onsubmit: attempt(async () => {
      const made = await api("POST", "projects", values(form));
      dialog.close();
      reveal("Made. The keys are shown once.", `server key\n${made.server_key}`, `API key\n${made.api_key}`);
      load();
    }) }, field("Id", "id", { required: true, pattern: "[a-z0-9\\-]{1,63}", placeholder: "my-app" }, "a to z, digits and hyphens"),
    field("Sender id", "sender_id", { required: true, inputmode: "numeric", pattern: "[0-9]{1,18}", placeholder: "100000000002" }, "a number that no other project has"), h("p", { class: "buttons" }, h("button", { class: "primary" }, "Make the project")));
    const dialog = sheet("Make a project", form, "box");
  }

  function makeKey() {
    const form = h("form", { class: "stack", onsubmit: attempt(async () => {
      const made = await api("POST", "keys", values(form));
      dialog.close();
      reveal("The key is shown once", made.key);
      load();
    }) }, choice("Project", "project", known.map(({ id }) => [id, id]), known[0]?.id), choice("For", "purpose", [["server", "app servers, to send"], ["api", "apps, to register"]], "server"),
    h("p", { class: "buttons" }, h("button", { class: "primary" }, "Make the key")));
    const dialog = sheet("Make a key", form, "box");
  }

  load();
  return {
    title: "Projects and keys",
    element: h("div", { class: "stack" }, h("div", { class: "head" }, h("h1", {}, "Projects and keys"), h("span", { class: "buttons" }, button("Make a project", makeProject, "primary"), button("Make a key", makeKey))),
      h("section", { class: "card flush", "aria-label": "Projects" }, h("h2", { class: "inset" }, "Projects"), list), h("section", { class: "card flush", "aria-label": "Keys" }, h("h2", { class: "inset" }, "Keys"), keys)),
  };
}
