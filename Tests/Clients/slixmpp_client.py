"""slixmpp, unmodified, as an app server: login, acks and nacks, upstream messages, receipts, pings.

Run with the Python of .venv-slixmpp.
"""

import loopback  # noqa: F401 first, so that nothing is looked up

import asyncio
import functools
import json
import logging
import pathlib
import uuid

from slixmpp import ClientXMPP, ElementBase, Message, register_stanza_plugin
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher import StanzaPath

import wire
from wire import DEADLINE, case, equal, on_request

logging.disable(logging.CRITICAL)


class GCM(ElementBase):
    """The payload of a stanza."""

    name = "gcm"
    namespace = "google:mobile:data"
    plugin_attrib = "gcm"
    interfaces = set()

    def payload(self):
        return json.loads(self.xml.text)


register_stanza_plugin(Message, GCM)


class AppServer(ClientXMPP):
    """Collects what the server sends."""

    def __init__(self, server, key=None):
        super().__init__(f"{server.sender}@gcm.googleapis.com", key or server.server_key)
        self.ca_certs = pathlib.Path(server.ca)
        self.enable_starttls = False
        self.enable_plaintext = False
        self.port = server.xmpp
        self.payloads = asyncio.Queue()
        self.types = []
        self.errors = asyncio.Queue()
        self.started = asyncio.Future()
        self.refused = asyncio.Future()
        self.register_plugin("xep_0199")
        self.add_event_handler("session_start", self.start)
        self.add_event_handler("failed_auth", lambda _: self.refused.done() or self.refused.set_result(True))
        self.register_handler(Callback("gcm", StanzaPath("message/gcm"), self.take))

    def start(self, _):
        # As libraries do, wanted or not.
        self.send_presence()
        if not self.started.done():
            self.started.set_result(self.boundjid.full)

    def take(self, message):
        if message.xml.get("type") == "error":
            self.errors.put_nowait(message)
        else:
            self.types.append(message.xml.get("type"))
            self.payloads.put_nowait(message["gcm"].payload())

    async def __aenter__(self):
        self.connect("127.0.0.1", self.port)
        await asyncio.wait_for(self.started, DEADLINE)
        return self

    async def __aexit__(self, *_):
        await asyncio.wait_for(asyncio.shield(self.disconnect(wait=1.0)), DEADLINE)

    def cut(self):
        """The connection goes away without a word."""
        self.abort()

    def send_payload(self, payload):
        stanza = self.Message()
        stanza["id"] = payload.get("message_id", "")
        stanza.enable("gcm")
        stanza["gcm"].xml.text = payload if isinstance(payload, str) else json.dumps(payload)
        stanza.send()

    def ack(self, payload):
        self.send_payload({"to": payload["from"], "message_id": payload["message_id"], "message_type": "ack"})

    async def payload(self):
        return await asyncio.wait_for(self.payloads.get(), DEADLINE)

    async def quiet(self):
        """Nothing is waiting: all that was sent before an answer has come when the answer comes."""
        name = f"quiet-{uuid.uuid4()}"
        self.send_payload({"to": "no-token", "message_id": name})
        answer = await self.payload()
        equal(answer["message_id"], name, "something else came first")


def asynchronous(function):
    @functools.wraps(function)
    def run(server):
        asyncio.run(asyncio.wait_for(function(server), 45))

    return run


async def in_thread(function, *arguments):
    return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)


@case
@asynchronous
async def logs_in_and_gets_acks_and_nacks(server):
    known = server.register()
    gone = server.register()
    server.unregister(gone)
    async with AppServer(server) as client:
        assert client.boundjid.full.startswith(f"{server.sender}@gcm.googleapis.com/"), client.boundjid
        with server.device(known) as device:
            client.send_payload({"to": known["token"], "message_id": "s-1", "data": {"a": "<&>\"'\u8a9e"}})
            delivered = await in_thread(device.payload)
            equal(delivered["data"], {"a": "<&>\"'\u8a9e"})
            device.ack(delivered)
            equal(await client.payload(), {"from": known["token"], "message_id": "s-1", "message_type": "ack"})
        for token, error in [("no-token", "BAD_REGISTRATION"), (gone["token"], "DEVICE_UNREGISTERED")]:
            client.send_payload({"to": token, "message_id": "s-2"})
            answer = await client.payload()
            equal((answer["message_type"], answer["error"], answer["from"]), ("nack", error, token))
        equal(set(client.types), {None}, "answers carry no type")


