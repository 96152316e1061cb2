import { WeirDevice } from "/weir.js";

const $ = (id) => document.getElementById(id);
const KEPT_MAX = 100;
let device = null;
let count = 0;

// A link may carry the settings: /demo#project=demo&sender=…&key=…
for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
  if ($("start").elements[name]) $("start").elements[name].value = value;
}

$("start").addEventListener("submit", async (event) => {
  event.preventDefault();
  const settings = Object.fromEntries(new FormData($("start")));
  device?.close();
  device = new WeirDevice({
    project: settings.project, apiKey: settings.key, app: settings.app, senderID: settings.sender, icon: "/demo.svg",
  });
  device.addEventListener("state", ({ detail }) => tell(detail));
  device.addEventListener("message", ({ detail }) => show(detail));
  device.addEventListener("notificationclick", ({ detail }) => show(detail));
  device.addEventListener("deleted", ({ detail }) => show({ notification: { title: `${detail} messages were dropped` } }));
  try {
    await device.start();
  } catch (error) {
    tell(error.message);
  }
  $("token").textContent = device.token ?? "none yet";
});

$("stop").addEventListener("click", () => device?.close());
$("forget").addEventListener("click", async () => {
  await device?.unregister();
  $("token").textContent = "none yet";
});
$("allow").addEventListener("click", async () => {
  $("allow").textContent = (await WeirDevice.askForNotifications()) ? "Notifications are allowed" : "Not allowed";
});

$("send").addEventListener("submit", async (event) => {
  event.preventDefault();
  $("outcome").textContent = "…";
  try {
    const id = await device.send({ text: $("send").elements.text.value });
    $("outcome").textContent = `taken (${id})`;
  } catch (error) {
    $("outcome").textContent = error?.code ?? error?.message ?? "not connected";
  }
});

function tell(state) {
  $("state").textContent = state;
  $("state").dataset.state = state;
}

function show(message) {
  const item = document.createElement("li");
  const { notification = {}, data } = message;
  const head = document.createElement("strong");
  head.textContent = notification.title ?? (data ? "Data" : "A message");
  item.append(head);
  if (notification.body) item.append(text("p", notification.body));
  if (/^(https?:|\/)/.test(notification.image ?? "")) {
    const image = document.createElement("img");
    image.src = notification.image;
    image.alt = "";
    item.append(image);
  }
  if (data) item.append(text("pre", JSON.stringify(data, null, 2)));
  if (message.sent_time) item.append(text("time", new Date(message.sent_time).toLocaleTimeString()));
  $("messages").prepend(item);
  while ($("messages").childElementCount > KEPT_MAX) $("messages").lastElementChild.remove();
  $("count").textContent = ++count;
}

function text(name, content) {
  const element = document.createElement(name);
  element.textContent = content;
  return element;
}
