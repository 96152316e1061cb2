// The administration API. The key lives in this tab alone and travels in a header.

const NAME = "weir-admin-key";
let key = sessionStorage.getItem(NAME) ?? "";

export class Refused extends Error {}

export const hasKey = () => key !== "";
export const theKey = () => key;
export function keep(text) {
  key = text;
  sessionStorage.setItem(NAME, text);
}
export function forget() {
  key = "";
  sessionStorage.removeItem(NAME);
}

/** One call: gives what it answers, throws its error message. */
export async function api(method, path, body) {
  let answer;
  try {
    answer = await fetch(`/admin/v1/${path}`, {
      method, cache: "no-store", credentials: "omit",
      headers: { authorization: `Bearer ${key}`, ...(body ? { "content-type": "application/json" } : {}) },
      body: body ? JSON.stringify(body) : undefined,
    });
  } catch {
    throw new Error("The server does not answer.");
  }
  const text = await answer.text();
  let value = null;
  try { value = text ? JSON.parse(text) : {}; } catch { value = null; }
  if (answer.status === 401) throw new Refused("This is not the administration key of this server.");
  if (!answer.ok || value === null) throw new Error(value?.error?.message ?? `The server answered ${answer.status}.`);
  return value;
}

export const get = (path, query = {}) => {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "")).toString();
  return api("GET", text ? `${path}?${text}` : path);
};

export const part = encodeURIComponent;