@case
@asynchronous
async def wrong_keys_are_refused(server):
    client = AppServer(server, key="AAAA-no-key")
    client.connect("127.0.0.1", client.port)
    await asyncio.wait_for(client.refused, DEADLINE)
    await asyncio.wait_for(asyncio.shield(client.disconnect(wait=1.0)), DEADLINE)


@case
@asynchronous
async def message_without_id_is_a_stanza_error(server):
    async with AppServer(server) as client:
        stanza = client.Message()
        stanza["id"] = "no-message-id"
        stanza.enable("gcm")
        stanza["gcm"].xml.text = '{"to":"no-token"}'
        stanza.send()
        error = await asyncio.wait_for(client.errors.get(), DEADLINE)
        equal((error["id"], error["error"]["condition"]), ("no-message-id", "bad-request"))
        equal(error["gcm"].xml.text, '{"to":"no-token"}')
        await client.quiet()


@case
@asynchronous
async def upstream_is_acked_once_and_for_all(server):
    known = server.register()
    with server.device(known) as device:
        async with AppServer(server) as client:
            device.message({"to": f"{server.sender}@fcm.googleapis.com", "message_id": "u-1", "data": {"up": "<1>"}})
            upstream = await client.payload()
            equal(upstream["data"], {"up": "<1>"})
            equal(
                (upstream["from"], upstream["category"], upstream["message_id"]),
                (known["token"], "org.example.app", "u-1"),
            )
            equal(client.types, ["normal"])
            client.ack(upstream)
            equal(await in_thread(device.payload), {"message_type": "ack", "message_id": "u-1"})
            await client.quiet()
        async with AppServer(server) as client:
            await client.quiet()


@case
@asynchronous
async def unacked_upstream_comes_again_on_a_new_stream(server):
    known = server.register()
    with server.device(known) as device:
        async with AppServer(server) as client:
            for name in ["u-1", "u-2"]:
                device.message({"to": f"{server.sender}@gcm.googleapis.com", "message_id": name, "data": {"a": "b"}})
                equal((await client.payload())["message_id"], name)
                # Durable, so its device hears of it before any app server acks.
                equal(await in_thread(device.payload), {"message_type": "ack", "message_id": name})
            client.ack({"from": known["token"], "message_id": "u-1"})
            await client.quiet()
            client.cut()
        async with AppServer(server) as client:
            again = await client.payload()
            equal((again["message_id"], again["from"]), ("u-2", known["token"]))
            client.ack(again)
            await client.quiet()
        async with AppServer(server) as client:
            await client.quiet()


@case
@asynchronous
async def upstream_waits_for_an_app_server(server):
    known = server.register()
    with server.device(known) as device:
        device.message({"to": f"{server.sender}@fcm.googleapis.com", "message_id": "u-1", "data": {"a": "b"}})
        equal(await in_thread(device.payload), {"message_type": "ack", "message_id": "u-1"})
        # With a time to live of 0 it does not wait.
        device.message(
            {"to": f"{server.sender}@fcm.googleapis.com", "message_id": "u-2", "time_to_live": 0, "data": {"a": "b"}}
        )
        answer = await in_thread(device.payload)
        equal((answer["message_type"], answer["error"]), ("nack", "TTL_EXCEEDED"))
        async with AppServer(server) as client:
            upstream = await client.payload()
            equal(upstream["message_id"], "u-1")
            client.ack(upstream)
            await client.quiet()


@case
@asynchronous
async def two_devices_may_use_one_id(server):
    """P11 (d)."""
    one, two = server.register(), server.register()
    async with AppServer(server) as client:
        with server.device(one) as first, server.device(two) as second:
            for device in [first, second]:
                device.message({"to": f"{server.sender}@fcm.googleapis.com", "message_id": "u-1", "data": {"a": "b"}})
            received = [await client.payload(), await client.payload()]
            equal({payload["from"] for payload in received}, {one["token"], two["token"]})
            for payload in received:
                client.ack(payload)
            await client.quiet()


