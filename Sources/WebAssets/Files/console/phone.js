// How a message looks on a phone or in a browser: what the system shows, and what the app's code is handed.

import { h } from "./dom.js";

export const KINDS = [["ios", "iPhone"], ["android", "Android"], ["web", "Browser"]];
export const APP_STATES = [["front", "in front"], ["back", "in the back"], ["off", "not running"]];

const words = (key, args) => (key ? `⟨${key}${args?.length ? `: ${[args].flat().join(", ")}` : ""}⟩` : undefined);

/** What becomes of a message: { note, handed, why }; `note` is null where nothing is shown. */
export function presentation(kind, message, state) {
  const given = message.notification;
  const hasData = Object.keys(message.data ?? {}).length > 0;
  const note = given && {
    title: given.title ?? words(given.title_loc_key, given.title_loc_args) ?? "", subtitle: given.subtitle ?? words(given.subtitle_loc_key, given.subtitle_loc_args),
    body: given.body ?? words(given.body_loc_key, given.body_loc_args) ?? "", image: given.image, badge: given.badge, sound: given.sound, tag: given.tag ?? (kind === "android" ? null : message.collapse_key),
    color: given.color, isLoud: message.priority === "high", channel: given.android_channel_id ?? given.channel_id,
  };
  const isShown = note && (note.title || note.body || note.subtitle);
  if (kind === "android") {
    if (!given) return state === "off" || state === "back" ? answer(null, "onMessageReceived", message.priority === "high" ? "Data alone: the app's service is woken." : "Data alone: the app's service gets it; in Doze it waits, since its priority is normal.") : answer(null, "onMessageReceived", "Data alone: nothing is shown.");
    if (state === "front") return answer(null, "onMessageReceived", "In front the app gets it and decides; the system shows nothing.");
    return answer(isShown ? note : null, hasData ? "extras of the tap's intent" : null, note.isLoud ? "Shown by the SDK, heads-up: its priority is high." : "Shown by the SDK in the tray.");
  }
  if (kind === "ios") {
    if (note && !message.mutable_content) note.image = undefined;
    if (!isShown) {
      if (state === "front") return answer(null, "didReceiveRemoteNotification", "Nothing to show: the app is handed it.");
      if (!message.content_available) return answer(note?.badge ? { ...note, isBadgeOnly: true } : null, null, "Without an alert and without content_available the app is not woken.");
      return state === "off" ? answer(null, null, "Background messages do not start an app that its user has ended.") : answer(null, "didReceiveRemoteNotification", "content_available: the app is woken for some seconds.");
    }
    const picture = given.image && !message.mutable_content ? " Its picture needs mutable_content." : note.image ? " A service extension attaches its picture." : "";
    if (state === "front") return answer(null, "willPresent", `In front the app's delegate decides; without an answer nothing is shown.${picture}`);
    return answer(note, message.content_available && state === "back" ? "didReceiveRemoteNotification" : null, `Shown by the system.${picture}`);
  }
  if (state === "off") return answer(null, null, "No page is open: the message waits on the server.");
  if (!given) return answer(null, "message event", "Data alone: the page gets it.");
  return state === "front" ? answer(null, "message event", "The page is looked at: it gets the message, nothing is shown.") : answer(isShown ? note : null, "notificationclick, when it is clicked", "The page is hidden: a notification is shown.");
}

const answer = (note, handed, why) => ({ note: note?.isBadgeOnly ? null : note, badge: note?.badge, handed, why });

const isAddress = (text) => /^(https:|data:image\/)/.test(text ?? "");

function picture(note) {
  if (!isAddress(note.image)) return null;
  const image = h("img", { class: "picture", src: note.image, alt: "The message's picture", referrerpolicy: "no-referrer" });
  image.addEventListener("error", () => image.replaceWith(h("small", { class: "gone" }, "its picture cannot be loaded")));
  return image;
}

const appIcon = (size = 36) => h("img", { class: "app", src: "/demo.svg", alt: "", width: size, height: size });

/** A notification as the platform draws it. */
export function card(kind, note, app, when = "now") {
  if (kind === "ios") {
    return h("article", { class: "note ios" }, appIcon(38), h("div", {}, h("p", { class: "line" }, h("b", {}, note.title || app), h("time", {}, when)),
      note.subtitle && h("p", { class: "sub" }, note.subtitle), h("p", {}, note.body)), picture(note));
  }
  if (kind === "android") {
    const small = h("span", { class: "glyph", "aria-hidden": "true" });
    if (note.color && CSS.supports("color", note.color)) small.style.setProperty("--tint", note.color);
    return h("article", { class: `note android${note.isLoud ? " loud" : ""}` }, h("p", { class: "line" }, small, h("small", {}, `${app} · ${when}${note.sound ? " · 🔔" : ""}`)),
      h("b", {}, note.title), h("p", {}, note.body), picture(note));
  }
  return h("article", { class: "note web" }, picture(note), h("div", { class: "line" }, appIcon(32), h("div", {}, h("b", {}, note.title), h("p", {}, note.body), h("small", {}, location.host))));
}

/** A device with what is on its screen: notes are { note, when }, log are { handed, text }. */
export function frame(kind, { state = "back", notes = [], log = [], badge = null, app = "Example", isOn = true }) {
  const clock = new Date().toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  const shown = notes.length ? notes.map(({ note, when }) => card(kind, note, app, when)) : null;
  const inApp = h("div", { class: "inapp" }, h("p", { class: "bar" }, app), log.length ? h("ul", {}, log.map(({ handed, text }) => h("li", {}, h("code", {}, handed), h("span", {}, text)))) : h("p", { class: "soft" }, "Nothing was handed to it yet."));
  const screen = !isOn ? h("div", { class: "dark" }, h("p", {}, "off"))
    : kind === "web" ? h("div", { class: "desk" }, h("div", { class: "tab" }, h("span", {}, state === "off" ? "closed" : "push.example.org")), state === "front" ? inApp : h("div", { class: "page" }), state === "front" ? null : h("div", { class: "pile" }, shown))
      : state === "front" ? inApp
        : h("div", { class: "lock" }, h("p", { class: "clock" }, clock), h("p", { class: "date" }, new Date().toLocaleDateString("en-GB", { weekday: "long", day: "numeric", month: "long" })), h("div", { class: "pile" }, shown));
  const dock = kind === "web" || !isOn ? null : h("div", { class: "dock" }, h("span", { class: state === "off" ? "icon ended" : "icon" }, appIcon(40), badge && badge !== "0" ? h("b", { class: "badge" }, badge) : null));
  return h("div", { class: `phone is-${kind}` }, screen, dock);
}
