"""The console in a real Chromium: signs in, uses every view, keeps a picture of each, and logs no error meanwhile.

    console_page.py FOLDER

Run with the Python of .venv-websockets.
"""

import asyncio
import base64
import json
import os
import sys
import tempfile
import threading

from websockets.asyncio.client import connect

from browser import Page, devtools, launch, on_thread
import wire
from wire import equal

WIDE = {"width": 1360, "height": 900, "deviceScaleFactor": 1, "mobile": False}
TALL = 1700
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}


class Traffic:
    """An app server and two devices, one of them away, on a thread: something for the console to show."""

    def __init__(self, server):
        self.server = server
        self.near = server.register(app="org.example.near", platform="android", user="ada")
        self.away = server.register(app="org.example.away", platform="ios", user="grace")
        self.ended = threading.Event()
        self.sent = 0
        self.fault = None
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            sender, device = self.server.app_server(), self.server.device(self.near)
            while not self.ended.wait(0.02):
                number = self.sent
                self.sent += 1
                to = self.near["token"] if number % 3 else self.away["token"]
                to = "no-token" if number % 17 == 5 else to
                sender.message({
                    "to": to, "message_id": f"m-{number}", "time_to_live": 600, "data": {"n": str(number)},
                    "collapse_key": "news" if number % 3 == 0 else None})
                if to == self.near["token"]:
                    device.ack(device.payload())
                sender.payload()
                if number % 25 == 0:
                    device.message({"to": f"{self.server.sender}@fcm.googleapis.com", "message_id": f"u-{number}", "data": {"up": "1"}})
                    sender.ack(sender.payload())
                    device.payload()
            sender.close()
            device.close()
        except Exception as fault:  # The page's test says it.
            self.fault = fault

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join(60)


