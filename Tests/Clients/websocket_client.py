"""XMPP over WebSocket (RFC 7395) on the `websockets` library: app servers and devices, and what must be refused.

Run with the Python of .venv-websockets.
"""

import asyncio
import json
import os
import socket
import ssl
import threading
import time
import xml.etree.ElementTree as ElementTree

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

import wire
from wire import CLIENT, DEADLINE, GCM, SASL, STREAM_ERRORS, STREAMS, auth, case, equal, escaped, on_request

FRAMING = "urn:ietf:params:xml:ns:xmpp-framing"
OPEN = f'<open xmlns="{FRAMING}" to="fcm-xmpp.googleapis.com" version="1.0"/>'
CLOSE = f'<close xmlns="{FRAMING}"/>'
BIND = '<iq xmlns="jabber:client" type="set" id="b"><bind xmlns="urn:ietf:params:xml:ns:xmpp-bind"/></iq>'


# The library's own blocking client reads and writes one TLS object from two threads, and loses requests by it.
LOOP = asyncio.new_event_loop()
threading.Thread(target=LOOP.run_forever, daemon=True).start()


def wait(work, seconds=None):
    """What a coroutine gives, in time."""

    async def run():
        return await asyncio.wait_for(work, seconds or DEADLINE)

    return asyncio.run_coroutine_threadsafe(run(), LOOP).result()


class Session:
    """One WebSocket. Each message it reads is one element that says its namespaces."""

    def __init__(self, server, admin=False, path="/xmpp", subprotocols=("xmpp",), **options):
        url = f"ws://localhost:{server.admin}{path}" if admin else f"wss://localhost:{server.https}{path}"
        context = None if admin else ssl.create_default_context(cafile=server.ca)
        async def opened():
            return await connect(
                url, ssl=context, subprotocols=list(subprotocols) or None, open_timeout=DEADLINE, max_size=1 << 24,
                ping_interval=None, **options)

        self.socket = wait(opened())
        self.server = server
        self.jid = None

    def send(self, message, **options):
        """One message; a list goes out as fragments."""
        wait(self.socket.send(message, **options))

    def receive(self):
        return wait(self.socket.recv())

    def raw(self, data):
        """Bytes behind the library's back."""
        LOOP.call_soon_threadsafe(self.socket.transport.write, data)

    def ping(self, data=b""):
        async def pinged():
            await (await self.socket.ping(data))

        wait(pinged(), 5)

    def cut(self):
        """Gone without a word."""
        LOOP.call_soon_threadsafe(self.socket.transport.abort)

    def close(self, code=1000):
        wait(self.socket.close(code))

    def element(self):
        """The next message, which must be one element."""
        text = self.receive()
        assert isinstance(text, str), "not a text message"
        assert text.startswith("<") and not text.startswith("<?"), text
        return ElementTree.fromstring(text)

    def expect(self, namespace, name):
        element = self.element()
        equal(element.tag, f"{{{namespace}}}{name}", ElementTree.tostring(element).decode())
        return element

    def start(self):
        """To the mechanisms."""
        self.send(OPEN)
        opened = self.expect(FRAMING, "open")
        equal(opened.get("version"), "1.0")
        assert opened.get("id") and opened.get("from"), opened.attrib
        features = self.expect(STREAMS, "features")
        mechanisms = [one.text for one in features.iter(f"{{{SASL}}}mechanism")]
        equal(mechanisms, ["PLAIN"])
        return self

    def login(self, user, password):
        self.start()
        self.send(auth(user, password))
        self.expect(SASL, "success")
        self.send(OPEN)
        self.expect(FRAMING, "open")
        assert self.expect(STREAMS, "features").find("{urn:ietf:params:xml:ns:xmpp-bind}bind") is not None
        self.send(BIND)
        bound = self.expect(CLIENT, "iq")
        self.jid = next(bound.iter("{urn:ietf:params:xml:ns:xmpp-bind}jid")).text
        return self

    def message(self, payload):
        self.send(message(payload))

    def payload(self):
        found = self.expect(CLIENT, "message").find(f"{{{GCM}}}gcm")
        return json.loads(found.text)

    def ack(self, payload):
        answer = {"message_type": "ack", "message_id": payload["message_id"]}
        if self.jid.startswith(self.server.sender + "@"):
            answer["to"] = payload["from"]
        self.message(answer)

    def ends(self, code):
        """Waits for the close; gives the messages before it."""
        before = []
        try:
            while True:
                before.append(self.receive())
        except ConnectionClosed as closed:
            assert closed.rcvd is not None, f"cut, after {before}"
            equal(closed.rcvd.code, code, f"{closed}, after {before}")
        return before

    def stream_error(self, condition):
        before = self.ends(1000)
        error = ElementTree.fromstring(before[-2])
        equal(error.tag, f"{{{STREAMS}}}error")
        equal(error[0].tag, f"{{{STREAM_ERRORS}}}{condition}")
        equal(ElementTree.fromstring(before[-1]).tag, f"{{{FRAMING}}}close")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def message(payload):
    text = payload if isinstance(payload, str) else json.dumps(payload)
    return f'<message xmlns="{CLIENT}"><gcm xmlns="{GCM}">{escaped(text)}</gcm></message>'


