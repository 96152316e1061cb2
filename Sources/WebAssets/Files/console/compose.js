// Composing a message: fields on one side, the JSON that goes out and how it looks on the other.

import { $, h, attempt, button, card, choice, field, pill, segments, values } from "./dom.js";
import { api } from "./api.js";
import { project } from "./shell.js";
import { FORMS, build, read } from "./payload.js";
import { KINDS, frame, presentation } from "./phone.js";
import { openHistory } from "./messages.js";

let draft = { form: "stream", to: "", title: "Parcel 88 is on its way", body: "It comes today between 14:00 and 16:00.", priority: "high", data: "parcel=88" };
/** JSON that was changed by hand; null while it follows the fields. */
let written = null;
let numbers = 0;

const newID = () => `console-${Date.now().toString(36)}-${numbers++}`;

export function compose(query) {
  if (query.get("to")) { draft.to = query.get("to"); written = null; }
  draft.id ||= newID();
  const json = h("textarea", { class: "code", name: "json", rows: 16, spellcheck: "false", "aria-label": "The JSON that is sent" });
  const fault = h("p", { class: "problem", role: "alert", hidden: true }), byHand = h("p", { class: "soft small", role: "status" });
  const preview = h("div", { class: "phones" }), result = h("div", { class: "stack", "aria-live": "polite" }, h("p", { class: "soft calm" }, "What the sender is told stands here."));

  const check = (label, name) => h("label", { class: "check" }, h("input", { type: "checkbox", name, checked: Boolean(draft[name]) }), h("span", {}, label));
  const box = (label, name, more = {}, hint = null) => field(label, name, { value: draft[name] ?? "", ...more }, hint);
  const form = h("form", { class: "stack", onsubmit: attempt(send) },
    segments("Front door", "form", FORMS, draft.form, (name) => { draft.form = name; written = null; refresh(); }),
    box("To", "to", { required: true, placeholder: "a token, /topics/news, /users/ada, or a condition" }),
    h("div", { class: "grid" }, box("Title", "title"), box("Subtitle (iOS)", "subtitle")),
    h("label", {}, h("span", {}, "Text"), h("textarea", { name: "body", rows: 2, value: draft.body ?? "" })),
    box("Picture", "image", { type: "url", placeholder: "https://…" }),
    h("label", {}, h("span", {}, "Data"), h("textarea", { name: "data", rows: 2, spellcheck: "false", value: draft.data ?? "", placeholder: "name=value, one a line" })),
    h("details", {}, h("summary", {}, "Delivery and looks"), h("div", { class: "grid" },
      choice("Priority", "priority", [["high", "high"], ["normal", "normal"]], draft.priority), box("Time to live, s", "ttl", { type: "number", min: 0, max: 2419200, placeholder: "2419200" }),
      box("Collapse key", "collapse"), box("Badge", "badge", { placeholder: "3, or +1" }), box("Sound", "sound", { placeholder: "default" }), box("Tag", "tag"), box("Colour (Android)", "color", { placeholder: "#0b6bcb" }),
      box("Channel (Android)", "channel"), box("Click action", "action")),
      h("div", { class: "checks" }, check("content_available", "available"), check("mutable_content", "mutable"), check("delivery receipt (stream)", "receipt"), check("dry run", "dry"))),
    h("p", { class: "buttons" }, h("button", { class: "primary" }, "Send"), button("Follow the fields again", () => { written = null; refresh(); }, "quiet follow")));
  const follow = form.querySelector(".follow");
  form.addEventListener("input", (event) => {
    if (event.target.name === "form") return;
    draft[event.target.name] = event.target.type === "checkbox" ? event.target.checked : event.target.value;
    written = null;
    refresh();
  });
  json.addEventListener("input", () => { written = json.value; refresh(); });

  function body() {
    return written === null ? build(draft.form, draft) : JSON.parse(written);
  }

  function refresh() {
    follow.hidden = written === null;
    byHand.textContent = written === null ? "It follows the fields. It may be changed by hand." : "Changed by hand: it is sent as it stands here.";
    let message;
    try {
      message = body();
      fault.hidden = true;
    } catch (error) {
      fault.textContent = `This is not JSON yet: ${error.message}`;
      fault.hidden = false;
      return;
    }
    if (written === null) json.value = JSON.stringify(message, null, 2);
    preview.replaceChildren(...KINDS.map(([kind, name]) => {
      const { note, badge, handed, why } = presentation(kind, read(draft.form, message, kind), "back");
      return h("figure", {}, frame(kind, { notes: note ? [{ note, when: "now" }] : [], badge: kind === "ios" ? badge : null }),
        h("figcaption", {}, h("b", {}, name), h("span", {}, why), handed && h("small", {}, `The app gets: ${handed}`)));
    }));
  }

  async function send() {
    const message = body(), { form: name } = draft;
    result.replaceChildren(h("p", { class: "soft" }, "Sending…"));
    try {
      const told = await api("POST", "send", { form: name, project: project()?.id, message });
      result.replaceChildren(...answerOf(name, told, message));
    } catch (error) {
      result.replaceChildren();
      throw error;
    } finally {
      draft.id = newID();
      if (written === null) refresh();
    }
  }

  function answerOf(name, told, message) {
    const { answer } = told;
    const code = answer?.error?.status ?? answer?.error ?? answer?.results?.[0]?.error;
    const isFine = answer !== null && !code && (name === "stream" ? answer.message_type === "ack" : told.status === 200);
    const id = name === "stream" ? message.message_id : name === "v1" ? answer?.name?.split("/").at(-1) : answer?.results?.[0]?.message_id ?? (answer?.message_id && String(answer.message_id));
    return [
      h("p", {}, answer === null ? pill("no answer", "nacked") : isFine ? pill("accepted", "delivered") : pill(typeof code === "string" ? code : "refused", "nacked"),
        h("span", { class: "soft" }, answer === null ? " Its sender is told nothing." : told.status ? ` HTTP ${told.status}${told.retry_after ? `, Retry-After ${told.retry_after}` : ""}` : " as written to the stream")),
      answer !== null && h("pre", { tabindex: "0" }, typeof answer === "string" ? answer : JSON.stringify(answer, null, 2)),
      isFine && id && h("p", { class: "buttons" }, button("Follow this message", () => openHistory({ sender_id: project()?.sender_id, message_id: id }))),
    ].filter(Boolean);
  }

  refresh();
  return {
    title: "Compose",
    element: h("div", { class: "stack" }, h("div", { class: "head" }, h("h1", {}, "Compose"), h("p", { class: "soft" }, "Sent in the name of the project, the way that its app server would.")),
      h("div", { class: "halves" }, card("Message", form), h("div", { class: "stack" }, card("Its JSON", byHand, json, fault), card("Answer", result))),
      card("How it looks, in the background", preview)),
  };
}
