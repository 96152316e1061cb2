// A message as it is typed, in the words of each front door, and back again as a device of a platform reads it.

export const FORMS = [["stream", "XMPP stream"], ["legacy", "Legacy HTTP"], ["v1", "HTTP v1"]];

/** Without what is empty. */
function tidy(object) {
  const entries = Object.entries(object).map(([name, value]) => [name, value && typeof value === "object" && !Array.isArray(value) ? tidy(value) : value])
    .filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false && !(typeof value === "object" && !Array.isArray(value) && !Object.keys(value).length));
  return Object.fromEntries(entries);
}

const number = (text) => (text === "" || text === undefined ? undefined : Number(text));

/** `name=value`, one a line, as data. */
export function dataOf(text) {
  const data = {};
  for (const line of (text ?? "").split("\n")) {
    const place = line.indexOf("=");
    if (place > 0) data[line.slice(0, place).trim()] = line.slice(place + 1).trim();
  }
  return data;
}

const isCondition = (to) => to.includes("' in topics");

/** The body that the front door takes. */
export function build(form, draft) {
  const { to = "" } = draft, data = dataOf(draft.data);
  const isTopic = to.startsWith("/topics/"), isUser = to.startsWith("/users/");
  if (form === "v1") {
    return tidy({
      message: {
        ...(isTopic ? { topic: to.slice(8) } : isUser ? { user: to.slice(7) } : isCondition(to) ? { condition: to } : { token: to }),
        notification: { title: draft.title, body: draft.body, image: draft.image }, data,
        android: {
          priority: draft.priority === "high" ? "HIGH" : undefined, ttl: draft.ttl ? `${draft.ttl}s` : undefined, collapse_key: draft.collapse,
          notification: { sound: draft.sound, click_action: draft.action, tag: draft.tag, color: draft.color, channel_id: draft.channel },
        },
        apns: {
          headers: { "apns-priority": draft.priority === "high" ? "10" : undefined, "apns-collapse-id": draft.collapse },
          payload: { aps: { badge: number(draft.badge), sound: draft.sound, category: draft.action, "mutable-content": draft.mutable ? 1 : undefined, "content-available": draft.available ? 1 : undefined,
            alert: draft.subtitle ? { title: draft.title, subtitle: draft.subtitle, body: draft.body } : undefined } },
          fcm_options: { image: draft.image },
        },
        webpush: { notification: { tag: draft.tag }, fcm_options: { link: draft.action?.startsWith("https:") ? draft.action : undefined } },
      },
      validate_only: draft.dry || undefined,
    });
  }
  return tidy({
    ...(isCondition(to) ? { condition: to } : { to }),
    message_id: form === "stream" ? draft.id : undefined,
    priority: draft.priority === "high" ? "high" : undefined, time_to_live: number(draft.ttl), collapse_key: draft.collapse,
    content_available: draft.available, mutable_content: draft.mutable, dry_run: draft.dry,
    delivery_receipt_requested: form === "stream" && draft.receipt,
    notification: {
      title: draft.title, subtitle: draft.subtitle, body: draft.body, image: draft.image, sound: draft.sound, badge: draft.badge, click_action: draft.action,
      tag: draft.tag, color: draft.color, android_channel_id: draft.channel,
    },
    data,
  });
}

/** What a device of a platform makes of such a body: { notification, data, priority, … }, in the words of the device stream. */
export function read(form, body, platform) {
  if (form !== "v1") return body;
  const { notification = {}, data = {}, android = {}, apns = {}, webpush = {} } = body.message ?? {};
  const aps = apns.payload?.aps ?? {};
  const alert = typeof aps.alert === "string" ? { body: aps.alert } : (aps.alert ?? {});
  const own = {
    android: { ...(android.notification ?? {}), android_channel_id: android.notification?.channel_id, collapse_key: android.collapse_key },
    ios: tidy({ title: alert.title, subtitle: alert.subtitle, body: alert.body, badge: aps.badge === undefined ? undefined : String(aps.badge), sound: aps.sound, click_action: aps.category, image: apns.fcm_options?.image }),
    web: { ...(webpush.notification ?? {}), click_action: webpush.fcm_options?.link },
  }[platform] ?? {};
  const whole = tidy({ ...notification, ...own });
  return tidy({
    notification: whole, data: { ...data, ...(platform === "android" ? android.data : platform === "web" ? webpush.data : {}) },
    priority: android.priority?.toLowerCase() ?? "normal", collapse_key: platform === "ios" ? apns.headers?.["apns-collapse-id"] : android.collapse_key,
    content_available: aps["content-available"] === 1, mutable_content: aps["mutable-content"] === 1,
  });
}
