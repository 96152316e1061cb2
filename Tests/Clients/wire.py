"""A raw stream client for tests: Python's ssl, a plain socket and expat, nothing of Weir.

The server to be tested is named by the environment variable WEIR_READY, the JSON of its ready line. Every wait has
a deadline; a wait that runs out fails with what came instead.
"""

import base64
import copy
import http.client
import json
import os
import re
import socket
import ssl
import sys
import time
import traceback
import uuid
import xml.etree.ElementTree as ElementTree

DEADLINE = 15.0
"""Seconds that any one wait may take; the machine may be busy."""

CLIENT = "jabber:client"
STREAMS = "http://etherx.jabber.org/streams"
SASL = "urn:ietf:params:xml:ns:xmpp-sasl"
STREAM_ERRORS = "urn:ietf:params:xml:ns:xmpp-streams"
STANZA_ERRORS = "urn:ietf:params:xml:ns:xmpp-stanzas"
GCM = "google:mobile:data"

HOST = "fcm-xmpp.googleapis.com"
HEADER = (
    f'<stream:stream to="{HOST}" version="1.0" xmlns="{CLIENT}" xmlns:stream="{STREAMS}">'
)


class Server:
    """The server under test, from WEIR_READY."""

    def __init__(self):
        ready = json.loads(os.environ["WEIR_READY"])
        self.xmpp = ready["xmpp"]
        self.https = ready["https"]
        self.admin = ready["admin"]
        self.project = ready["project_id"]
        self.sender = ready["sender_id"]
        self.credentials = ready["credentials"]
        self.ca = os.path.join(self.credentials, "ca.pem")
        self.server_key = self.secret("server-key")
        self.api_key = self.secret("api-key")

    def secret(self, name):
        with open(os.path.join(self.credentials, name), encoding="utf-8") as file:
            return file.read().strip()

    def with_project_of_its_own(self):
        """The same server seen by a new project, whose upstream messages no other test can take."""
        own = copy.copy(self)
        own.project = f"test-{uuid.uuid4().hex[:12]}"
        own.sender = str(uuid.uuid4().int % 10**12 + 10**12)
        status, made = self.administer("POST", "/admin/v1/projects", {"id": own.project, "sender_id": own.sender})
        assert status == 201, made
        own.server_key = made["server_key"]
        own.api_key = made["api_key"]
        return own

    def administer(self, method, path, body=None):
        """One call of the admin surface; gives status and parsed JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.admin, timeout=DEADLINE)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Authorization": "Bearer " + self.secret("admin-key")})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        finally:
            connection.close()

    def request(self, method, path, body=None, headers=None):
        """One HTTPS request; gives status and parsed JSON."""
        context = ssl.create_default_context(cafile=self.ca)
        connection = http.client.HTTPSConnection("localhost", self.https, timeout=DEADLINE, context=context)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, headers or {})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        finally:
            connection.close()

    def make_service_account(self):
        """A new service account of the project, as a parsed file."""
        status, account = self.administer("POST", f"/admin/v1/projects/{self.project}/service-accounts")
        assert status == 201, account
        return account

    def register(self, app="org.example.app", **fields):
        """Registers a device, or another app on a known one."""
        status, device = self.request(
            "POST",
            f"/v1/projects/{self.project}/registrations",
            {"platform": "linux", "app": app, **fields},
            {"x-goog-api-key": self.api_key, "Content-Type": "application/json"},
        )
        assert status == 200, (status, device)
        return device

    def unregister(self, device):
        login = base64.b64encode(f"{device['device_id']}:{device['device_secret']}".encode()).decode()
        status, answer = self.request(
            "DELETE",
            f"/v1/projects/{self.project}/registrations/{device['token']}",
            None,
            {"Authorization": "Basic " + login},
        )
        assert status == 200, (status, answer)

    def app_server(self):
        """A bound stream of the project's app server."""
        return Stream(self).login(self.sender + "@fcm.googleapis.com", self.server_key)

    def device(self, device):
        """A bound stream of a registered device."""
        return Stream(self).login(device["device_id"], device["device_secret"])


class Ended(Exception):
    """The server has closed the connection. `clean`: with close_notify, or FIN on a plain socket."""

    def __init__(self, clean, rest):
        super().__init__(f"ended {'in order' if clean else 'by a cut'}, before it: {rest[-500:]!r}")
        self.clean = clean


