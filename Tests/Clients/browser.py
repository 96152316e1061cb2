"""A real Chromium as a device: the demo page, driven through the DevTools protocol.

    browser.py device SCREENSHOT
    browser.py console FOLDER        the console instead: each view is opened and kept as a picture

Registers, receives a message with an image and acks it, sends upstream, shows a notification in the background, lives
through a restart of the server, which the test makes when it reads `restart now`, and logs no error meanwhile.
Run with the Python of .venv-websockets.
"""

import asyncio
import base64
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse

from websockets.asyncio.client import connect

import wire
from wire import equal

DEADLINE = 60
CHROMIUM = ["chromium", "chromium-browser", "google-chrome"]


class Page:
    """One page, over the browser's one DevTools connection."""

    def __init__(self, tools):
        self.tools = tools
        self.session = None
        self.numbers = itertools.count(1)
        self.waiting = {}
        self.errors = []

    async def listen(self):
        async for text in self.tools:
            event = json.loads(text)
            if "id" in event:
                self.waiting.pop(event["id"]).set_result(event)
            elif event["method"] == "Runtime.exceptionThrown":
                self.errors.append(event["params"]["exceptionDetails"])
            elif event["method"] == "Runtime.consoleAPICalled" and event["params"]["type"] in ("error", "warning"):
                self.errors.append(event["params"]["args"])
            elif event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] in ("error", "warning"):
                self.errors.append(event["params"]["entry"])

    async def call(self, method, session=True, **parameters):
        number = next(self.numbers)
        self.waiting[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": parameters}
        if session and self.session:
            message["sessionId"] = self.session
        answer = self.waiting[number]
        await self.tools.send(json.dumps(message))
        answer = await asyncio.wait_for(answer, DEADLINE)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    async def open(self, url):
        target = await self.call("Target.createTarget", session=False, url="about:blank")
        attached = await self.call("Target.attachToTarget", session=False, targetId=target["targetId"], flatten=True)
        self.session = attached["sessionId"]
        for domain in ["Runtime", "Log", "Page"]:
            await self.call(domain + ".enable")
        await self.call("Page.navigate", url=url)

    async def value(self, script):
        result = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, (script, result["exceptionDetails"])
        return result["result"].get("value")

    async def until(self, script, wanted=True):
        """Waits until an expression has a value; page and server decide when, so it is asked again."""
        until = time.monotonic() + DEADLINE
        while True:
            found = await self.value(script)
            if found == wanted:
                return
            assert time.monotonic() < until, f"{script} stayed {found!r}, wanted {wanted!r}; errors: {self.errors}"
            await asyncio.sleep(0.05)

    async def state(self, wanted):
        await self.until("document.getElementById('state')?.textContent", wanted)

    async def click(self, selector):
        await self.value(f"document.querySelector({json.dumps(selector)}).click()")


async def on_thread(function, *arguments):
    return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)