def app_server(server, **options):
    return Session(server, **options).login(server.sender + "@fcm.googleapis.com", server.server_key)


def device(server, registration, **options):
    return Session(server, **options).login(registration["device_id"], registration["device_secret"])


@case
def messages_go_both_ways(server):
    server = server.with_project_of_its_own()
    registration = server.register()
    with app_server(server) as sender, device(server, registration) as phone:
        equal(sender.socket.subprotocol, "xmpp")
        sender.message({"to": registration["token"], "message_id": "w-1", "data": {"a": "<&>\"'\u8a9e\U0001f30d"},
                        "delivery_receipt_requested": True})
        delivered = phone.payload()
        equal(delivered["data"], {"a": "<&>\"'\u8a9e\U0001f30d"})
        phone.ack(delivered)
        got = [sender.payload(), sender.payload()]
        equal(sorted(one["message_type"] for one in got), ["ack", "receipt"])
        sender.ack(next(one for one in got if one["message_type"] == "receipt"))
        phone.message({"to": server.sender + "@fcm.googleapis.com", "message_id": "u-1", "data": {"up": "1"}})
        upstream = sender.payload()
        equal((upstream["from"], upstream["data"]), (registration["token"], {"up": "1"}))
        sender.ack(upstream)
        equal(phone.payload(), {"message_type": "ack", "message_id": "u-1"})


@case
def streams_over_tcp_and_websocket_are_the_same_devices(server):
    server = server.with_project_of_its_own()
    registration = server.register()
    with server.app_server() as sender:
        sender.message({"to": registration["token"], "message_id": "tcp-1"})
        equal(sender.payload()["message_type"], "ack")
        with device(server, registration) as phone:
            waiting = phone.payload()
            phone.ack(waiting)
            with server.device(registration):
                phone.stream_error("conflict")


@case
def pages_of_this_machine_use_the_admin_listener(server):
    server = server.with_project_of_its_own()
    registration = server.register()
    with device(server, registration, admin=True, origin=f"http://localhost:{server.admin}") as phone:
        with app_server(server, admin=True) as sender:
            sender.message({"to": registration["token"], "message_id": "a-1"})
            phone.ack(phone.payload())
            equal(sender.payload()["message_type"], "ack")
    for origin in ["https://evil.example", "null"]:
        equal(refused(server, admin=True, origin=origin), 403)


def refused(server, **options):
    try:
        with Session(server, **options):
            raise AssertionError("was let in")
    except InvalidStatus as refusal:
        return refusal.response.status_code


@case
def origins_are_checked(server):
    equal(refused(server, origin="https://evil.example"), 403)
    for origin in [f"https://localhost:{server.https}", "null"]:
        with Session(server, origin=origin) as session:
            session.start()


@case
def only_the_subprotocol_xmpp_is_spoken(server):
    equal(refused(server, subprotocols=["mqtt"]), 400)
    equal(refused(server, subprotocols=[]), 400)
    with Session(server, subprotocols=["mqtt", "xmpp"]) as session:
        equal(session.socket.subprotocol, "xmpp")