class Stream:
    """One connection. Text is read by `expect`, stanzas by `stanza` once `login` or `parse` was called."""

    def __init__(self, server, tls=True, sni=HOST, receive_buffer=None):
        self.begin(server)
        plain = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if receive_buffer:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        plain.settimeout(DEADLINE)
        plain.connect(("127.0.0.1", server.xmpp))
        if tls:
            context = ssl.create_default_context(cafile=server.ca)
            if sni is None:
                context.check_hostname = False
            self.socket = context.wrap_socket(plain, server_hostname=sni, suppress_ragged_eofs=False)
        else:
            self.socket = plain

    def begin(self, server):
        """Nothing has been read."""
        self.server = server
        self.jid = None
        self.buffer = b""
        self.parser = None
        self.depth = 0
        self.stanzas = []
        self.end_tag = False

    # Sending

    def send(self, text):
        """Sends text or bytes in one write."""
        self.socket.settimeout(DEADLINE)
        self.socket.sendall(text.encode() if isinstance(text, str) else text)

    def message(self, payload, stanza_id=None):
        """Sends a `message` with this payload: an object, or text taken as it is and escaped."""
        self.send(message(payload, stanza_id))

    def ack(self, payload):
        """Acks a message: an app server names whom it came from."""
        answer = {"message_type": "ack", "message_id": payload["message_id"]}
        if "@" in self.jid and self.jid.split("@")[0] == self.server.sender:
            answer["to"] = payload["from"]
        self.message(answer)

    # Receiving

    def receive(self, until):
        """Waits for some bytes."""
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"nothing more came, only {self.buffer[-500:]!r} {self.stanzas!r}")
        self.socket.settimeout(left)
        try:
            data = self.socket.recv(65536)
        except ssl.SSLEOFError as cut:
            raise Ended(False, self.buffer) from cut
        except ConnectionResetError as cut:
            raise Ended(False, self.buffer) from cut
        except TimeoutError as late:
            raise TimeoutError(f"nothing more came, only {self.buffer[-500:]!r}") from late
        if not data:
            raise Ended(True, self.buffer)
        return data

    def expect(self, pattern, seconds=DEADLINE):
        """Reads text that a regular expression must match from the first unread byte on."""
        wanted = re.compile(pattern.encode(), re.DOTALL)
        until = time.monotonic() + seconds
        while True:
            match = wanted.match(self.buffer)
            if match:
                self.buffer = self.buffer[match.end():]
                return [part and part.decode() for part in match.groups()]
            try:
                self.buffer += self.receive(until)
            except (TimeoutError, Ended) as over:
                raise AssertionError(f"wanted {pattern!r}, got {self.buffer!r}: {over}") from over

    def exactly(self, text, seconds=DEADLINE):
        """Reads text that must be this, byte for byte."""
        self.expect(re.escape(text), seconds)

    def ends(self, seconds=DEADLINE):
        """Waits for the end of the connection; it must come in order and nothing before it."""
        try:
            extra = self.receive(time.monotonic() + seconds)
        except Ended as end:
            assert end.clean, "the connection was cut, not closed"
            assert not self.buffer, f"left over: {self.buffer!r}"
            return
        raise AssertionError(f"wanted the end, got {self.buffer + extra!r}")

    # Stanzas

    def parse(self):
        """From now on stanzas are read; what was sent before must have been an open stream."""
        self.parser = ElementTree.XMLPullParser(["start", "end"])
        self.parser.feed(f'<stream:stream xmlns="{CLIENT}" xmlns:stream="{STREAMS}">')
        self.feed(self.buffer)
        self.buffer = b""

    def feed(self, data):
        self.parser.feed(data)
        for event, element in self.parser.read_events():
            self.depth += 1 if event == "start" else -1
            if event == "end" and self.depth == 1:
                self.stanzas.append(element)
            elif event == "end" and self.depth == 0:
                self.end_tag = True

    def stanza(self, seconds=DEADLINE):
        """The next first-level element."""
        until = time.monotonic() + seconds
        while not self.stanzas:
            self.feed(self.receive(until))
        return self.stanzas.pop(0)

    def payload(self, seconds=DEADLINE):
        """The next payload: the parsed JSON of a message's `gcm`."""
        element = self.stanza(seconds)
        found = element.find(f"{{{GCM}}}gcm")
        assert found is not None, ElementTree.tostring(element)
        return json.loads(found.text)

    def stanza_error(self):
        """The next stanza, which must be a message of type error: its element, the error, its text."""
        element = self.stanza()
        assert element.tag == f"{{{CLIENT}}}message", ElementTree.tostring(element)
        assert element.get("type") == "error", ElementTree.tostring(element)
        assert element.get("to") == self.jid, ElementTree.tostring(element)
        error = element.find(f"{{{CLIENT}}}error")
        return element, error, error.find(f"{{{STANZA_ERRORS}}}text").text

    def stream_error(self, condition, seconds=DEADLINE):
        """The stream ends with this error, its end tag, and an orderly close."""
        if self.parser is None:
            self.expect(
                rf'<stream:error><{condition} xmlns="{STREAM_ERRORS}"/>(?:<text[^>]*>[^<]*</text>)?</stream:error>'
                r"</stream:stream>",
                seconds,
            )
            return self.ends(seconds)
        element = self.stanza(seconds)
        assert element.tag == f"{{{STREAMS}}}error", ElementTree.tostring(element)
        assert element[0].tag == f"{{{STREAM_ERRORS}}}{condition}", ElementTree.tostring(element)
        self.closes(seconds)

    def closes(self, seconds=DEADLINE):
        """The stream's end tag and an orderly close, nothing else."""
        until = time.monotonic() + seconds
        try:
            while True:
                self.feed(self.receive(until))
        except Ended as end:
            assert end.clean, "the connection was cut, not closed"
        assert self.end_tag, "no end tag"
        assert not self.stanzas, [ElementTree.tostring(one) for one in self.stanzas]

    # Login

    def open(self, header=HEADER):
        """Sends a header and reads the answer and the features before login."""
        self.send(header)
        self.expect(r'<stream:stream from="[^"]*" id="[0-9A-F]{16}" [^>]*>')
        self.exactly(
            f'<stream:features><mechanisms xmlns="{SASL}"><mechanism>PLAIN</mechanism></mechanisms></stream:features>'
        )
        return self

    def login(self, user, password, resource=None):
        """All the way to a bound stream."""
        self.open()
        self.send(auth(user, password))
        self.exactly(f'<success xmlns="{SASL}"/>')
        self.send(HEADER)
        self.expect(r"<stream:stream [^>]*>")
        self.expect(r"<stream:features>.*?</stream:features>")
        wish = f"<resource>{resource}</resource>" if resource else ""
        self.send(f'<iq type="set" id="b"><bind xmlns="urn:ietf:params:xml:ns:xmpp-bind">{wish}</bind></iq>')
        self.jid = self.expect(r'<iq type="result" id="b"><bind [^>]*><jid>([^<]+)</jid></bind></iq>')[0]
        self.parse()
        return self

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def auth(user, password, authzid=""):
    """The `auth` element of SASL PLAIN."""
    return f'<auth mechanism="PLAIN" xmlns="{SASL}">{plain(user, password, authzid)}</auth>'


