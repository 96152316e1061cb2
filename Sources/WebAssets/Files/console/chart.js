// Charts of the last minutes: lines over time, bars, and small lines for tiles.

import { h, s } from "./dom.js";

const WINDOW_MAX_MS = 120000;
const WINDOW_MIN_MS = 30000;
const HEIGHT = 190;
const MARGIN = { top: 10, right: 12, bottom: 22, left: 52 };

/** What all charts share: the moment that the pointer, or an arrow key, looks at; as ms before now. */
const cursor = new EventTarget();
let looked = null;
function look(back) {
  looked = back === null ? null : Math.max(0, Math.min(WINDOW_MAX_MS, back));
  cursor.dispatchEvent(new Event("moved"));
}

function niceSteps(largest) {
  const rough = largest / 4, size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((part) => part * size).find((part) => part >= rough) ?? size * 10;
  const steps = [];
  for (let value = 0; value < largest + step * 0.999; value += step) steps.push(value);
  return steps;
}

/**
 * Lines over the last two minutes. `series` are { name, color (1 to 6), dash }; update() gets the moments and, for each
 * series, its values, with null where there is none. `scale` is "linear" or "log" (for times in µs).
 */
export class LineChart {
  constructor({ title, about, unit, series, format, ticks, scale = "linear", area = false }) {
    Object.assign(this, { title, unit, series, format, ticks, scale, area, window: WINDOW_MIN_MS, times: [], lines: series.map(() => []) });
    this.svg = s("svg", { class: "chart", role: "img", tabindex: "0" });
    this.readings = series.map(() => h("b", {}, "–"));
    this.moment = h("span", { class: "moment" });
    const legend = h("ul", { class: "legend" }, series.map(({ name, color, dash }, index) => h("li", {},
      s("svg", { viewBox: "0 0 20 6", "aria-hidden": "true" }, s("line", { x1: 1, x2: 19, y1: 3, y2: 3, class: `line c${color}`, "stroke-dasharray": dash })),
      h("span", {}, name), this.readings[index])), this.moment);
    this.element = h("section", { class: "card plot", "aria-label": title },
      h("header", {}, h("h2", {}, title), about && h("p", { class: "soft" }, about)), legend, this.svg);
    this.width = 600;
    new ResizeObserver(([entry]) => { this.width = Math.max(220, entry.contentRect.width); this.draw(); }).observe(this.element);
    const move = (event) => {
      this.isPointed = true;
      const box = this.svg.getBoundingClientRect();
      const inside = (event.clientX - box.left - MARGIN.left) / (this.width - MARGIN.left - MARGIN.right);
      look(inside < 0 || inside > 1 ? null : (1 - inside) * this.window);
    };
    this.svg.addEventListener("pointermove", move);
    this.svg.addEventListener("pointerdown", move);
    this.svg.addEventListener("pointerleave", () => { this.isPointed = false; look(null); });
    this.svg.addEventListener("blur", () => look(null));
    this.svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: 1000, ArrowRight: -1000, PageUp: 10000, PageDown: -10000 }[event.key];
      if (step) { event.preventDefault(); look((looked ?? 0) + step); } else if (event.key === "Escape") look(null);
    });
    this.moved = () => this.draw();
    cursor.addEventListener("moved", this.moved);
  }

  leave() { cursor.removeEventListener("moved", this.moved); }

  update(times, lines) {
    this.times = times;
    this.lines = lines;
    this.draw();
  }

  /** The floor and the top of the axis, and the values that have a line. */
  #axis(shown) {
    const all = shown.flat().filter((value) => value !== null && value !== undefined);
    if (this.scale === "log") {
      const low = 10 ** Math.floor(Math.log10(Math.max(10, Math.min(...all, 1000))));
      const high = 10 ** Math.ceil(Math.log10(Math.max(...all, low * 100)));
      const steps = [];
      for (let value = low; value <= high * 1.001; value *= 10) steps.push(value);
      const place = (value) => (Math.log10(Math.max(value, low)) - Math.log10(low)) / (Math.log10(high) - Math.log10(low));
      return { steps, place };
    }
    const steps = niceSteps(Math.max(4, ...all));
    return { steps, place: (value) => value / steps.at(-1) };
  }

  /** What stands beside the pointer. */
  #tip(at, values) {
    const wide = 148, tall = 18 * values.length + 10;
    const left = at + 12 + wide > this.width ? at - 12 - wide : at + 12;
    return s("g", { class: "tip", transform: `translate(${left} ${MARGIN.top + 4})` }, s("rect", { width: wide, height: tall, rx: 6 }),
      values.map((value, index) => [
        s("circle", { class: `dot c${this.series[index].color}`, cx: 12, cy: 18 * index + 14, r: 4 }),
        s("text", { x: 22, y: 18 * index + 18 }, this.series[index].name.slice(0, 16)),
        s("text", { x: wide - 9, y: 18 * index + 18, "text-anchor": "end", class: "strong" }, this.format(value ?? null)),
      ]));
  }

  draw() {
    const { width, svg, times } = this;
    const now = times.at(-1) ?? 0, inner = width - MARGIN.left - MARGIN.right, tall = HEIGHT - MARGIN.top - MARGIN.bottom;
    // The window grows with what there is to show.
    const window = this.window = Math.min(WINDOW_MAX_MS, Math.max(WINDOW_MIN_MS, now - (times[0] ?? now)));
    const x = (back) => MARGIN.left + (1 - back / window) * inner;
    const from = times.findIndex((at) => now - at <= window);
    const shownTimes = from < 0 ? [] : times.slice(from), shown = this.lines.map((line) => (from < 0 ? [] : line.slice(from)));
    const { steps, place } = this.#axis(shown);
    const y = (value) => MARGIN.top + (1 - place(value)) * tall;
    const parts = [];
    for (const step of steps) {
      parts.push(s("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(step), y2: y(step) }),
        s("text", { class: "tick", x: MARGIN.left - 8, y: y(step) + 4, "text-anchor": "end" }, (this.ticks ?? this.format)(step)));
    }
    for (let back = 0; back <= window + 999; back += window > 60000 ? 30000 : 10000) {
      if (x(back) < MARGIN.left - 1) continue;
      const label = back === 0 ? "now" : back === 60000 ? "1 min ago" : back === 120000 ? "2 min ago" : `${back / 1000} s`;
      const place = back === 0 ? "end" : x(back) < MARGIN.left + 20 ? "start" : "middle";
      parts.push(s("text", { class: "tick", x: x(back), y: HEIGHT - 5, "text-anchor": place }, label));
    }
    this.series.forEach(({ color, dash }, index) => {
      let path = "", isOn = false, first = null, last = null;
      shown[index].forEach((value, place) => {
        if (value === null || value === undefined) { isOn = false; return; }
        const point = `${x(now - shownTimes[place]).toFixed(1)} ${y(value).toFixed(1)}`;
        path += `${isOn ? "L" : "M"}${point}`;
        isOn = true;
        first ??= x(now - shownTimes[place]);
        last = x(now - shownTimes[place]);
      });
      if (!path) return;
      if (this.area && index === 0 && !path.slice(1).includes("M")) {
        parts.push(s("path", { class: `area c${color}`, d: `${path}L${last} ${y(0)}L${first} ${y(0)}Z` }));
      }
      parts.push(s("path", { class: `line c${color}`, d: path, "stroke-dasharray": dash }));
      // A value alone, between gaps, is a dot.
      shown[index].forEach((value, place) => {
        const isAlone = value !== null && (shown[index][place - 1] ?? null) === null && (shown[index][place + 1] ?? null) === null;
        if (isAlone) parts.push(s("circle", { class: `dot c${color}`, cx: x(now - shownTimes[place]), cy: y(value), r: 2 }));
      });
    });
    let seen = shownTimes.length - 1;
    if (looked !== null && shownTimes.length) {
      shownTimes.forEach((at, index) => { if (Math.abs(now - at - looked) < Math.abs(now - shownTimes[seen] - looked)) seen = index; });
      const back = now - shownTimes[seen];
      parts.push(s("line", { class: "cursor", x1: x(back), x2: x(back), y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom }));
      this.series.forEach(({ color }, index) => {
        const value = shown[index][seen];
        if (value !== null && value !== undefined) parts.push(s("circle", { class: `dot c${color}`, cx: x(back), cy: y(value), r: 3.5 }));
      });
      this.moment.textContent = back < 500 ? "now" : `${Math.round(back / 1000)} s ago`;
      if (this.isPointed) parts.push(this.#tip(x(back), shown.map((line) => line[seen])));
    } else {
      this.moment.textContent = "";
    }
    const said = this.series.map(({ name }, index) => {
      // Where a second had no messages, the last one that had some is told.
      const line = shown[index];
      let value = seen >= 0 ? line[seen] : null;
      if (looked === null) for (let back = seen; value === null && back > seen - 10 && back >= 0; back--) value = line[back];
      this.readings[index].textContent = this.format(value ?? null);
      return `${name} ${this.format(value ?? null)}`;
    });
    svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    svg.setAttribute("height", HEIGHT);
    svg.setAttribute("aria-label", `${this.title}, ${this.unit}: ${said.join(", ")}. Arrow keys look back.`);
    svg.replaceChildren(...parts);
  }
}

/** Bars beside their names, the longest first: rows are { name, value, note, color }. */
export function bars(rows, format, none) {
  if (!rows.length) return h("p", { class: "soft calm" }, none);
  const largest = Math.max(...rows.map(({ value }) => value), 1);
  return h("ul", { class: "bars" }, rows.map(({ name, value, note, color = 1, go }) => {
    const bar = h("i", { class: `bar b${color}` });
    bar.style.inlineSize = `${Math.max(0.5, (value / largest) * 100)}%`;
    return h("li", {}, h("span", {}, go ? h("a", { href: go }, name) : name), h("div", {}, bar), h("b", {}, format(value)), note && h("small", {}, note));
  }));
}

/** Parts of a whole in one bar: rows are { name, value, color }. */
export function shares(label, rows, format) {
  const whole = rows.reduce((sum, { value }) => sum + value, 0);
  const percent = (value) => (whole ? `${((value / whole) * 100).toFixed(value / whole < 0.1 ? 1 : 0)} %` : "0 %");
  const bar = h("div", { class: "shares", role: "img", "aria-label": `${label}: ${rows.map(({ name, value }) => `${name} ${percent(value)}`).join(", ")}` },
    rows.filter(({ value }) => value > 0).map(({ name, value, color }) => {
      const piece = h("i", { class: `b${color}`, title: `${name}: ${format(value)} (${percent(value)})` });
      piece.style.flexGrow = value / whole;
      return piece;
    }));
  return h("div", {}, bar, h("ul", { class: "legend wide" }, rows.map(({ name, value, color }) =>
    h("li", {}, h("i", { class: `swatch b${color}` }), h("span", {}, name), h("b", {}, format(value)), h("small", {}, percent(value))))));
}

/** A line without axes, for a tile. */
export function spark(values, color) {
  const width = 120, height = 28;
  const numbers = values.map((value) => value ?? 0);
  const largest = Math.max(...numbers, 1e-9), count = Math.max(2, numbers.length);
  const points = numbers.map((value, index) => `${((index / (count - 1)) * width).toFixed(1)} ${(height - 2 - (value / largest) * (height - 4)).toFixed(1)}`);
  const path = points.length > 1 ? `M${points.join("L")}` : "";
  return s("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    path && s("path", { class: `area c${color}`, d: `${path}L${width} ${height}L0 ${height}Z` }), path && s("path", { class: `line c${color}`, d: path }));
}