@case
def compression_is_declined(server):
    with Session(server, compression="deflate") as session:
        equal(session.socket.protocol.extensions, [])
        session.start()


@case
def every_cut_of_a_character_is_one_message(server):
    server = server.with_project_of_its_own()
    registration = server.register()
    with app_server(server) as sender, device(server, registration) as phone:
        text = message({"to": "TOKEN", "message_id": "cut", "data": {"e": "\u00e9\u8a9e\U0001f30d"}})
        text = text.replace("\\u00e9\\u8a9e\\ud83c\\udf0d", "\u00e9\u8a9e\U0001f30d").replace("TOKEN", registration["token"])
        start = text.encode().index("\u00e9".encode())
        for place in range(start - 1, start + 11):
            data = text.replace('"cut"', f'"cut-{place}"').encode()
            place += len(data) - len(text.encode())
            sender.send([data[:place], data[place:]], text=True)
            delivered = phone.payload()
            equal(delivered["data"], {"e": "\u00e9\u8a9e\U0001f30d"})
            phone.ack(delivered)
            equal(sender.payload()["message_type"], "ack")


@case
def pings_are_answered(server):
    with Session(server) as session:
        session.ping(b"x" * 125)
        session.start()
        session.ping()


@case
def a_stream_is_closed_by_both_sides(server):
    with app_server(server) as session:
        session.send(CLOSE)
        equal(ElementTree.fromstring(session.ends(1000)[-1]).tag, f"{{{FRAMING}}}close")
    with Session(server) as session:
        session.send(CLOSE)
        session.ends(1000)
    with app_server(server) as session:
        session.close(1001)


@case
def a_wrong_key_is_refused_and_may_be_tried_again(server):
    with Session(server) as session:
        session.start()
        session.send(auth(server.sender, "no-key"))
        failure = session.expect(SASL, "failure")
        equal(failure[0].tag, f"{{{SASL}}}not-authorized")
        session.send(auth(server.sender, server.server_key))
        session.expect(SASL, "success")


@case
def what_is_no_xmpp_ends_the_stream(server):
    for first, condition in [
        ("<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>", "not-well-formed"),
        (auth("a", "b"), "invalid-namespace"),
        (f'<?xml version="1.0"?>{OPEN}', "bad-format"),
        (" " + OPEN, "bad-format"),
        ("", "bad-format"),
        ("<open", "not-well-formed"),
        (f"<open xmlns='{FRAMING}'><!-- --></open>", "restricted-xml"),
        (f"<open xmlns='{FRAMING}' to='x'/>", "unsupported-version"),
        (OPEN + OPEN, "not-well-formed"),
    ]:
        with Session(server) as session:
            session.send(first)
            session.stream_error(condition)
    for stanza, condition in [
        (message({"message_id": "1"}) * 2, "bad-format"),
        (message({"message_id": "1"})[:-3], "bad-format"),
        (message({"message_id": "1"}) + "</stream:stream>", None),
        ("<message", None),
        (OPEN, "bad-format"),
        ("</stream:stream>", "not-well-formed"),
        ("x", "bad-format"),
    ]:
        with app_server(server) as session:
            session.send(stanza)
            if condition:
                session.stream_error(condition)
            else:
                session.ends(1000)


@case
def frames_that_break_the_rules_are_told_so(server):
    with Session(server) as session:
        session.send(b"binary")
        session.ends(1003)
    with app_server(server) as session:
        session.send(message({"message_id": "1", "data": {"a": "x" * 70_000}}))
        session.ends(1009)
    with app_server(server) as session:
        session.send((["x" * 40_000, "y" * 40_000]))
        session.ends(1009)
    # RSV1 with nothing agreed; fragments without end; a frame without mask.
    for frames, code in [
        (b"\xc1\x81\0\0\0\0x", 1002),
        (b"\x01\x80\0\0\0\0" + b"\x00\x80\0\0\0\0" * 2_000, 1008),
        (b"\x81\x01x", 1002),
        (b"\x81\x82\0\0\0\0\xc3\x28", 1007),
    ]:
        with Session(server) as session:
            session.raw(frames)
            session.ends(code)