def plain(user, password, authzid=""):
    return base64.b64encode(f"{authzid}\0{user}\0{password}".encode()).decode()


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def message(payload, stanza_id=None):
    """A `message` stanza as text."""
    text = payload if isinstance(payload, str) else json.dumps(payload)
    head = "<message>" if stanza_id is None else f'<message id="{stanza_id}">'
    return f'{head}<gcm xmlns="{GCM}">{escaped(text)}</gcm></message>'


def send_all(stream, data):
    """Sends while the server may already be closing; false when it cut in."""
    try:
        stream.send(data)
        return True
    except (ssl.SSLError, OSError):
        return False


def fill(stream):
    """Makes the server owe a peer that does not read so much that it takes no more from it, or cuts it off."""
    # Comes back as a stanza error four times as large.
    stanza = f'<message><gcm xmlns="{GCM}">{">" * 60_000}</gcm></message>'.encode()
    until = time.monotonic() + DEADLINE
    while True:
        assert time.monotonic() < until, "the server goes on taking stanzas"
        try:
            stream.socket.settimeout(0.5)
            stream.socket.sendall(stanza)
        except OSError:
            return


def gone(stream):
    """The connection is over, whatever may still be read before its end."""
    until = time.monotonic() + DEADLINE
    try:
        while True:
            stream.receive(until)
    except (Ended, ssl.SSLError, ConnectionError):
        return


def equal(found, wanted, what=""):
    assert found == wanted, f"{what}: wanted {wanted!r}, found {found!r}"


CASES = {}
ON_REQUEST = set()
"""Cases that need a server with settings of their own."""


def case(function):
    """Marks a function as a case that can be run by its name."""
    CASES[function.__name__] = function
    return function


def on_request(function):
    """Marks a case that is run only when it is named."""
    ON_REQUEST.add(function.__name__)
    return function


def main(run):
    """`SCRIPT --list` prints the cases; `SCRIPT CASE…`, or all but the marked ones, runs them.

    Prints `ok CASE SECONDS` or `FAIL CASE SECONDS` and the reason for each; exits 1 when one failed.
    """
    if sys.argv[1:] == ["--list"]:
        print("\n".join(CASES))
        return
    server = Server()
    failed = False
    for name in sys.argv[1:] or [name for name in CASES if name not in ON_REQUEST]:
        start = time.monotonic()
        try:
            run(CASES[name], server)
            verdict = "ok"
            reason = ""
        except Exception:
            verdict = "FAIL"
            reason = traceback.format_exc()
            failed = True
        print(f"{verdict} {name} {time.monotonic() - start:.2f}", flush=True)
        if reason:
            print(reason, flush=True)
    sys.exit(1 if failed else 0)
