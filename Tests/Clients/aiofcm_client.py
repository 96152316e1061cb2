"""aiofcm, unmodified, against the server: its host name stays built in, only the port is set.

Run with the Python of .venv-aiofcm and SSL_CERT_FILE naming the development authority.
"""

import loopback  # noqa: F401 first, so that nothing is looked up

import asyncio
import functools
import logging
import os
import uuid

import wire
from wire import case, equal

os.environ["SSL_CERT_FILE"] = wire.Server().ca

import aiofcm  # noqa: E402
from aiofcm.connection import FCMXMPPConnection  # noqa: E402

logging.disable(logging.CRITICAL)


def asynchronous(function):
    @functools.wraps(function)
    def run(server):
        FCMXMPPConnection.FCM_PORT = server.xmpp
        assert FCMXMPPConnection.FCM_HOST == "fcm-xmpp.googleapis.com"
        asyncio.run(asyncio.wait_for(function(server), 45))

    return run


class Client:
    """aiofcm with one connection, closed at the end."""

    def __init__(self, server, key=None, attempts=0):
        self.fcm = aiofcm.FCM(
            int(server.sender), key or server.server_key, max_connections=1, max_connection_attempts=attempts
        )

    async def send(self, token, **fields):
        return await asyncio.wait_for(self.fcm.send_message(aiofcm.Message(device_token=token, **fields)), 20)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.fcm.pool.close()


async def in_thread(function, *arguments):
    return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)


@case
@asynchronous
async def sends_to_a_connected_device(server):
    known = server.register()
    async with Client(server) as client:
        with server.device(known) as device:
            sending = asyncio.ensure_future(
                client.send(
                    known["token"], message_id="aio-1", data={"text": "5 < 7 & 9 > 8 \u00e9\u8a9e\U0001f30d"},
                    notification={"title": "T", "body": "B"}, priority="high", time_to_live=600, collapse_key="k",
                )
            )
            delivered = await in_thread(device.payload)
            equal(delivered["data"], {"text": "5 < 7 & 9 > 8 \u00e9\u8a9e\U0001f30d"})
            equal(delivered["notification"], {"title": "T", "body": "B"})
            equal((delivered["priority"], delivered["ttl"], delivered["collapse_key"]), ("high", 600, "k"))
            device.ack(delivered)
            answer = await sending
            equal((answer.status, answer.message_id, answer.is_successful), ("SUCCESS", "aio-1", True))


@case
@asynchronous
async def sends_to_a_device_that_is_away(server):
    known = server.register()
    async with Client(server) as client:
        answers = await asyncio.gather(*[client.send(known["token"], data={"n": str(n)}) for n in range(50)])
        equal({answer.status for answer in answers}, {"SUCCESS"})
    with server.device(known) as device:
        received = set()
        while len(received) < 50:
            delivered = await in_thread(device.payload)
            received.add(delivered["data"]["n"])
            device.ack(delivered)


@case
@asynchronous
async def gets_the_codes_of_refused_messages(server):
    known = server.register()
    gone = server.register()
    server.unregister(gone)
    other = server.with_project_of_its_own().register()
    async with Client(server) as client:
        for token, fields, status in [
            ("no-token", {}, "BAD_REGISTRATION"),
            (known["token"][:-5], {}, "BAD_REGISTRATION"),
            (gone["token"], {}, "DEVICE_UNREGISTERED"),
            (other["token"], {}, "SENDER_ID_MISMATCH"),
            (known["token"], {"data": {"b": "x" * 4_097}}, "INVALID_JSON"),
            (known["token"], {"data": {"from": "me"}}, "INVALID_JSON"),
            (known["token"], {"data": {"google.a": "b"}}, "INVALID_JSON"),
            (known["token"], {"time_to_live": -1}, "INVALID_JSON"),
            (known["token"], {"priority": "urgent"}, "INVALID_JSON"),
        ]:
            answer = await client.send(token, **fields)
            equal((answer.status, answer.is_successful), (status, False), f"{token} {fields}"[:200])
            assert answer.description is not None
        answer = await client.send(known["token"], data={"a": "b"})
        equal(answer.status, "SUCCESS")


@case
@asynchronous
async def a_wrong_key_is_refused(server):
    async with Client(server, key="AAAA-no-key") as client:
        try:
            answer = await client.send("no-token")
        except aiofcm.exceptions.ConnectionError:
            return
        raise AssertionError(f"sent with a wrong key: {answer.status}")


class Proxy:
    """Passes bytes on to the server; can keep the server's bytes back and cut the connection."""

    def __init__(self, port):
        self.port = port
        self.holds = False
        self.connections = []

    async def start(self):
        self.listener = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        return self.listener.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        there, back = await asyncio.open_connection("127.0.0.1", self.port)
        self.connections.append((writer, back))
        await asyncio.gather(self.copy(reader, back, False), self.copy(there, writer, True))

    async def copy(self, reader, writer, is_answer):
        try:
            while data := await reader.read(65536):
                if not (is_answer and self.holds):
                    writer.write(data)
                    await writer.drain()
        except OSError:
            pass
        writer.close()

    def cut(self):
        self.holds = False
        for pair in self.connections:
            for writer in pair:
                writer.transport.abort()
        self.connections = []


@case
@asynchronous
async def resends_after_a_lost_connection_and_the_device_sees_it_once(server):
    known = server.register()
    proxy = Proxy(server.xmpp)
    FCMXMPPConnection.FCM_PORT = await proxy.start()
    async with Client(server, attempts=5) as client:
        with server.device(known) as device:
            first = asyncio.ensure_future(client.send(known["token"], data={"n": "first"}))
            delivered = await in_thread(device.payload)
            device.ack(delivered)
            equal((await first).status, "SUCCESS")
            # The server takes the message; its ack gets lost with the connection.
            proxy.holds = True
            name = f"aio-{uuid.uuid4()}"
            sending = asyncio.ensure_future(client.send(known["token"], message_id=name, data={"n": "second"}))
            delivered = await in_thread(device.payload)
            equal(delivered["data"], {"n": "second"})
            device.ack(delivered)
            proxy.cut()
            answer = await sending
            equal((answer.status, answer.message_id), ("SUCCESS", name))
            assert len(proxy.connections) == 1, "aiofcm did not connect again"
            # The next thing that the device gets is the next message, not the second one again.
            third = asyncio.ensure_future(client.send(known["token"], data={"n": "third"}))
            delivered = await in_thread(device.payload)
            equal(delivered["data"], {"n": "third"})
            device.ack(delivered)
            equal((await third).status, "SUCCESS")


if __name__ == "__main__":
    wire.main(lambda function, server: function(server.with_project_of_its_own()))
