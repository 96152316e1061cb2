// A browser page as a device of a Weir server: XMPP over WebSocket (RFC 7395), without dependencies.
//
//   import { WeirDevice } from "/weir.js";
//   const device = new WeirDevice({ project: "demo", apiKey: "…", app: "org.example.app" });
//   device.addEventListener("message", (event) => show(event.detail));
//   await device.start();                       // registers when it has to, connects, and stays connected
//   await device.send({ hello: "world" });      // to the project's app server; settles with its outcome
//
// Events: "state" (detail: "connecting" | "connected" | "waiting" | "replaced" | "refused" | "closed"),
// "message" (detail: the message), "deleted" (detail: how many the server dropped while the page was away),
// "notificationclick" (detail: the message whose notification was clicked).
//
// A message is acked when its listeners have returned and what they gave to event.waitUntil() is done; one that fails
// is not acked and comes again on the next connection. In the foreground a message is handed to the page and nothing is
// shown; in the background one with a notification is shown, and handed over when it is clicked; one with data alone
// is handed over in both.

const NS = {
  framing: "urn:ietf:params:xml:ns:xmpp-framing",
  sasl: "urn:ietf:params:xml:ns:xmpp-sasl",
  bind: "urn:ietf:params:xml:ns:xmpp-bind",
  streams: "http://etherx.jabber.org/streams",
  client: "jabber:client",
  gcm: "google:mobile:data",
};

const REMEMBERED_MAX = 1000;
const PENDING_MAX = 20;
const WAIT_FIRST_MS = 1000;
const WAIT_MAX_MS = 60000;
const LOGIN_MS = 15000;
/** Without a byte from the server for so long, the connection is given up; the server pings every 30 seconds. */
const SILENCE_MS = 90000;

export class WeirDevice extends EventTarget {
  #options;
  #socket = null;
  #step = "idle";
  #state = "idle";
  #wantsConnection = false;
  #wait = WAIT_FIRST_MS;
  #timer = 0;
  #loginTimer = 0;
  #silenceTimer = 0;
  #remembered = [];
  #pending = new Map();
  #numbers = 0;
  #waiters = [];
  #wake = () => this.#retryNow();

  /**
   * @param {object} options project, apiKey and app; server (an https or http URL, by default the page's own);
   *   storage (by default localStorage) for the registration; user and platform for it; notifications (false shows
   *   none); icon for notifications that name none.
   */
  constructor(options) {
    super();
    this.#options = { server: location.origin, platform: "web", storage: globalThis.localStorage, ...options };
    try {
      this.#remembered = JSON.parse(this.#stored("seen") ?? "[]");
    } catch {
      this.#remembered = [];
    }
  }