def launch(folder):
    program = next((found for name in CHROMIUM if (found := shutil.which(name))), None)
    if not program:
        sys.exit("there is no Chromium: dev/deps.sh test installs it")
    return subprocess.Popen(
        [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--disable-extensions", "--disable-background-networking", "--ignore-certificate-errors",
         "--window-size=1200,900", "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank"],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


def devtools(browser):
    for line in browser.stderr:
        if found := re.search(r"DevTools listening on (ws://\S+)", line):
            return found[1]
    raise AssertionError("the browser ended")


async def picture(page, path):
    taken = await page.call("Page.captureScreenshot", format="png")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(base64.b64decode(taken["data"]))


async def device(page, server, screenshot):
    settings = urllib.parse.urlencode({"project": server.project, "sender": server.sender, "key": server.api_key})
    await page.call("Browser.grantPermissions", session=False, permissions=["notifications"])
    await page.open(f"https://localhost:{server.https}/demo#{settings}")
    await page.until("document.readyState", "complete")
    await page.until("document.querySelector('[name=key]')?.value", server.api_key)
    await page.click("#start button")
    await page.state("connected")
    await page.until("document.getElementById('token').textContent.length > 20")
    token = await page.value("document.getElementById('token').textContent")
    print("registered and connected", flush=True)

    sender = await on_thread(server.app_server)
    image = f"https://localhost:{server.https}/demo.svg"
    sender.message({
        "to": token, "message_id": "b-1", "delivery_receipt_requested": True,
        "notification": {"title": "A picture", "body": "5 < 7 & \u8a9e\U0001f30d", "image": image}, "data": {"k": "v"}})
    answers = [await on_thread(sender.payload), await on_thread(sender.payload)]
    equal(sorted(one["message_type"] for one in answers), ["ack", "receipt"])
    receipt = next(one for one in answers if one["message_type"] == "receipt")
    sender.ack(receipt)
    await page.until("document.querySelector('#messages li strong').textContent", "A picture")
    await page.until("document.querySelector('#messages li p').textContent", "5 < 7 & \u8a9e\U0001f30d")
    await page.until("document.querySelector('#messages li img').naturalWidth > 0")
    print("received a message with an image, and acked it", flush=True)

    await page.value("document.querySelector('[name=text]').value = 'up & <away> \u8a9e'")
    await page.click("#send button")
    upstream = await on_thread(sender.payload)
    equal((upstream["from"], upstream["data"]), (token, {"text": "up & <away> \u8a9e"}))
    sender.ack(upstream)
    await page.until("document.getElementById('outcome').textContent.startsWith('taken')")
    print("sent upstream", flush=True)

    # In the background a message with a notification is shown and not handed over; one with data alone is.
    await page.value("""
      globalThis.shown = [];
      const real = globalThis.Notification;
      globalThis.Notification = class extends real {
        constructor(title, options) { super(title, options); shown.push({ title, ...options }); globalThis.last = this; }
      };
      Object.defineProperty(document, "visibilityState", { configurable: true, get: () => "hidden" });
      null""")
    for name, more in [("b-2", {"notification": {"title": "Seen", "body": "in the tray", "tag": "t"}}), ("b-3", {})]:
        sender.message({"to": token, "message_id": name, "data": {"n": name}, **more})
        equal((await on_thread(sender.payload))["message_type"], "ack")
    await page.until("document.querySelector('#messages li pre').textContent.includes('b-3')")
    equal(await page.value("shown.map(({title, body, tag}) => [title, body, tag])"), [["Seen", "in the tray", "t"]])
    equal(await page.value("document.getElementById('count').textContent"), "2")
    await page.value("last.onclick(); null")
    await page.until("document.querySelector('#messages li strong').textContent", "Seen")
    await page.value("delete document.visibilityState; null")
    print("showed a notification in the background", flush=True)

    equal(page.errors, [], "errors in the console")
    print("restart now", flush=True)
    await page.until("document.getElementById('state').textContent !== 'connected'")
    await page.state("connected")
    sender.close()
    sender = await on_thread(server.app_server)
    sender.message({"to": token, "message_id": "b-4", "notification": {"title": "After the restart"}})
    equal((await on_thread(sender.payload))["message_type"], "ack")
    await page.until("document.querySelector('#messages li strong').textContent", "After the restart")
    # While nobody listened, attempts to connect failed, which browsers log by themselves.
    left = [error for error in page.errors if "WebSocket connection to" not in json.dumps(error)]
    equal(left, [], "errors in the console")
    print("lived through a restart", flush=True)

    await picture(page, screenshot)
    await page.click("#forget")
    await page.until("document.getElementById('token').textContent", "none yet")
    sender.message({"to": token, "message_id": "b-5"})
    equal((await on_thread(sender.payload))["error"], "DEVICE_UNREGISTERED")
    sender.close()

    # The same page without TLS, for pages of this machine.
    await page.call("Page.navigate", url=f"http://localhost:{server.admin}/demo#{settings}")
    await page.until("location.protocol + document.readyState", "http:complete")
    await page.click("#start button")
    await page.state("connected")
    print("ok", flush=True)


async def console(page, server, folder):
    phone = await on_thread(server.register)
    away = await on_thread(lambda: server.register(app="org.example.away", user="ada"))
    sender, stream = await on_thread(server.app_server), await on_thread(server.device, phone)
    address = f"http://localhost:{server.admin}/"

    await page.open(address)
    await page.until("document.readyState", "complete")
    await page.value("document.querySelector('[name=key]').value = 'wrong'")
    await page.click("#login button")
    await page.until("document.getElementById('trouble').textContent.length > 0")
    # A refusal is an answer of 401, which browsers log by themselves.
    left = [error for error in page.errors if "401" not in json.dumps(error)]
    equal(left, [], "errors in the console")
    page.errors.clear()
    await page.value(f"document.querySelector('[name=key]').value = {json.dumps(server.secret('admin-key'))}")
    await page.click("#login button")
    await page.state("live")
    for number in range(40):
        to = phone["token"] if number % 4 else away["token"]
        sender.message({"to": to if number % 9 else "no-token", "message_id": f"c-{number}", "data": {"n": "1"}})
        answer = await on_thread(sender.payload)
        if answer["message_type"] == "ack" and answer["from"] == phone["token"]:
            stream.ack(await on_thread(stream.payload))
    await page.until("document.querySelector('.figures dd').textContent", "1")

    views = {
        "overview": "document.body.textContent.includes('BAD_REGISTRATION')",
        "live": "[...document.querySelectorAll('td .state')].some((one) => one.textContent === 'delivered')",
        "devices": "document.body.textContent.includes('org.example.away')",
        "topics": "document.body.textContent.includes('Topics')",
        "groups": "document.body.textContent.includes('Device groups')",
        "users": "document.body.textContent.includes('ada')",
        "projects": f"document.body.textContent.includes('{server.sender}')",
        "compose": "document.querySelectorAll('.phone').length === 3",
    }
    for name, sign in views.items():
        await page.value(f"location.hash = '{name}'; null")
        await page.until(f"Boolean({sign})")
        await picture(page, os.path.join(folder, f"console-{name}.png"))
    for scheme in ["dark"]:
        await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        await page.call("Emulation.setDeviceMetricsOverride", width=420, height=900, deviceScaleFactor=1, mobile=True)
        await page.value("location.hash = 'overview'; null")
        await page.until(f"Boolean({views['overview']})")
        await picture(page, os.path.join(folder, "console-phone-dark.png"))

    # The history of one message.
    await page.value("location.hash = 'live'; null")
    await page.until("document.querySelectorAll('form').length === 2 || document.querySelectorAll('#view form').length === 2")
    await page.value(
        "const form = document.querySelectorAll('#view form')[1]; form.elements.id.value = 'c-1'; form.elements.id.focus(); form.requestSubmit(); null")
    await page.until("document.getElementById('one').textContent.includes('delivered')")
    # Composing: what is typed is in the JSON, and goes out.
    await page.value("location.hash = 'compose'; null")
    await page.until(f"Boolean({views['compose']})")
    await page.value(f"""
      for (const [name, value] of Object.entries({{ to: {json.dumps(phone['token'])}, title: "Typed <b>" }})) {{
        const input = document.querySelector(`#view [name=${{name}}]`);
        input.value = value;
        input.dispatchEvent(new Event("input", {{ bubbles: true }}));
      }}
      document.getElementById("sendkey").value = {json.dumps(server.server_key)};
      document.querySelector("#view form").requestSubmit(); null""")
    delivered = await on_thread(stream.payload)
    equal(delivered["notification"]["title"], "Typed <b>")
    stream.ack(delivered)
    await page.until("document.getElementById('answer').textContent.startsWith('200')")
    assert await page.value("document.querySelector('#view textarea').value.includes('Typed <b>')")
    equal(page.errors, [], "errors in the console")
    print("ok", flush=True)


async def main():
    server = wire.Server()
    # Chromium keeps writing to its folder for a moment after it was told to end.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = launch(folder)
        try:
            async with connect(await on_thread(devtools, browser), max_size=None, ping_interval=None) as tools:
                page = Page(tools)
                listening = asyncio.ensure_future(page.listen())
                await {"device": device, "console": console}[sys.argv[1]](page, server, os.path.abspath(sys.argv[2]))
                listening.cancel()
        finally:
            browser.terminate()
            browser.wait(20)


if __name__ == "__main__":
    asyncio.run(main())
