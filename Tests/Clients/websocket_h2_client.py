"""XMPP over WebSocket over HTTP/2 (RFC 8441), on the `h2` and `wsproto` libraries.

Run with the Python of .venv-websockets.
"""

import os
import select
import socket
import ssl
import time

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings
from wsproto.connection import Connection as Frames, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage

import websocket_client
import wire
from websocket_client import CLOSE, FRAMING, OPEN, Session, device, message
from wire import DEADLINE, case, equal, on_request

# Those of the other script are not for here.
wire.CASES.clear()
wire.ON_REQUEST.clear()


# The library takes a GOAWAY for the end; the streams that are open go on (RFC 9113, section 6.8).
for state in [h2.connection.ConnectionState.CLIENT_OPEN]:
    h2.connection.H2ConnectionStateMachine._transitions[(state, h2.connection.ConnectionInputs.RECV_GOAWAY)] = (None, state)


class Refused(Exception):
    def __init__(self, status):
        super().__init__(f"refused with {status}")
        self.status = status


class Connection:
    """One TLS connection that speaks HTTP/2; read by whoever waits for something."""

    def __init__(self, server, settings=None):
        context = ssl.create_default_context(cafile=server.ca)
        context.set_alpn_protocols(["h2"])
        raw = socket.create_connection(("localhost", server.https), timeout=DEADLINE)
        self.socket = context.wrap_socket(raw, server_hostname="localhost")
        equal(self.socket.selected_alpn_protocol(), "h2")
        self.server = server
        self.machine = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        if settings:
            self.machine.update_settings(settings)
        self.machine.initiate_connection()
        self.streams = {}
        self.farewell = False
        self.flush()
        self.until(lambda: h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL in self.machine.remote_settings)

    def flush(self):
        self.socket.sendall(self.machine.data_to_send())

    def until(self, is_so):
        end = time.monotonic() + DEADLINE
        while not is_so():
            if not self.socket.pending():
                ready, _, _ = select.select([self.socket], [], [], max(0, end - time.monotonic()))
                assert ready, "nothing came in time"
            data = self.socket.recv(65536)
            assert data, "the connection was closed"
            for event in self.machine.receive_data(data):
                self.happened(event)
            self.flush()

    def happened(self, event):
        if isinstance(event, h2.events.ConnectionTerminated):
            self.farewell = True
        stream = self.streams.get(getattr(event, "stream_id", None))
        if stream:
            stream.happened(event)

    def request(self, fields):
        stream = Stream(self, self.machine.get_next_available_stream_id())
        self.machine.send_headers(
            stream.number, [(":scheme", "https"), (":authority", f"localhost:{self.server.https}")] + fields,
            end_stream=fields[0][1] == "GET")
        self.flush()
        self.until(lambda: stream.status is not None or stream.reset is not None)
        return stream

    def connect(self, path="/xmpp", protocol="websocket", subprotocol="xmpp", more=()):
        fields = [(":method", "CONNECT"), (":protocol", protocol), (":path", path), ("sec-websocket-version", "13")]
        if subprotocol:
            fields.append(("sec-websocket-protocol", subprotocol))
        return self.request(fields + list(more))

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Stream:
    """One stream of a connection, and the WebSocket through it."""

    def __init__(self, connection, number):
        self.connection = connection
        self.number = number
        self.status = None
        self.fields = {}
        self.body = b""
        self.is_ended = False
        self.reset = None
        self.reads = True
        self.unread = 0
        self.frames = Frames(ConnectionType.CLIENT)
        self.messages = []
        self.text = ""
        self.code = None
        connection.streams[number] = self

    def happened(self, event):
        if isinstance(event, h2.events.ResponseReceived):
            self.fields = dict(event.headers)
            self.status = int(self.fields[":status"])
        elif isinstance(event, h2.events.StreamEnded):
            self.is_ended = True
        elif isinstance(event, h2.events.StreamReset):
            self.reset = event.error_code
        elif isinstance(event, h2.events.DataReceived):
            if self.reads:
                self.connection.machine.acknowledge_received_data(event.flow_controlled_length, self.number)
            else:
                self.unread += event.flow_controlled_length
            if self.status == 200 and "content-length" not in self.fields:
                self.take(event.data)
            else:
                self.body += event.data

    def take(self, data):
        self.frames.receive_data(data)
        for event in self.frames.events():
            if isinstance(event, TextMessage):
                self.text += event.data
                if event.message_finished:
                    self.messages.append(self.text)
                    self.text = ""
            elif isinstance(event, CloseConnection):
                self.code = event.code
                if self.frames.state is ConnectionState.REMOTE_CLOSING:
                    self.write(self.frames.send(event.response()), is_last=True)
            elif isinstance(event, Ping):
                self.write(self.frames.send(event.response()))

    def write(self, data, is_last=False):
        machine = self.connection.machine
        while data:
            room = min(machine.local_flow_control_window(self.number), machine.max_outbound_frame_size)
            if room <= 0:
                self.connection.flush()
                self.connection.until(lambda: machine.local_flow_control_window(self.number) > 0)
                continue
            machine.send_data(self.number, data[:room])
            data = data[room:]
        if is_last:
            machine.end_stream(self.number)
        self.connection.flush()

    def read_on(self):
        self.reads = True
        self.connection.machine.acknowledge_received_data(self.unread, self.number)
        self.unread = 0
        self.connection.flush()


