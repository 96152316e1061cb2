// Elements without templates: text only ever becomes text.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" && "value" in element) element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An element of HTML: h("p", { class: "soft" }, "text", child). */
export const h = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);

/** An element of SVG. */
export const s = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

export const $ = (id) => document.getElementById(id);

const ICONS = {
  overview: "M4 19V11M10 19V5M16 19v-7M21 19H3",
  messages: "M4 6h16M4 12h16M4 18h10",
  devices: "M8 3h8a1 1 0 0 1 1 1v16a1 1 0 0 1-1 1H8a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zM11 18h2",
  topics: "M5 9h14M5 15h14M10 4 8 20M16 4l-2 16",
  groups: "M9 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM3 19c0-3 3-5 6-5s6 2 6 5M16 5.5a3 3 0 0 1 0 5.5M18 14c2 .7 3 2.500 3 5",
  users: "M12 11a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7zM5 20c0-3.500 3-6 7-6s7 2.500 7 6",
  projects: "M14 10a4 4 0 1 0-3.500 4L12 15.500h2V18h2v2h4v-3l-6.500-6.500",
  nodes: "M4 5h16v5H4zM4 14h16v5H4zM7 7.500h.5M7 16.500h.5",
  compose: "M4 20l4-1L19 8l-3-3L5 16zM14 7l3 3",
  phones: "M6 3h8a1 1 0 0 1 1 1v4M6 3a1 1 0 0 0-1 1v14a1 1 0 0 0 1 1h4M13 12h7v8h-7z",
  faults: "M12 4 3 20h18zM12 10v4M12 17v.5",
};

export const icon = (name) => s("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, s("path", { d: ICONS[name] }));

export const pill = (text, kind = text) => h("span", { class: `pill is-${kind}` }, text);

export const button = (label, action, kind = "") => h("button", { type: "button", class: kind, onclick: action }, label);

export const field = (label, name, attributes = {}, hint = null) =>
  h("label", {}, h("span", {}, label), h("input", { name, autocomplete: "off", spellcheck: "false", ...attributes }), hint && h("small", {}, hint));

export const choice = (label, name, options, value, attributes = {}) =>
  h("label", {}, h("span", {}, label),
    h("select", { name, ...attributes }, options.map(([key, text]) => h("option", { value: key, selected: key === value }, text))));

/** One of a few, side by side. */
export function segments(label, name, options, value, changed) {
  return h("fieldset", { class: "segments" }, h("legend", {}, label), h("div", {},
    options.map(([key, text]) => h("label", {},
      h("input", { type: "radio", name, value: key, checked: key === value, onchange: () => changed(key) }), h("span", {}, text)))));
}

export const card = (title, ...children) => {
  const heading = h("h2", {}, title);
  return h("section", { class: "card", "aria-label": title }, heading, ...children);
};

export const empty = (title, text, ...more) => h("div", { class: "empty" }, h("strong", {}, title), h("p", {}, text), ...more);

export const problem = (error, again) =>
  h("div", { class: "problem", role: "alert" }, h("strong", {}, "That did not work."), " ", error.message ?? String(error),
    again && h("p", { class: "buttons" }, button("Try again", again)));

/** A table whose rows may be opened: rows are { cells, open }. */
export function table(label, heads, rows) {
  return h("div", { class: "table", role: "region", "aria-label": label, tabindex: "0" },
    h("table", {},
      h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, rows.map(({ cells, open }) => {
        const row = h("tr", open ? { class: "opens" } : {}, cells.map((cell, index) => h("td", { "data-head": heads[index] }, cell ?? h("span", { class: "soft" }, "–"))));
        if (open) opens(row, open);
        return row;
      }))));
}

/** Makes an element open something by click and by key. */
export function opens(element, open) {
  element.tabIndex = 0;
  element.addEventListener("click", (event) => { if (!event.target.closest("button, a, input, select")) open(); });
  element.addEventListener("keydown", (event) => {
    if ((event.key === "Enter" || event.key === " ") && event.target === element) { event.preventDefault(); open(); }
  });
}

/** A long id, cut in the middle of what nobody reads; the whole of it on a click. */
export function shortID(text, count = 14) {
  if (text.length <= count + 4) return h("code", {}, text);
  return h("button", { type: "button", class: "copy", title: `${text}\nCopy`, "aria-label": `Copy ${text}`, onclick: () => copy(text) },
    h("code", {}, `${text.slice(0, count)}…${text.slice(-4)}`));
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied.");
  } catch {
    reveal("Copy it from here", text);
  }
}

export function toast(text, kind = "good") {
  const note = h("div", { class: `toast is-${kind}` }, text);
  $("toasts").append(note);
  while ($("toasts").childElementCount > 3) $("toasts").firstElementChild.remove();
  setTimeout(() => note.remove(), kind === "bad" ? 8000 : 4000);
}

// Dialogs: modal, so that the browser keeps the focus inside and Escape closes them.

export function sheet(title, content, kind = "sheet") {
  const heading = h("h2", {}, title);
  const dialog = h("dialog", { class: kind, "aria-label": title },
    h("header", {}, heading, button("Close", () => dialog.close(), "quiet")), h("div", { class: "body" }, content));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

export const reveal = (title, ...texts) => sheet(title, texts.map((text) => h("pre", { class: "reveal", tabindex: "0" }, text)), "box");

/** Asks before something that cannot be taken back; a word to be typed makes it deliberate. */
export function ask(title, text, verb, word = null) {
  return new Promise((resolve) => {
    let answer = false;
    const typed = word && field(`Type “${word}” to go on`, "word", { required: true });
    const go = h("button", { class: "danger" }, verb);
    const form = h("form", { method: "dialog", class: "stack", onsubmit: (event) => {
      if (word && form.elements.word.value.trim() !== word) { event.preventDefault(); return; }
      answer = true;
    } }, h("p", {}, text), typed, h("p", { class: "buttons" }, go));
    const dialog = sheet(title, form, "box");
    dialog.addEventListener("close", () => resolve(answer));
  });
}

/** Does what a button or form asks for; says what went wrong where it can be seen. */
export function attempt(action) {
  return async (event) => {
    event?.preventDefault?.();
    const trigger = event?.submitter ?? event?.currentTarget;
    if (trigger?.disabled !== undefined) trigger.disabled = true;
    try {
      await action(event);
    } catch (error) {
      toast(error.message ?? String(error), "bad");
    } finally {
      if (trigger?.disabled !== undefined) trigger.disabled = false;
    }
  };
}

export const values = (form) => Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));
