"""GnuTLS against the server's TLS: each suite of TLS 1.3, keys changed by both ends while messages go on, TLS 1.2.

OpenSSL's client, which Python's ssl is, and Chromium's are used everywhere else; GnuTLS makes its records by itself.
Needs gnutls-cli.
"""

import os
import select
import subprocess
import tempfile
import time

from wire import DEADLINE, HOST, Ended, Stream, case, main

SUITES = {
    "AES-128-GCM": "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM",
    "AES-256-GCM": "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-256-GCM",
    "CHACHA20-POLY1305": "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+CHACHA20-POLY1305",
}


class GnuTLSStream(Stream):
    """A stream through gnutls-cli, which checks the server's certificate."""

    def __init__(self, server, priority):
        self.begin(server)
        self.log = tempfile.NamedTemporaryFile("r", suffix=".log")
        self.told = ""
        self.process = subprocess.Popen(
            [
                "gnutls-cli", "--port", str(server.xmpp), "--x509cafile", server.ca, "--sni-hostname", HOST,
                "--verify-hostname", HOST, "--priority", priority, "--inline-commands", "--logfile", self.log.name,
                "127.0.0.1",
            ],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )

    def send(self, text):
        """Sends text; GnuTLS takes whole lines, and blanks between stanzas mean nothing."""
        self.process.stdin.write((text.encode() if isinstance(text, str) else text) + b"\n")
        self.process.stdin.flush()

    def change_keys(self):
        """New keys for what is sent; the server is asked to change its own (RFC 8446 §4.6.3)."""
        self.process.stdin.write(b"^rekey^\n")
        self.process.stdin.flush()

    def receive(self, until):
        out = self.process.stdout.fileno()
        left = until - time.monotonic()
        if left <= 0 or not select.select([out], [], [], left)[0]:
            raise TimeoutError(f"nothing more came, only {self.buffer[-500:]!r}")
        data = os.read(out, 65536)
        if not data:
            raise Ended(True, self.buffer)
        return data

    def close(self):
        """Ends the connection; `told` is what gnutls-cli says of it then."""
        self.process.stdin.close()
        try:
            self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        with self.log as log:
            self.told = log.read()


def usable(stream, count, size=100):
    """Messages to nobody are answered, each with its id."""
    for number in range(count):
        stream.message({"to": "no-token", "message_id": f"m{number}", "data": {"x": "y" * size}})
    for number in range(count):
        answer = stream.payload()
        assert (answer["message_id"], answer["error"]) == (f"m{number}", "BAD_REGISTRATION"), answer


def login(server, priority):
    return GnuTLSStream(server, priority).login(server.sender + "@fcm.googleapis.com", server.server_key)


def suite(name):
    def run(server):
        with login(server, SUITES[name]) as stream:
            usable(stream, 20, size=3_000)
        assert name in stream.told and "TLS1.3" in stream.told, stream.told

    run.__name__ = "suite_" + name.lower().replace("-", "_")
    return case(run)


for each in SUITES:
    suite(each)


@case
def keys_change_while_messages_go_on(server):
    for priority in SUITES.values():
        with login(server, priority) as stream:
            # GnuTLS itself takes no more than eight changes a second.
            for _ in range(7):
                stream.change_keys()
                usable(stream, 5)


@case
def keys_change_before_the_first_stanza(server):
    stream = GnuTLSStream(server, SUITES["AES-128-GCM"])
    stream.change_keys()
    stream.change_keys()
    with stream.login(server.sender + "@fcm.googleapis.com", server.server_key):
        usable(stream, 1)


@case
def tls_1_2_is_left_to_the_library(server):
    with login(server, "NORMAL:-VERS-ALL:+VERS-TLS1.2") as stream:
        usable(stream, 20, size=3_000)
    assert "TLS1.2" in stream.told, stream.told


if __name__ == "__main__":
    main(lambda run, server: run(server.with_project_of_its_own()))