class Tunnel(Session):
    """A session of the other script, whose WebSocket goes through a stream."""

    def __init__(self, connection, **options):
        self.server = connection.server
        self.stream = connection.connect(**options)
        self.jid = None
        if self.stream.status != 200:
            raise Refused(self.stream.status)
        equal(self.stream.fields.get("sec-websocket-protocol"), "xmpp")

    def send(self, text, **_):
        parts = text if isinstance(text, list) else [text]
        for number, part in enumerate(parts):
            kind = TextMessage if isinstance(part, str) else BytesMessage
            self.stream.write(self.stream.frames.send(kind(part, message_finished=number == len(parts) - 1)))

    def receive(self):
        self.stream.connection.until(lambda: self.stream.messages or self.stream.code or self.stream.reset is not None)
        assert self.stream.messages, f"closed with {self.stream.code}, reset {self.stream.reset}"
        return self.stream.messages.pop(0)

    def ends(self, code):
        self.stream.connection.until(lambda: self.stream.is_ended or self.stream.reset is not None)
        equal((self.stream.code, self.stream.reset), (code, None))
        return self.stream.messages

    def cut(self):
        self.stream.connection.machine.reset_stream(self.stream.number, h2.errors.ErrorCodes.CANCEL)
        self.stream.connection.flush()

    def close(self, code=1000):
        if self.stream.is_ended or self.stream.reset is not None:
            return
        self.stream.write(self.stream.frames.send(CloseConnection(code)))
        self.stream.connection.until(lambda: self.stream.is_ended or self.stream.reset is not None)
        if self.stream.reset is None:
            self.stream.write(b"", is_last=True)


def app_server(connection):
    server = connection.server
    return Tunnel(connection).login(server.sender + "@fcm.googleapis.com", server.server_key)


def phone_of(connection, registration):
    return Tunnel(connection).login(registration["device_id"], registration["device_secret"])


@case
def messages_go_both_ways_through_one_connection(server):
    server = server.with_project_of_its_own()
    registration = server.register()
    with Connection(server) as connection, app_server(connection) as sender, phone_of(connection, registration) as phone:
        text = "<&>\"'\u8a9e\U0001f30d"
        sender.message({"to": registration["token"], "message_id": "h-1", "data": {"a": text},
                        "delivery_receipt_requested": True})
        delivered = phone.payload()
        equal(delivered["data"], {"a": text})
        phone.ack(delivered)
        got = [sender.payload(), sender.payload()]
        equal(sorted(one["message_type"] for one in got), ["ack", "receipt"])
        sender.ack(next(one for one in got if one["message_type"] == "receipt"))
        phone.message({"to": server.sender + "@fcm.googleapis.com", "message_id": "u-1", "data": {"up": "1"}})
        upstream = sender.payload()
        equal((upstream["from"], upstream["data"]), (registration["token"], {"up": "1"}))
        sender.ack(upstream)
        equal(phone.payload(), {"message_type": "ack", "message_id": "u-1"})
        # And requests beside them.
        answer = connection.request([(":method", "GET"), (":path", "/weir.js")])
        connection.until(lambda: answer.is_ended)
        equal(answer.status, 200)
        assert b"WeirDevice" in answer.body


@case
def many_devices_share_a_connection(server):
    """Their homes are on different loops than the connection."""
    server = server.with_project_of_its_own()
    registrations = [server.register() for _ in range(20)]
    with Connection(server) as connection:
        phones = [phone_of(connection, one) for one in registrations]
        with server.app_server() as sender:
            for turn in range(5):
                for number, one in enumerate(registrations):
                    sender.message({"to": one["token"], "message_id": f"m-{turn}-{number}", "data": {"n": f"{turn}"}})
                for phone in phones:
                    delivered = phone.payload()
                    equal(delivered["data"], {"n": f"{turn}"})
                    phone.ack(delivered)
                for _ in registrations:
                    equal(sender.payload()["message_type"], "ack")
        for phone in phones:
            phone.close()


