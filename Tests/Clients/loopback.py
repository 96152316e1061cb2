"""Keeps a client inside this machine: its built-in names mean loopback, every other address is refused.

Import it before the client. The names and ports in the client stay as they are built in, so TLS checks them.
"""

import socket

NAMES = {
    "localhost", "fcm-xmpp.googleapis.com", "gcm-xmpp.googleapis.com", "gcm.googleapis.com", "fcm.googleapis.com",
    "gcm-http.googleapis.com", "android.googleapis.com", "iid.googleapis.com", "oauth2.googleapis.com",
    "accounts.google.com", "www.googleapis.com",
}
LOOPBACK = {"127.0.0.1", "::1"}
PORTS = {}
"""Ports that clients have built in, and those that the server under test listens on in their place."""

_getaddrinfo = socket.getaddrinfo
_connect = socket.socket.connect
_sendto = socket.socket.sendto


def _resolve(host, *arguments, **options):
    name = host.decode() if isinstance(host, bytes) else host
    if name in NAMES:
        return _getaddrinfo("127.0.0.1", *arguments, **options)
    if name is None or name in LOOPBACK:
        return _getaddrinfo(host, *arguments, **options)
    raise socket.gaierror(socket.EAI_NONAME, f"the test refuses to look up {name}")


def _check(address):
    if isinstance(address, tuple) and address[0] not in LOOPBACK:
        raise OSError(f"the test refuses to connect to {address}")


def _moved(address):
    if isinstance(address, tuple) and address[1] in PORTS:
        return (address[0], PORTS[address[1]], *address[2:])
    return address


def _guarded_connect(self, address):
    _check(address)
    return _connect(self, _moved(address))


def _guarded_sendto(self, data, *arguments):
    _check(arguments[-1])
    return _sendto(self, data, *arguments)


socket.getaddrinfo = _resolve
socket.socket.connect = _guarded_connect
socket.socket.sendto = _guarded_sendto