@case
def before_login_a_message_has_8_kib(server):
    with Session(server) as session:
        session.send(OPEN.replace("fcm-xmpp", "x" * 9_000))
        session.stream_error("policy-violation")


@case
def a_plain_request_is_told_to_upgrade(server):
    equal(server.request("GET", "/xmpp/none")[0], 404)
    connection = wire.http.client.HTTPConnection("127.0.0.1", server.admin, timeout=DEADLINE)
    connection.request("GET", "/xmpp")
    answer = connection.getresponse()
    equal((answer.status, answer.getheader("upgrade")), (426, "websocket"))
    connection.close()


@case
def a_lost_device_gets_its_messages_again(server):
    server = server.with_project_of_its_own()
    registration = server.register()
    with app_server(server) as sender:
        phone = device(server, registration)
        sender.message({"to": registration["token"], "message_id": "lost-1", "data": {"n": "1"}})
        first = phone.payload()
        phone.cut()
        equal(sender.payload()["message_type"], "ack")
        with device(server, registration) as phone:
            again = phone.payload()
            equal(again["message_id"], first["message_id"])
            phone.ack(again)


@case
def many_connect_and_leave(server):
    sessions = [Session(server).start() for _ in range(100)]
    for session in sessions:
        session.cut()
    with app_server(server) as session:
        session.message({"to": "no-token", "message_id": "after"})
        equal(session.payload()["error"], "BAD_REGISTRATION")


@case
@on_request
def a_peer_that_never_reads_is_cut_off(server):
    """With a write backlog of 64 KiB."""
    with socket.create_connection(("127.0.0.1", server.admin)) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        shake(raw, [OPEN, auth(server.sender, server.server_key), OPEN, BIND])
        # Comes back as a stanza error four times as large.
        stanza = frame(message(">" * 15_000).encode())
        until = time.monotonic() + DEADLINE
        raw.settimeout(1)
        sent = 0
        try:
            while time.monotonic() < until:
                raw.sendall(stanza)
                sent += 1
            raise AssertionError("the server goes on taking stanzas")
        except OSError:
            # Not for the first: it was logged in, and heard for a while.
            assert sent > 3, "ended at once"
    with app_server(server) as session:
        session.ping()


def shake(raw, texts):
    """A handshake by hand, and messages without waiting for answers."""
    raw.sendall(
        b"GET /xmpp HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Protocol: xmpp\r\n\r\n")
    for text in texts:
        raw.sendall(frame(text.encode()))


def frame(data):
    """A text message in one frame, with a mask that changes nothing."""
    length = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2, "big")
    return b"\x81" + length + b"\0\0\0\0" + data


@case
@on_request
def silence_is_answered_with_pings_and_an_end(server):
    """With keepalives after 1 second and death after 3."""
    registration = server.register()
    with device(server, registration) as phone:
        # The library answers pings by itself.
        time.sleep(4.5)
        phone.ping()
    with socket.create_connection(("127.0.0.1", server.admin)) as raw:
        shake(raw, [OPEN, auth(registration["device_id"], registration["device_secret"]), OPEN, BIND])
        raw.settimeout(DEADLINE)
        heard = b""
        while chunk := raw.recv(65536):
            heard += chunk
        assert b"\x89\x00" in heard, f"no ping: {heard!r}"
        assert b"connection-timeout" in heard and heard.endswith(b"\x88\x02\x03\xe8"), heard[-300:]


@case
@on_request
def a_drain_ends_with_1001(server):
    """The test stops the server when it reads the line."""
    with app_server(server) as sender, device(server, server.register()) as phone:
        print("drain now", flush=True)
        found = sender.expect(CLIENT, "message").find(f"{{{GCM}}}gcm")
        equal(json.loads(found.text)["control_type"], "CONNECTION_DRAINING")
        for session in [sender, phone]:
            closing = ElementTree.fromstring(session.ends(1001)[-1])
            equal(closing.tag, f"{{{FRAMING}}}close")
            equal(closing.get("see-other-uri"), os.environ.get("SEE_OTHER_URI"))


def run(function, server):
    function(server)


if __name__ == "__main__":
    wire.main(run)
