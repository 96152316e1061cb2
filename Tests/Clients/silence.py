"""Peers that say nothing, or stop reading: the server gives them up in its time, not before."""

import ssl
import time

from wire import CLIENT, DEADLINE, Ended, Stream, case, equal, fill, gone, main, on_request


@on_request
@case
def before_login(server):
    """Needs a login deadline of a second. P17 (d): also for a peer that does not shake hands, or drips."""
    plain = Stream(server, tls=False)
    header_only = Stream(server).open()
    silent = Stream(server)
    dripping = Stream(server)
    silent.expect(r"<stream:stream [^>]*>")
    silent.stream_error("connection-timeout")
    header_only.stream_error("connection-timeout")
    until = time.monotonic() + DEADLINE
    while True:
        assert time.monotonic() < until, "a space now and then keeps the connection open"
        try:
            dripping.send(" ")
            dripping.receive(time.monotonic() + 0.1)
        except TimeoutError:
            continue
        except (Ended, ssl.SSLError, OSError):
            break
    try:
        found = plain.receive(time.monotonic() + DEADLINE)
        raise AssertionError(f"sent to a peer that did not shake hands: {found!r}")
    except Ended:
        pass
    # Within the deadline all is well.
    with server.app_server():
        pass
    for stream in [plain, header_only, silent, dripping]:
        stream.close()


@on_request
@case
def after_login(server):
    """Needs a server that gives peers up after 2 seconds. P15."""
    with server.app_server() as silent, server.app_server() as answering:
        # A silent peer is asked once and then told why it is left.
        ping = silent.stanza()
        equal((ping.tag, ping.get("type"), ping[0].tag), (f"{{{CLIENT}}}iq", "get", "{urn:xmpp:ping}ping"))
        answered = 0
        until = time.monotonic() + 5
        while time.monotonic() < until:
            try:
                ping = answering.stanza(until - time.monotonic())
            except TimeoutError:
                break
            equal((ping.tag, ping.get("type")), (f"{{{CLIENT}}}iq", "get"))
            answering.send(f'<iq type="result" id="{ping.get("id")}" to="{ping.get("from")}"/>')
            answered += 1
        assert answered >= 2, answered
        silent.stream_error("connection-timeout")
        answering.message({"to": "no-token", "message_id": "still-here"})
        equal(answering.payload()["error"], "BAD_REGISTRATION")


@on_request
@case
def spaces_are_a_sign_of_life(server):
    """Needs a server that gives peers up after 2 seconds."""
    with server.app_server() as stream:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            stream.send(" ")
            try:
                raise AssertionError(stream.stanza(0.3))
            except TimeoutError:
                pass


@on_request
@case
def peer_that_stopped_reading(server):
    """Needs a server that gives peers up after 2 seconds."""
    with Stream(server, receive_buffer=4_096) as hung:
        hung.login(server.sender, server.server_key)
        fill(hung)
        # Sending goes on failing until the connection is gone; nothing is read, so nothing is acked.
        until = time.monotonic() + DEADLINE
        while True:
            assert time.monotonic() < until, "the peer is still there"
            try:
                hung.socket.settimeout(0.2)
                hung.socket.sendall(b" ")
            except TimeoutError:
                continue
            except OSError:
                break
        gone(hung)


if __name__ == "__main__":
    main(lambda function, server: function(server.with_project_of_its_own()))