@case
@asynchronous
async def receipts_come_until_they_are_acked(server):
    known = server.register()
    with server.device(known) as device:
        async with AppServer(server) as client:
            client.send_payload(
                {"to": known["token"], "message_id": "r-1", "delivery_receipt_requested": True, "data": {"a": "b"}}
            )
            delivered = await in_thread(device.payload)
            device.ack(delivered)
            received = [await client.payload(), await client.payload()]
            equal([one["message_type"] for one in received], ["ack", "receipt"])
            receipt = received[1]
            check_receipt(receipt, known)
            equal(client.types, [None, "normal"])
            client.cut()
        # Not acked, so it comes again.
        async with AppServer(server) as client:
            receipt = await client.payload()
            check_receipt(receipt, known)
            client.ack(receipt)
            await client.quiet()
        async with AppServer(server) as client:
            await client.quiet()


def check_receipt(receipt, known):
    equal(
        (receipt["message_type"], receipt["message_id"], receipt["from"], receipt["category"]),
        ("receipt", "dr2:r-1", "gcm.googleapis.com", "org.example.app"),
    )
    data = receipt["data"]
    equal(data["message_status"], "MESSAGE_SENT_TO_DEVICE")
    equal((data["original_message_id"], data["device_registration_id"]), ("r-1", known["token"]))
    assert isinstance(data["message_sent_timestamp"], str) and data["message_sent_timestamp"].isdigit(), data


@case
@asynchronous
async def pings_and_queries_are_answered(server):
    async with AppServer(server) as client:
        delay = await client.plugin["xep_0199"].ping(timeout=DEADLINE)
        assert delay >= 0
        try:
            await asyncio.wait_for(client.get_roster(timeout=DEADLINE), DEADLINE)
            raise AssertionError("there is no roster")
        except Exception as refusal:
            equal(type(refusal).__name__, "IqError")
        await client.quiet()


@on_request
@case
@asynchronous
async def comes_through_a_drain_under_load(server):
    """Sends without a break while its streams are drained: nothing is lost, nothing comes twice."""
    known = server.register()
    count, window = 600, 50
    left = [f"d-{number}" for number in reversed(range(count))]
    acked, shown, pending = [], [], set()

    def device():
        with server.device(known) as phone:
            while len(shown) < count:
                payload = phone.payload()
                shown.append(payload["data"]["n"])
                phone.ack(payload)

    receiving = asyncio.get_running_loop().run_in_executor(None, device)

    def fill(client):
        while left and len(pending) < window:
            name = left.pop()
            pending.add(name)
            client.send_payload({"to": known["token"], "message_id": name, "data": {"n": name}})

    async def drain():
        status, answer = await in_thread(server.administer, "POST", "/admin/v1/drain", {"sender_id": server.sender})
        equal(status, 202, answer)

    def settle(answer):
        pending.discard(answer["message_id"])
        if answer["message_type"] == "ack":
            acked.append(answer["message_id"])
        else:
            equal(answer["error"], "CONNECTION_DRAINING")
            left.append(answer["message_id"])

    asked = 0
    while len(acked) < count:
        async with AppServer(server) as client:
            fill(client)
            draining = False
            while len(acked) < count:
                if draining and not pending:
                    break
                answer = await client.payload()
                if answer["message_type"] == "control":
                    equal(answer["control_type"], "CONNECTION_DRAINING")
                    draining = True
                else:
                    settle(answer)
                    if not draining:
                        fill(client)
                if asked < 2 and len(acked) >= 200 * (asked + 1):
                    asked += 1
                    await drain()
    await asyncio.wait_for(receiving, DEADLINE)
    equal(asked, 2)
    equal((len(acked), len(set(acked))), (count, count))
    equal((len(shown), len(set(shown))), (count, count))


@on_request
@case
@asynchronous
async def answers_the_pings_of_the_server(server):
    """Needs a server that gives peers up after 2 seconds."""
    async with AppServer(server) as client:
        pings = asyncio.Queue()
        client.register_handler(Callback("pings", StanzaPath("iq@type=get/ping"), pings.put_nowait))
        for _ in range(3):
            await asyncio.wait_for(pings.get(), DEADLINE)
        await client.quiet()


if __name__ == "__main__":
    wire.main(lambda function, server: function(server.with_project_of_its_own()))
