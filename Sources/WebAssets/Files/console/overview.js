// What the server does now, and in the last two minutes.

import { h, card, empty, pill } from "./dom.js";
import { feed } from "./feed.js";
import { LineChart, bars, shares, spark } from "./chart.js";
import { bytes, count, decade, micros, rate, uptime } from "./format.js";

const sum = (object) => Object.values(object).reduce((total, value) => total + value, 0);
const dropped = (states) => states.dropped_overflow + states.dropped_unregistered + states.dropped_offline;

function tile(label, color, help) {
  const value = h("b", {}, "–"), line = h("div"), note = h("small", {});
  const element = h("div", { class: "tile", title: help }, h("span", {}, label), value, note, line);
  return { element, set(text, values, more = "") { value.textContent = text; note.textContent = more; line.replaceChildren(spark(values, color)); } };
}

const percentiles = [{ name: "p50", color: 1 }, { name: "p99", color: 2, dash: "6 3" }, { name: "p99.9", color: 4, dash: "2 3" }];

export function overview() {
  const health = h("p", { class: "health" });
  const tiles = {
    down: tile("Downstream", 1, "Messages of app servers that were taken, a second"),
    delivered: tile("Acked by devices", 3, "Messages that their device acked, a second"),
    up: tile("Upstream", 4, "Messages of devices that were taken, a second"),
    nacks: tile("Nacks", 2, "Messages refused, a second"),
    devices: tile("Devices connected", 1, "Logged-in streams of devices"),
    stored: tile("Waiting in the store", 5, "Messages stored for devices that have not acked them"),
  };
  const charts = {
    traffic: new LineChart({ title: "Messages a second", unit: "messages a second", format: count, area: true, series: [
      { name: "taken", color: 1 }, { name: "acked by devices", color: 3, dash: "6 3" }, { name: "upstream", color: 4, dash: "2 3" }, { name: "nacked", color: 2, dash: "8 3 2 3" }] }),
    accept: new LineChart({ title: "Until the sender is answered", about: "From a message's arrival to its ack or nack.", unit: "time", format: micros, ticks: decade, scale: "log", series: percentiles }),
    delivery: new LineChart({ title: "Until the device has acked", about: "From handing it to the device's stream.", unit: "time", format: micros, ticks: decade, scale: "log", series: percentiles }),
    streams: new LineChart({ title: "Connected", unit: "streams", format: count, area: true, series: [
      { name: "devices", color: 1 }, { name: "app servers", color: 2, dash: "6 3" }] }),
    queues: new LineChart({ title: "Queues", about: "What waits: for the disk, and for devices.", unit: "messages", format: count, area: true, series: [
      { name: "for the store's next batch", color: 1 }, { name: "in flight to devices", color: 3, dash: "6 3" }] }),
    write: new LineChart({ title: "The store's batches", about: "From handing a batch over to its being durable.", unit: "time", format: micros, ticks: decade, scale: "log", series: percentiles }),
  };
  const nacks = h("div"), ends = h("div"), store = h("dl", { class: "facts" });
  const waiting = empty("Waiting for the first figures", "They come once a second.");
  const body = h("div", { class: "stack", hidden: true },
    h("div", { class: "tiles" }, Object.values(tiles).map(({ element }) => element)),
    h("div", { class: "plots" }, charts.traffic.element, charts.accept.element, charts.delivery.element,
      h("div", { class: "stack tight" }, card("How messages ended, since the start", ends), card("Nacks by code, since the start", nacks)), charts.streams.element, charts.queues.element, charts.write.element,
      card("In the store", store)));

  function update() {
    const now = feed.now;
    if (!now) return;
    waiting.remove();
    body.hidden = false;
    const { history } = feed, times = history.map(({ at }) => at);
    const rates = {
      down: feed.rates((at) => at.downstream.accepted), delivered: feed.rates((at) => at.downstream.delivered),
      up: feed.rates((at) => at.upstream.accepted), nacked: feed.rates((at) => at.downstream.nacked),
    };
    const inFlight = (at) => Math.max(0, at.downstream.accepted - at.downstream.delivered - at.downstream.expired - at.downstream.collapsed - dropped(at.downstream) - (at.rows.messages ?? 0));
    tiles.down.set(rate(rates.down.at(-1)), rates.down, `${count(now.downstream.accepted)} since the start`);
    tiles.delivered.set(rate(rates.delivered.at(-1)), rates.delivered, `${count(now.downstream.delivered)} since the start`);
    tiles.up.set(rate(rates.up.at(-1)), rates.up, `${count(now.upstream.accepted)} since the start`);
    tiles.nacks.set(rate(rates.nacked.at(-1)), rates.nacked, `${count(sum(now.nacks))} since the start`);
    tiles.devices.set(count(now.devices), history.map(({ devices }) => devices), `of ${count(now.rows.devices ?? 0)}; ${count(now.app_servers)} app ${now.app_servers === 1 ? "server" : "servers"}`);
    tiles.stored.set(count(now.rows.messages ?? 0), history.map(({ rows }) => rows.messages ?? 0), "messages");
    charts.traffic.update(times, [rates.down, rates.delivered, rates.up, rates.nacked]);
    for (const [name, figures] of [["accept", "accept_us"], ["delivery", "delivery_us"], ["write", "write_us"]]) {
      charts[name].update(times, ["p50", "p99", "p999"].map((part) => history.map((at) => at[figures][part])));
    }
    charts.streams.update(times, [history.map((at) => at.devices), history.map((at) => at.app_servers)]);
    charts.queues.update(times, [history.map((at) => at.store_queue), history.map(inFlight)]);
    const before = history.at(-2);
    nacks.replaceChildren(bars(Object.entries(now.nacks).sort((left, right) => right[1] - left[1]).map(([name, value]) => {
      const fresh = before ? value - (before.nacks[name] ?? 0) : 0;
      return { name, value, color: 2, note: fresh > 0 ? `+${count(fresh)} in the last second` : null };
    }), count, "None: every message was taken."));
    const states = now.downstream;
    ends.replaceChildren(shares("How messages ended", [
      { name: "delivered", value: states.delivered, color: 3 }, { name: "expired", value: states.expired, color: 5 },
      { name: "collapsed", value: states.collapsed, color: 6 }, { name: "dropped", value: dropped(states), color: 2 },
    ], count), h("p", { class: "soft small" }, `${count(now.repeats ?? 0)} repeats were acked and not delivered again; ${count(now.writes_elided ?? 0)} messages were acked before they had to be written.`));
    const rows = now.rows;
    store.replaceChildren(...[
      ["Devices", rows.devices], ["Registrations", rows.registrations], ["Messages", rows.messages], ["Upstream messages", rows.upstream],
      ["Topics", rows.topics], ["Subscriptions", rows.subscriptions], ["Groups", rows.groups],
    ].flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, count(value ?? 0))]),
      h("dt", {}, "Faults of the store"), h("dd", {}, count(now.store_faults ?? 0)));
    health.replaceChildren(now.draining ? pill("draining", "dropped") : pill("taking messages", "delivered"),
      ...[`up ${uptime((now.at - now.started_at) / 1000)}`, `${now.loops} ${now.loops === 1 ? "loop" : "loops"}`, `${bytes(now.resident_bytes)} resident`].map((text) => h("span", { class: "soft" }, text)),
      now.faults_armed > 0 ? h("a", { href: "#/faults" }, pill(`${now.faults_armed} ${now.faults_armed === 1 ? "fault" : "faults"} armed`, "expired")) : "");
  }
  feed.addEventListener("figures", update);
  update();
  return {
    title: "Overview", element: h("div", { class: "stack" }, h("div", { class: "head" }, h("h1", {}, "Overview"), health), feed.now ? null : waiting, body),
    leave() {
      feed.removeEventListener("figures", update);
      for (const chart of Object.values(charts)) chart.leave();
    },
  };
}
