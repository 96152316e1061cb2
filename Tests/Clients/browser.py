"""A real Chromium as a device: the demo page, driven through the DevTools protocol.

    browser.py SCREENSHOT

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


async def run(page, server, screenshot):
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

    picture = await page.call("Page.captureScreenshot", format="png")
    os.makedirs(os.path.dirname(screenshot), exist_ok=True)
    with open(screenshot, "wb") as file:
        file.write(base64.b64decode(picture["data"]))
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


async def main():
    server = wire.Server()
    # Chromium keeps writing to its folder for a moment after it was told to end.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = launch(folder)
        try:
            async with connect(await on_thread(devtools, browser), max_size=None, ping_interval=None) as tools:
                page = Page(tools)
                listening = asyncio.ensure_future(page.listen())
                await run(page, server, os.path.abspath(sys.argv[1]))
                listening.cancel()
        finally:
            browser.terminate()
            browser.wait(20)


if __name__ == "__main__":
    asyncio.run(main())