@case
def what_is_no_websocket_of_ours_is_refused(server):
    with Connection(server) as connection:
        for options, status in [
            ({"more": [("origin", "https://evil.example")]}, 403),
            ({"subprotocol": "mqtt"}, 400),
            ({"subprotocol": None}, 400),
            ({"protocol": "connect-udp"}, 501),
            ({"path": "/fcm/send"}, 404),
            ({"path": "/echo"}, 404),
            ({"path": "/v1/projects/demo/registrations"}, 404),
        ]:
            equal(connection.connect(**options).status, status, f"{options}")
        equal(connection.request([(":method", "GET"), (":path", "/xmpp")]).status, 426)
        with Tunnel(connection, more=[("origin", f"https://localhost:{server.https}")]) as session:
            session.start()


@case
def fragments_and_large_messages_pass(server):
    server = server.with_project_of_its_own()
    registration = server.register()
    with Connection(server) as connection, app_server(connection) as sender, phone_of(connection, registration) as phone:
        text = message({"to": registration["token"], "message_id": "f-1", "data": {"e": "x" * 3_000}})
        sender.send([text[at:at + 7] for at in range(0, len(text), 7)])
        phone.ack(phone.payload())
        equal(sender.payload()["message_type"], "ack")
        # 60,000 bytes come back as a refusal and more; the window of 256 KiB is used several times over.
        for number in range(10):
            sender.message({"to": registration["token"], "message_id": f"l-{number}", "data": {"e": "x" * 60_000}})
            equal(sender.payload()["error"], "INVALID_JSON")


@case
def the_rules_of_websocket_hold(server):
    with Connection(server) as connection:
        for send, code in [
            (lambda session: session.send(b"binary"), 1003),
            (lambda session: session.send(["x" * 40_000, "y" * 40_000]), 1009),
            (lambda session: session.stream.write(b"\x81\x01x"), 1002),
            (lambda session: session.send(CLOSE), 1000),
        ]:
            session = Tunnel(connection)
            send(session)
            session.ends(code)


@case
def a_device_whose_stream_is_reset_gets_its_messages_again(server):
    server = server.with_project_of_its_own()
    registration = server.register()
    with server.app_server() as sender, Connection(server) as connection:
        phone = phone_of(connection, registration)
        sender.message({"to": registration["token"], "message_id": "lost-1", "data": {"n": "1"}})
        first = phone.payload()
        phone.cut()
        equal(sender.payload()["message_type"], "ack")
        with phone_of(connection, registration) as phone:
            again = phone.payload()
            equal(again["message_id"], first["message_id"])
            phone.ack(again)
            # The newest login wins, whatever it came over.
            with server.device(registration):
                phone.stream_error("conflict")


@case
def a_window_that_stays_shut_holds_back_one_device_alone(server):
    server = server.with_project_of_its_own()
    registrations = [server.register(), server.register()]
    count = 60
    with server.app_server() as sender, Connection(server) as connection:
        slow, quick = [phone_of(connection, one) for one in registrations]
        slow.stream.reads = False
        for number in range(count):
            # Three times the 64 KiB of its window.
            sender.message({"to": registrations[0]["token"], "message_id": f"s-{number}", "data": {"e": "x" * 3_000}})
            equal(sender.payload()["message_type"], "ack")
        # The connection's window is the client's own to open.
        connection.machine.increment_flow_control_window(1 << 20)
        connection.flush()
        sender.message({"to": registrations[1]["token"], "message_id": "q-1"})
        quick.ack(quick.payload())
        equal(sender.payload()["message_type"], "ack")
        assert len(slow.stream.messages) < count, "nothing was held back"
        slow.stream.read_on()
        for _ in range(count):
            slow.ack(slow.payload())
        for phone in [slow, quick]:
            phone.close()


@case
def a_connection_that_is_cut_ends_its_devices(server):
    server = server.with_project_of_its_own()
    registrations = [server.register() for _ in range(4)]
    connection = Connection(server)
    for one in registrations:
        phone_of(connection, one)
    connection.close()
    with server.app_server() as sender:
        for number, one in enumerate(registrations):
            sender.message({"to": one["token"], "message_id": f"c-{number}"})
            equal(sender.payload()["message_type"], "ack")
            with device(server, one) as phone:
                phone.ack(phone.payload())


@case
@on_request
def a_drain_ends_with_1001(server):
    """The test stops the server when it reads the line."""
    with Connection(server) as connection:
        sender, phone = app_server(connection), phone_of(connection, server.register())
        print("drain now", flush=True)
        found = sender.payload()
        equal(found["control_type"], "CONNECTION_DRAINING")
        for session in [sender, phone]:
            closing = websocket_client.ElementTree.fromstring(session.ends(1001)[-1])
            equal(closing.tag, f"{{{FRAMING}}}close")
            equal(closing.get("see-other-uri"), os.environ.get("SEE_OTHER_URI"))
        assert connection.farewell, "no GOAWAY"


if __name__ == "__main__":
    wire.main(lambda function, server: function(server))