  get state() { return this.#state; }
  /** The registration: token, device_id, device_secret; null before there is one. */
  get registration() { return JSON.parse(this.#stored("registration") ?? "null"); }
  get token() { return this.registration?.token ?? null; }
  /** Upstream messages without an outcome. */
  get pendingCount() { return this.#pending.size; }

  /** Registers if need be, connects, and stays connected until close(). Settles at the first connection. */
  async start() {
    if (!this.registration) await this.register();
    await this.connect();
  }

  /** Registers the app; on the known device when there is one. */
  async register() {
    const { server, project, apiKey, app, platform, user } = this.#options;
    const known = this.registration;
    const body = { app, platform };
    if (user) body.user = user;
    if (known) Object.assign(body, { device_id: known.device_id, device_secret: known.device_secret, previous_token: known.token });
    const answer = await fetch(`${server}/v1/projects/${encodeURIComponent(project)}/registrations`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-goog-api-key": apiKey },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`registration refused: ${answer.status} ${await answer.text()}`);
    this.#store("registration", JSON.stringify(await answer.json()));
    return this.registration;
  }

  /** Gives the registration up; senders are told so. */
  async unregister() {
    const known = this.registration;
    if (!known) return;
    this.close();
    const { server, project } = this.#options;
    await fetch(`${server}/v1/projects/${encodeURIComponent(project)}/registrations/${encodeURIComponent(known.token)}`, {
      method: "DELETE",
      headers: { authorization: "Basic " + base64(`${known.device_id}:${known.device_secret}`) },
    });
    this.#store("registration", null);
    this.#store("seen", null);
  }

  /** Connects and stays connected. Settles when connected, or fails when the server refuses the device. */
  connect() {
    if (this.#state === "connected") return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject });
      if (this.#wantsConnection) return;
      this.#wantsConnection = true;
      globalThis.addEventListener("online", this.#wake);
      globalThis.document?.addEventListener("visibilitychange", this.#wake);
      this.#open();
    });
  }

  /** Disconnects for good. Messages wait on the server; upstream messages without an outcome fail. */
  close() {
    this.#stop("closed");
    for (const { reject } of this.#pending.values()) reject(new Error("closed"));
    this.#pending.clear();
  }

  /**
   * Sends data upstream to the project's app server.
   * @returns a promise of its id once an app server, or the server's store, has it; it fails with the server's code.
   */
  send(data, { to = this.#options.senderID, id = null, timeToLive = null } = {}) {
    if (this.#pending.size >= PENDING_MAX) return Promise.reject(new Error("TOO_MANY_MESSAGES"));
    const message = { to: `${to}@fcm.googleapis.com`, message_id: id ?? this.#newID(), data, token: this.token };
    if (timeToLive !== null) message.time_to_live = timeToLive;
    return new Promise((resolve, reject) => {
      this.#pending.set(message.message_id, { message, resolve, reject });
      if (this.#step === "ready") this.#writePayload(message);
    });
  }

  /** Asks the user, which only works on a click. */
  static async askForNotifications() {
    return "Notification" in globalThis ? (await Notification.requestPermission()) === "granted" : false;
  }

  // The connection

  #open() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#setState("connecting");
    const url = this.#options.server.replace(/^http/, "ws") + "/xmpp";
    const socket = new WebSocket(url, "xmpp");
    this.#socket = socket;
    this.#step = "opening";
    this.#loginTimer = setTimeout(() => socket.close(), LOGIN_MS);
    socket.onopen = () => this.#sendOpen("features");
    socket.onmessage = (event) => {
      if (socket === this.#socket) this.#received(event.data);
    };
    socket.onclose = () => {
      if (socket === this.#socket) this.#lost();
    };
  }

  #sendOpen(next) {
    this.#step = next;
    this.#write(`<open xmlns="${NS.framing}" to="fcm-xmpp.googleapis.com" version="1.0"/>`);
  }

  #write(text) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(text);
  }

  #writePayload(payload) {
    this.#write(`<message xmlns="${NS.client}"><gcm xmlns="${NS.gcm}">${escaped(JSON.stringify(payload))}</gcm></message>`);
  }

  #lost() {
    clearTimeout(this.#loginTimer);
    clearTimeout(this.#silenceTimer);
    this.#socket = null;
    this.#step = "idle";
    if (!this.#wantsConnection) return;
    this.#setState("waiting");
    // Drawn, so that the pages of a server that restarts do not come all at once.
    this.#timer = setTimeout(() => this.#open(), Math.random() * this.#wait);
    this.#wait = Math.min(this.#wait * 2, WAIT_MAX_MS);
  }

  /** The network is back, or the page is looked at again: no more waiting. */
  #retryNow() {
    if (!this.#timer || globalThis.document?.visibilityState === "hidden") return;
    this.#wait = WAIT_FIRST_MS;
    this.#open();
  }

  #stop(state, error = new Error(state)) {
    this.#wantsConnection = false;
    clearTimeout(this.#timer);
    clearTimeout(this.#loginTimer);
    clearTimeout(this.#silenceTimer);
    this.#timer = 0;
    globalThis.removeEventListener("online", this.#wake);
    globalThis.document?.removeEventListener("visibilitychange", this.#wake);
    const socket = this.#socket;
    this.#socket = null;
    this.#step = "idle";
    if (socket?.readyState === WebSocket.OPEN) socket.send(`<close xmlns="${NS.framing}"/>`);
    socket?.close(1000);
    this.#setState(state);
    for (const { reject } of this.#waiters.splice(0)) reject(error);
  }

  #setState(state) {
    if (state === this.#state) return;
    this.#state = state;
    this.dispatchEvent(new CustomEvent("state", { detail: state }));
  }

  #heard() {
    clearTimeout(this.#silenceTimer);
    const socket = this.#socket;
    // Pings of WebSocket are answered by the browser and not shown to pages; XMPP's come when those go unanswered.
    this.#silenceTimer = setTimeout(() => {
      this.#write(`<iq xmlns="${NS.client}" type="get" id="alive"><ping xmlns="urn:xmpp:ping"/></iq>`);
      this.#silenceTimer = setTimeout(() => socket?.close(), LOGIN_MS);
    }, SILENCE_MS);
  }

  // What the server says

  #received(text) {
    this.#heard();
    const element = new DOMParser().parseFromString(text, "text/xml").documentElement;
    if (is(element, "close", NS.framing)) {
      this.#socket?.close(1000);
    } else if (is(element, "error", NS.streams)) {
      if (element.firstElementChild?.localName === "conflict") {
        // Another page, or tab, is this device now; two that fight would help nobody.
        this.#stop("replaced");
      }
    } else if (is(element, "iq", NS.client)) {
      this.#receivedQuery(element);
    } else if (is(element, "message", NS.client)) {
      const payload = element.getElementsByTagNameNS(NS.gcm, "gcm")[0];
      if (payload && element.getAttribute("type") !== "error") this.#receivedPayload(JSON.parse(payload.textContent));
    } else {
      this.#login(element);
    }
  }

  #login(element) {
    if (this.#step === "features" && is(element, "features", NS.streams)) {
      const { device_id, device_secret } = this.registration;
      this.#step = "verdict";
      this.#write(`<auth xmlns="${NS.sasl}" mechanism="PLAIN">${base64(`\0${device_id}\0${device_secret}`)}</auth>`);
    } else if (this.#step === "verdict" && is(element, "success", NS.sasl)) {
      this.#sendOpen("binding");
    } else if (this.#step === "verdict" && is(element, "failure", NS.sasl)) {
      // The store may be out of reach for a while; anything else is for good.
      if (element.firstElementChild?.localName === "temporary-auth-failure") this.#socket.close();
      else this.#stop("refused", new Error("the server refuses this device"));
    } else if (this.#step === "binding" && is(element, "features", NS.streams)) {
      this.#write(`<iq xmlns="${NS.client}" type="set" id="bind"><bind xmlns="${NS.bind}"/></iq>`);
    }
  }

  #receivedQuery(element) {
    const type = element.getAttribute("type");
    const id = element.getAttribute("id") ?? "";
    if (type === "result" && id === "bind") {
      clearTimeout(this.#loginTimer);
      this.#step = "ready";
      this.#wait = WAIT_FIRST_MS;
      this.#setState("connected");
      // What has no outcome is said again, under the same id.
      for (const { message } of this.#pending.values()) this.#writePayload(message);
      for (const { resolve } of this.#waiters.splice(0)) resolve();
    } else if (type === "get" || type === "set") {
      const isPing = element.getElementsByTagNameNS("urn:xmpp:ping", "ping").length > 0;
      const head = `<iq xmlns="${NS.client}" id="${escaped(id)}" type=`;
      this.#write(
        isPing
          ? `${head}"result"/>`
          : `${head}"error"><error type="cancel"><service-unavailable xmlns="urn:ietf:params:xml:ns:xmpp-stanzas"/></error></iq>`,
      );
    }
  }

  #receivedPayload(payload) {
    switch (payload.message_type) {
      case "ack":
      case "nack": {
        const pending = this.#pending.get(payload.message_id);
        if (!pending) return;
        this.#pending.delete(payload.message_id);
        if (payload.message_type === "ack") pending.resolve(payload.message_id);
        else pending.reject(Object.assign(new Error(payload.error_description || payload.error), { code: payload.error }));
        break;
      }
      case "deleted_messages":
        this.dispatchEvent(new CustomEvent("deleted", { detail: Number(payload.total_deleted) }));
        break;
      default:
        this.#receivedMessage(payload);
    }
  }

  async #receivedMessage(message) {
    const id = message.message_id;
    if (!this.#remembered.includes(id)) {
      try {
        await this.#handOver(message);
      } catch (error) {
        console.warn("weir: a message was not acked, since handling it failed", error);
        return;
      }
      this.#remembered.push(id);
      if (this.#remembered.length > REMEMBERED_MAX) this.#remembered.shift();
      this.#store("seen", JSON.stringify(this.#remembered));
    }
    // A repeat is acked and not shown again.
    if (this.#step === "ready") this.#writePayload({ message_type: "ack", message_id: id });
  }

  #handOver(message) {
    const isForeground = globalThis.document?.visibilityState !== "hidden";
    if (!isForeground && message.notification && this.#show(message)) return undefined;
    const work = [];
    const event = new CustomEvent("message", { detail: message });
    event.waitUntil = (promise) => work.push(promise);
    this.dispatchEvent(event);
    return Promise.all(work);
  }

  /** Shows the message's notification; false where none may be shown. */
  #show(message) {
    if (this.#options.notifications === false || globalThis.Notification?.permission !== "granted") return false;
    const { title = "", body, icon, image, tag, click_action } = message.notification;
    const options = { body, icon: icon ?? this.#options.icon, image, tag: tag ?? message.collapse_key, data: message.data };
    const shown = new Notification(title, JSON.parse(JSON.stringify(options)));
    shown.onclick = () => {
      shown.close();
      globalThis.focus();
      this.dispatchEvent(new CustomEvent("notificationclick", { detail: message }));
      // Only places of the web: an action may be a script, too.
      if (/^https?:/.test(click_action ?? "")) globalThis.open(click_action, "_blank", "noopener");
    };
    return true;
  }

  // Small things

  #newID() { return `web-${Date.now().toString(36)}-${(this.#numbers++).toString(36)}-${Math.random().toString(36).slice(2, 8)}`; }
  #key(name) { return `weir:${this.#options.server}:${this.#options.project}:${this.#options.app}:${name}`; }
  #stored(name) { return this.#options.storage?.getItem(this.#key(name)) ?? null; }
  #store(name, text) {
    if (text === null) this.#options.storage?.removeItem(this.#key(name));
    else this.#options.storage?.setItem(this.#key(name), text);
  }
}

function is(element, name, namespace) {
  return element.localName === name && element.namespaceURI === namespace;
}

function escaped(text) {
  return text.replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign]);
}

function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