class Console:
    def __init__(self, page, server, folder):
        self.page, self.server, self.folder = page, server, folder

    async def see(self, text, where="document.body"):
        """Waits until a text is on the page."""
        await self.page.until(f"Boolean(({where})?.innerText.includes({json.dumps(text)}))")

    async def go(self, view, sign):
        await self.page.value(f"location.hash = '#/{view}'; null")
        await self.page.until("document.getElementById('view').dataset.view", view.split("?")[0])
        await self.see(sign)

    async def press(self, text, where="document"):
        """Clicks the button of this text, in the dialog on top if there is one."""
        script = f"""(() => {{
          const within = [...document.querySelectorAll('dialog[open]')].at(-1) ?? {where};
          const found = [...within.querySelectorAll('button, summary')].filter((one) => one.textContent.trim() === {json.dumps(text)} && !one.disabled).at(0);
          found?.click();
          return Boolean(found);
        }})()"""
        await self.page.until(script)

    async def type(self, values, where="document"):
        """Types into fields by their names, and says so as a keyboard would."""
        await self.page.value(f"""(() => {{
          const within = [...document.querySelectorAll('dialog[open]')].at(-1) ?? {where};
          for (const [name, value] of Object.entries({json.dumps(values)})) {{
            const field = within.querySelector(`[name="${{name}}"]:not([type=radio])`);
            if (field.type === "checkbox") field.checked = value; else field.value = value;
            field.dispatchEvent(new Event("input", {{ bubbles: true }}));
          }}
          return null;
        }})()""")

    async def close(self):
        await self.page.value("document.querySelectorAll('dialog[open]').forEach((one) => one.close()); null")

    async def shot(self, name):
        """The whole page, as far as anybody would scroll; what a note says is in nobody's way."""
        await self.page.value("document.getElementById('toasts').replaceChildren(); null")
        # Some frames, so that what was changed is drawn and what moves has come to rest.
        await self.page.value("new Promise((done) => requestAnimationFrame(() => setTimeout(() => requestAnimationFrame(done), 200)))")
        size = (await self.page.call("Page.getLayoutMetrics"))["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], TALL), "scale": 1}
        taken = await self.page.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        os.makedirs(self.folder, exist_ok=True)
        with open(os.path.join(self.folder, f"console-{name}.png"), "wb") as file:
            file.write(base64.b64decode(taken["data"]))

    async def looks(self, size, scheme):
        await self.page.call("Emulation.setDeviceMetricsOverride", **size)
        await self.page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    async def sign_in(self):
        await self.page.open(f"http://localhost:{self.server.admin}/")
        await self.page.call("Emulation.setScrollbarsHidden", hidden=True)
        await self.page.until("document.querySelector('#login')?.hidden", False)
        await self.shot("sign-in")
        await self.type({"key": "wrong"})
        await self.press("Sign in")
        await self.see("not the administration key")
        # A refusal is an answer of 401, which browsers log by themselves.
        left = [error for error in self.page.errors if "401" not in json.dumps(error)]
        equal(left, [], "errors in the console")
        self.page.errors.clear()
        await self.type({"key": self.server.secret("admin-key")})
        await self.press("Sign in")
        await self.page.until("document.getElementById('state').textContent", "live")
        equal(await self.page.value("location.search + location.pathname"), "/", "no key is in the address")
        print("signed in", flush=True)

    async def keyboard(self):
        """Tab leads from the link that skips them through all views."""
        await self.page.value("document.querySelector('.skip').focus(); null")
        seen = []
        for _ in range(12):
            for kind in ["keyDown", "keyUp"]:
                await self.page.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
            seen.append(await self.page.value("document.activeElement.textContent.trim()"))
        assert {"Overview", "Messages", "Devices", "Topics", "Groups", "Users"} <= set(seen), seen
        await self.page.value("document.querySelector('a[data-view=messages]').focus(); null")
        for kind in ["keyDown", "keyUp"]:
            await self.page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
        await self.page.until("document.getElementById('view').dataset.view", "messages")
        print("reached by keys", flush=True)

    async def overview(self):
        await self.go("overview", "Messages a second")
        await self.see("BAD_REGISTRATION")
        await self.page.until("document.querySelectorAll('.plot .line.c1').length > 3")
        # The readings of the charts are there for keys too.
        await self.page.value("document.querySelector('svg.chart').focus(); null")
        for kind in ["keyDown", "keyUp"]:
            await self.page.call("Input.dispatchKeyEvent", type=kind, key="ArrowLeft", code="ArrowLeft", windowsVirtualKeyCode=37)
        await self.see("1 s ago")
        await self.page.value("document.activeElement.blur(); null")
        await self.page.until("Number(document.querySelectorAll('.legend b')[0].textContent) > 1")
        await self.shot("overview")
        await self.looks(WIDE, "dark")
        await self.shot("overview-dark")
        await self.looks(PHONE, "light")
        await self.shot("overview-phone")
        await self.looks(WIDE, "light")
        print("overview", flush=True)

    async def messages(self, traffic):
        await self.go("messages", "The history of one message")
        await self.page.until("document.querySelectorAll('.steps .step').length > 31")
        await self.see("delivered", "document.querySelector('.steps')")
        await self.see("m-", "document.querySelector('.steps')")
        await self.shot("messages")
        await self.looks(PHONE, "dark")
        await self.shot("messages-phone-dark")
        await self.looks(WIDE, "light")
        await self.type({"state": "nacked"})
        await self.page.until(
            "[...document.querySelectorAll('.steps .pill')].length > 0 && [...document.querySelectorAll('.steps .pill')].every((one) => one.textContent === 'nacked')")
        await self.see("BAD_REGISTRATION", "document.querySelector('.steps')")
        await self.type({"state": "", "token": "nobody"})
        await self.see("No registration ever had this token.")
        await self.type({"token": traffic.away["token"]})
        await self.page.until(
            "document.querySelectorAll('.steps .step').length > 3 && !document.querySelector('.steps').innerText.includes('delivered')")
        await self.type({"token": "", "direction": "upstream"})
        await self.see("u-", "document.querySelector('.steps')")
        await self.type({"direction": ""})
        await self.page.until(
            "[...document.querySelectorAll('.steps .step')].some((one) => one.innerText.includes('delivered') && one.innerText.includes('m-'))")
        await self.press("Pause")
        await self.see("Paused.")
        await self.see("new)")
        await self.page.value("[...document.querySelectorAll('.steps .step')].find((one) => one.innerText.includes('delivered') && one.innerText.includes('m-')).click(); null")
        await self.see("acked by its device", "document.querySelector('dialog')")
        await self.shot("history")
        await self.close()
        await self.page.until("[...document.querySelectorAll('button')].some((one) => one.textContent.startsWith('Go on') && (one.click(), true))")
        await self.type({"id": "m-1"})
        await self.press("Show its history")
        await self.see("delivered", "document.querySelector('dialog')")
        await self.close()
        print("messages", flush=True)

    async def devices(self, traffic):
        await self.go("devices", "org.example.near")
        await self.see("connected")
        await self.shot("devices")
        await self.looks(PHONE, "light")
        await self.shot("devices-phone")
        await self.looks(WIDE, "light")
        await self.type({"starting": traffic.away["token"][:24]})
        await self.page.until("document.querySelectorAll('tbody tr').length === 1 && document.querySelector('tbody').innerText.includes('org.example.away')")
        await self.page.value("document.querySelector('tbody tr').click(); null")
        await self.see("Waiting for it", "document.querySelector('dialog')")
        await self.see("Steps of its messages", "document.querySelector('dialog')")
        await self.shot("device")
        await self.press("Subscribe to a topic")
        await self.type({"topic": "news"})
        await self.press("Subscribe")
        await self.see("Topic news: changed.")
        await self.close()
        await self.type({"starting": ""})
        await self.press("Register a device")
        await self.type({"app": "org.example.made", "user": "ada"})
        await self.press("Register")
        await self.see("device_secret")
        made = json.loads(await self.page.value("document.querySelector('dialog pre').textContent"))
        await self.close()
        await self.see("org.example.made")
        await self.page.value("[...document.querySelectorAll('tbody tr')].find((one) => one.innerText.includes('org.example.made')).click(); null")
        await self.press("Unregister")
        await self.press("Unregister")
        await self.see("Unregistered.")
        await self.close()
        status, found = self.server.administer("GET", "/admin/v1/tokens/" + made["token"].replace(":", "%3A"))
        equal((status, found["state"]), (200, "unregistered"))
        print("devices", flush=True)

    async def targets(self, traffic):
        await self.go("topics", "news")
        await self.press("Subscribe devices")
        await self.type({"topic": "weather", "tokens": f"{traffic.near['token']}\n{traffic.away['token']}"})
        await self.press("Subscribe devices")
        await self.see("2 changed.")
        await self.see("weather")
        await self.shot("topics")
        await self.page.value("[...document.querySelectorAll('tbody tr')].find((one) => one.innerText.includes('weather')).click(); null")
        await self.see("org.example.away", "document.querySelector('dialog')")
        await self.close()
        await self.go("groups", "No device group")
        await self.shot("groups-empty")
        await self.press("Make a group")
        await self.type({"name": "family", "tokens": traffic.near["token"]})
        await self.press("Make it")
        await self.see("family", "document.querySelector('#view')")
        await self.shot("groups")
        await self.page.value("document.querySelector('tbody tr').click(); null")
        await self.press("Add members")
        await self.type({"tokens": traffic.away["token"]})
        await self.press("Add")
        await self.page.until("document.querySelectorAll('dialog tbody tr').length", 2)
        await self.close()
        await self.go("users", "grace")
        await self.page.value("[...document.querySelectorAll('tbody tr')].find((one) => one.innerText.includes('grace')).click(); null")
        await self.see("Set the badge", "document.querySelector('dialog')")
        await self.type({"badge": "7"})
        await self.press("Set the badge")
        await self.see("The badge is set.")
        await self.close()
        await self.page.until("document.querySelector('.badge')?.textContent", "7")
        await self.shot("users")
        print("topics, groups, users", flush=True)

    async def projects(self):
        await self.go("projects", self.server.sender)
        await self.press("Make a project")
        await self.type({"id": "second", "sender_id": "200000000002"})
        await self.press("Make the project")
        await self.see("The keys are shown once.")
        await self.close()
        await self.see("second", "document.querySelector('#view')")
        await self.press("Make a key")
        await self.type({"project": "second"})
        await self.press("Make the key")
        await self.see("The key is shown once")
        await self.shot("key")
        await self.close()
        before = await self.page.value("document.querySelectorAll('.pill.is-nacked').length")
        await self.page.value("[...document.querySelectorAll('tr')].filter((one) => one.innerText.includes('second') && one.innerText.includes('Revoke')).at(-1).querySelector('button').click(); null")
        await self.press("Revoke")
        await self.page.until(f"document.querySelectorAll('.pill.is-nacked').length === {before + 1}")
        await self.shot("projects")
        # Two projects: the other one can be looked at.
        await self.page.until("document.getElementById('project-label').hidden", False)
        print("projects and keys", flush=True)

    async def nodes(self):
        """The test says in NODES how many nodes share the server's store; without it the server is alone."""
        count = int(os.environ.get("NODES", "0"))
        if not count:
            await self.go("nodes", "This server is alone")
            return
        await self.go("nodes", "this one")
        await self.page.until("[...document.querySelectorAll('tbody tr')].filter((one) => one.innerText.includes('alive')).length", count)
        await self.shot("nodes")
        print("nodes", flush=True)

    async def compose(self, traffic):
        await self.go("compose", "How it looks")
        phone, stream = traffic
        for form, sign in [("stream", '"message_type": "ack"'), ("legacy", "HTTP 200"), ("v1", "HTTP 200")]:
            await self.page.value(f"document.querySelector('input[name=form][value={form}]').click(); null")
            await self.type({"to": phone["token"], "title": f"By {form} <b>", "body": "5 < 7", "data": "k=v\nn=1", "priority": "high"})
            await self.page.until("document.querySelector('[name=json]').value.includes('<b>')")
            await self.press("Send")
            delivered = await on_thread(stream.payload)
            equal((delivered["notification"]["title"], delivered["data"]), (f"By {form} <b>", {"k": "v", "n": "1"}))
            stream.ack(delivered)
            await self.see(sign)
        await self.press("Follow this message")
        await self.see("delivered", "document.querySelector('dialog')")
        await self.close()
        equal(await self.page.value("document.querySelectorAll('.phone b').length > 0 && [...document.querySelectorAll('.phone b')].every((one) => one.childElementCount === 0)"), True)
        await self.shot("compose")
        await self.looks(WIDE, "dark")
        await self.shot("compose-dark")
        await self.looks(PHONE, "light")
        await self.shot("compose-phone")
        await self.looks(WIDE, "light")
        await self.type({"json": "{ no"})
        await self.see("This is not JSON yet")
        await self.press("Follow the fields again")
        await self.type({"to": "nobody"})
        await self.press("Send")
        await self.see("INVALID_ARGUMENT")
        print("composed and sent in three forms", flush=True)

    async def phones(self):
        await self.go("phones", "iPhone")
        for kind in range(3):
            await self.page.value(f"[...document.querySelectorAll('.simulated')][{kind}].querySelector('button.primary').click(); null")
            await self.page.until(f"[...document.querySelectorAll('.simulated')][{kind}].querySelector('.pill').textContent", "connected")
        tokens = [row["token"] for row in self.server.administer("GET", "/admin/v1/tokens?max=1000")[1]["tokens"] if row["app"] == "org.example.console"]
        equal(len(tokens), 3)
        for token in tokens:
            for number, text in enumerate(["It comes today between 14:00 and 16:00.", "It is at your neighbour's."]):
                status, told = self.server.administer("POST", "/admin/v1/send", {"form": "v1", "message": {"message": {
                    "token": token, "notification": {"title": f"Parcel 8{number}", "body": text}, "data": {"parcel": "88"},
                    "android": {"priority": "HIGH", "notification": {"color": "#a3540a"}},
                    "apns": {"payload": {"aps": {"badge": number + 2, "sound": "default"}}}}}})
                equal((status, told["status"]), (200, 200))
        await self.page.until("document.querySelectorAll('.phone .note').length", 6)
        await self.page.until("document.querySelector('.is-ios .badge')?.textContent", "3")
        await self.shot("phones")
        # Their acks came: the messages are delivered.
        for token in tokens:
            found = self.server.administer("GET", "/admin/v1/messages?token=" + token.replace(":", "%3A"))[1]
            equal([step["state"] for step in found["history"]].count("delivered"), 2)
        await self.page.value("[...document.querySelectorAll('.simulated')][1].querySelector('input[value=front]').click(); null")
        self.server.administer("POST", "/admin/v1/send", {"form": "legacy", "message": {"to": tokens[0], "notification": {"title": "Again"}}})
        await self.page.until("document.querySelectorAll('.said li').length > 6")
        await self.looks(PHONE, "dark")
        await self.shot("phones-phone-dark")
        await self.looks(WIDE, "light")
        print("phones", flush=True)

    async def faults(self):
        target = self.server.register()["token"]
        await self.go("faults", "No fault is armed")
        await self.type({"kind": "nack", "code": "DEVICE_MESSAGE_RATE_EXCEEDED", "token": target, "retry_after": "5"})
        await self.press("Arm the fault")
        await self.see("nack", "document.querySelector('table')")
        await self.shot("faults")
        told = self.server.administer("POST", "/admin/v1/send", {"form": "legacy", "message": {"to": target}})[1]
        equal(told["answer"]["results"], [{"error": "DeviceMessageRateExceeded"}])
        await self.type({"kind": "delay", "delay_ms": "10", "token": "", "count": "0"})
        await self.press("Arm the fault")
        await self.see("delay", "document.querySelector('table')")
        await self.press("Disarm all")
        await self.see("No fault is armed")
        await self.see("127.0.0.1")
        await self.press("Drain and end")
        await self.page.until("document.querySelector('dialog[open]') !== null")
        await self.press("Drain and end")
        # Without the word nothing happens.
        equal(await self.page.value("document.querySelector('dialog[open]') !== null"), True)
        await self.close()
        print("faults", flush=True)

    async def run(self):
        server = self.server
        with Traffic(server) as traffic:
            await self.sign_in()
            await self.looks(WIDE, "light")
            await self.keyboard()
            await self.overview()
            await self.messages(traffic)
            await self.devices(traffic)
            await self.targets(traffic)
            await self.projects()
            await self.faults()
            await self.nodes()
            assert traffic.fault is None, traffic.fault
        phone = await on_thread(lambda: server.register(app="org.example.phone", platform="android"))
        stream = await on_thread(server.device, phone)
        await self.compose((phone, stream))
        await self.phones()
        equal(self.page.errors, [], "errors in the console")
        # With the system's dark colours and out again.
        await self.press("Sign out")
        await self.page.until("document.querySelector('#login')?.hidden", False)
        equal(await self.page.value("sessionStorage.getItem('weir-admin-key')"), None)
        equal(self.page.errors, [], "errors in the console")


async def main():
    server = wire.Server()
    # Chromium keeps writing to its folder for a moment after it was told to end.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = launch(folder)
        try:
            async with connect(await on_thread(devtools, browser), max_size=None, ping_interval=None) as tools:
                page = Page(tools)
                listening = asyncio.ensure_future(page.listen())
                try:
                    await Console(page, server, os.path.abspath(sys.argv[1])).run()
                finally:
                    listening.cancel()
        finally:
            browser.terminate()
            browser.wait(20)
    print("ok", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
