"""Strophe.js, an XMPP-over-WebSocket client that others wrote, in a real Chromium: a device and an app server on one page.

Run with the Python of .venv-websockets. Strophe is Debian's libjs-strophe.
"""

import asyncio
import json
import tempfile

from websockets.asyncio.client import connect

import wire
from browser import Page, devtools, launch, on_thread
from wire import case, equal

SCRIPT = "/usr/share/javascript/strophe/strophe.js"

PARTIES = """
globalThis.logIn = (jid, password) => {
  const connection = new Strophe.Connection(`wss://${location.host}/xmpp`);
  const party = { connection, states: [], got: [], ended: false };
  party.send = (payload) => connection.send($msg().c("gcm", { xmlns: "google:mobile:data" }).t(JSON.stringify(payload)));
  const heard = (stanza) => { party.got.push(JSON.parse(Strophe.getText(stanza.getElementsByTagName("gcm")[0]).replace(/&(lt|gt|amp|quot|apos);/g, (_, name) => ({ lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" })[name]))); return true; };
  connection.connect(jid, password, (status, condition) => {
    party.states.push(status);
    party.condition = condition;
    if (status === Strophe.Status.CONNECTED) connection.addHandler(heard, null, "message");
    if (status === Strophe.Status.DISCONNECTED) party.ended = true;
  });
  return party;
};
null
"""


async def opened(page, server):
    await page.open(f"https://localhost:{server.https}/demo")
    await page.until("document.readyState", "complete")
    with open(SCRIPT, encoding="utf-8") as file:
        await page.value(file.read() + "\n;null")
    await page.value(PARTIES)


async def log_in(page, name, user, password):
    await page.value(f"globalThis.{name} = logIn({json.dumps(user)}, {json.dumps(password)}); null")


async def got(page, name):
    await page.until(f"{name}.got.length > 0")
    return await page.value(f"{name}.got.shift()")


async def say(page, name, payload):
    await page.value(f"{name}.send({json.dumps(payload)}); null")


@case
async def a_device_and_an_app_server_exchange_messages(page, server):
    server = await on_thread(server.with_project_of_its_own)
    registration = await on_thread(server.register)
    await opened(page, server)
    await log_in(page, "phone", registration["device_id"] + "@fcm-xmpp.googleapis.com", registration["device_secret"])
    await log_in(page, "sender", server.sender + "@fcm.googleapis.com", server.server_key)
    for name in ["phone", "sender"]:
        await page.until(f"{name}.states.includes(Strophe.Status.CONNECTED)")
    text = "<&>\"'\u8a9e\U0001f30d"
    await say(page, "sender", {"to": registration["token"], "message_id": "s-1", "data": {"a": text},
                               "delivery_receipt_requested": True})
    delivered = await got(page, "phone")
    equal(delivered["data"], {"a": text})
    await say(page, "phone", {"message_type": "ack", "message_id": delivered["message_id"]})
    answers = [await got(page, "sender"), await got(page, "sender")]
    equal(sorted(one["message_type"] for one in answers), ["ack", "receipt"])
    receipt = next(one for one in answers if one["message_type"] == "receipt")
    await say(page, "sender", {"message_type": "ack", "message_id": receipt["message_id"], "to": receipt["from"]})
    await say(page, "phone", {"to": server.sender + "@fcm.googleapis.com", "message_id": "u-1", "data": {"up": text}})
    upstream = await got(page, "sender")
    equal((upstream["from"], upstream["data"]), (registration["token"], {"up": text}))
    await say(page, "sender", {"message_type": "ack", "message_id": "u-1", "to": upstream["from"]})
    equal(await got(page, "phone"), {"message_type": "ack", "message_id": "u-1"})
    for name in ["phone", "sender"]:
        await page.value(f"{name}.connection.disconnect(); null")
        await page.until(f"{name}.ended")
    equal(page.errors, [], "errors in the console")


@case
async def a_wrong_secret_is_refused(page, server):
    registration = await on_thread(server.register)
    await opened(page, server)
    await log_in(page, "phone", registration["device_id"] + "@fcm-xmpp.googleapis.com", "wrong")
    await page.until("phone.states.includes(Strophe.Status.AUTHFAIL)")
    await page.until("phone.ended")


async def in_browser(function, server):
    # Chromium keeps writing to its folder for a moment after it was told to end.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = launch(folder)
        try:
            async with connect(await on_thread(devtools, browser), max_size=None, ping_interval=None) as tools:
                page = Page(tools)
                listening = asyncio.ensure_future(page.listen())
                await function(page, server)
                listening.cancel()
        finally:
            browser.terminate()
            browser.wait(20)


if __name__ == "__main__":
    wire.main(lambda function, server: asyncio.run(in_browser(function, server)))
