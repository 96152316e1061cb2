// Numbers and times, short enough for a tile.

const units = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];

export function count(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  for (const [size, unit] of units) {
    if (Math.abs(value) >= size * (size === 1e3 ? 10 : 1)) {
      const part = value / size;
      return `${part >= 100 ? Math.round(part) : part.toFixed(1)} ${unit}`;
    }
  }
  return Number.isInteger(value) ? value.toLocaleString("en-US") : value >= 100 ? Math.round(value).toLocaleString("en-US") : value.toFixed(value < 10 ? 1 : 0);
}

export const rate = (value) => (value === null || value === undefined ? "–" : `${count(Math.round(value * 10) / 10)}/s`);

export function micros(us) {
  if (us === null || us === undefined) return "–";
  if (us >= 1e6) return `${(us / 1e6).toFixed(us >= 1e7 ? 0 : 1)} s`;
  if (us >= 1e3) return `${(us / 1e3).toFixed(us >= 1e5 ? 0 : us >= 1e4 ? 1 : 2)} ms`;
  return `${Math.round(us)} µs`;
}

/** A power of ten of µs, for an axis. */
export const decade = (us) => (us >= 1e6 ? `${us / 1e6} s` : us >= 1e3 ? `${us / 1e3} ms` : `${us} µs`);

export const bytes = (value) => value === null || value === undefined ? "–" : value >= 1e9 ? `${(value / 1e9).toFixed(2)} GB` : `${(value / 1e6).toFixed(0)} MB`;

export function clock(at) {
  const date = new Date(at);
  return `${date.toLocaleTimeString("en-GB")}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

export const day = (at) => new Date(at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });

export function ago(at) {
  const seconds = Math.max(0, (Date.now() - at) / 1000);
  if (seconds < 10) return "now";
  if (seconds < 90) return `${Math.round(seconds)} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} days ago`;
}

export function span(ms) {
  if (ms < 1000) return `+${ms} ms`;
  if (ms < 60000) return `+${(ms / 1000).toFixed(1)} s`;
  if (ms < 3600000) return `+${Math.round(ms / 60000)} min`;
  return `+${Math.round(ms / 3600000)} h`;
}

export function uptime(seconds) {
  const days = Math.floor(seconds / 86400), hours = Math.floor(seconds / 3600) % 24, minutes = Math.floor(seconds / 60) % 60;
  return days ? `${days} d ${hours} h` : hours ? `${hours} h ${minutes} min` : minutes ? `${minutes} min` : `${Math.max(0, Math.floor(seconds))} s`;
}
