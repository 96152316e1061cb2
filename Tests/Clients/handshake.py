"""The opening of a stream, step by step; where the protocol fixes an answer it is compared byte for byte."""

import re

from wire import CLIENT, HEADER, HOST, SASL, STREAMS, Stream, auth, case, main, plain

FEATURES_BEFORE = (
    f'<stream:features><mechanisms xmlns="{SASL}"><mechanism>PLAIN</mechanism></mechanisms></stream:features>'
)
FEATURES_AFTER = (
    '<stream:features><bind xmlns="urn:ietf:params:xml:ns:xmpp-bind"/>'
    '<session xmlns="urn:ietf:params:xml:ns:xmpp-session"><optional/></session></stream:features>'
)
SUCCESS = f'<success xmlns="{SASL}"/>'


def header_of(host):
    return (
        rf'<stream:stream from="{re.escape(host)}" id="([0-9A-F]{{16}})" version="1\.0" '
        rf'xmlns:stream="{STREAMS}" xmlns="{CLIENT}">'
    )


def failure(condition):
    return f'<failure xmlns="{SASL}"><{condition}/></failure>'


def authenticated(stream, server, text=None):
    """Up to the features after login."""
    stream.send(HEADER)
    first = stream.expect(header_of(HOST))[0]
    stream.exactly(FEATURES_BEFORE)
    stream.send(text or auth(server.sender + "@fcm.googleapis.com", server.server_key))
    stream.exactly(SUCCESS)
    stream.send(HEADER)
    second = stream.expect(header_of(HOST))[0]
    stream.exactly(FEATURES_AFTER)
    assert first != second, "both streams have one id"
    return stream


def bound(stream, iq, answer):
    """Sends a bind request; gives the resource."""
    stream.send(iq)
    return stream.expect(answer)[0]


def usable(stream, server):
    """Messages are answered."""
    stream.jid = ""
    stream.parse()
    stream.message({"to": "no-token", "message_id": "usable"})
    answer = stream.payload()
    assert (answer["message_type"], answer["error"]) == ("nack", "BAD_REGISTRATION"), answer


BIND = "urn:ietf:params:xml:ns:xmpp-bind"
SESSION = "urn:ietf:params:xml:ns:xmpp-session"


@case
def documented_exchange(server):
    with Stream(server) as stream:
        authenticated(stream, server)
        resource = bound(
            stream,
            f'<iq type="set" id="b1"><bind xmlns="{BIND}"><resource>worker</resource></bind></iq>',
            rf'<iq type="result" id="b1"><bind xmlns="{BIND}"><jid>{server.sender}@gcm\.googleapis\.com/(worker[0-9A-F]{{8}})'
            r"</jid></bind></iq> ",
        )
        assert resource
        stream.send(f'<iq type="set" id="s1"><session xmlns="{SESSION}"/></iq>')
        stream.exactly(f'<iq type="result" id="s1" from="{HOST}"/>')
        stream.send('<iq type="get" id="p1"><ping xmlns="urn:xmpp:ping"/></iq>')
        stream.exactly('<iq type="result" id="p1"/>')
        stream.send('<iq type="get" id="r1"><query xmlns="jabber:iq:roster"/></iq>')
        stream.exactly(
            '<iq type="error" id="r1"><error type="cancel">'
            '<service-unavailable xmlns="urn:ietf:params:xml:ns:xmpp-stanzas"/></error></iq>'
        )
        usable(stream, server)
        stream.send("</stream:stream>")
        stream.closes()


@case
def all_sent_at_once(server):
    """A client that does not wait for answers: everything in one write."""
    with Stream(server) as stream:
        stream.send(
            HEADER
            + auth(server.sender, server.server_key)
            + HEADER
            + f'<iq type="set" id="b1"><bind xmlns="{BIND}"/></iq>'
        )
        stream.expect(header_of(HOST))
        stream.exactly(FEATURES_BEFORE)
        stream.exactly(SUCCESS)
        stream.expect(header_of(HOST))
        stream.exactly(FEATURES_AFTER)
        stream.expect(r'<iq type="result" id="b1"><bind [^>]*><jid>[^<]+</jid></bind></iq> ')
        usable(stream, server)


@case
def one_byte_a_write(server):
    with Stream(server) as stream:
        text = '<?xml version="1.0"?>\n' + HEADER
        for character in text:
            stream.send(character)
        stream.expect(header_of(HOST))
        stream.exactly(FEATURES_BEFORE)
        for character in auth(server.sender, server.server_key):
            stream.send(character)
        stream.exactly(SUCCESS)


@case
def bind_without_id(server):
    with Stream(server) as stream:
        authenticated(stream, server)
        bound(
            stream,
            f'<iq type="set"><bind xmlns="{BIND}"><resource>r</resource></bind></iq>',
            rf'<iq type="result"><bind xmlns="{BIND}"><jid>{server.sender}@gcm\.googleapis\.com/(r[0-9A-F]{{8}})</jid></bind></iq> ',
        )
        usable(stream, server)


@case
def bind_with_to(server):
    with Stream(server) as stream:
        authenticated(stream, server)
        bound(
            stream,
            f'<iq type="set" id="b1" to="gcm.googleapis.com"><bind xmlns="{BIND}"><resource>r</resource></bind></iq>',
            rf'<iq type="result" id="b1" from="gcm\.googleapis\.com"><bind xmlns="{BIND}">'
            rf"<jid>{server.sender}@gcm\.googleapis\.com/(r[0-9A-F]{{8}})</jid></bind></iq> ",
        )
        usable(stream, server)


@case
def bind_without_resource(server):
    with Stream(server) as stream:
        authenticated(stream, server)
        bound(
            stream,
            f'<iq type="set" id="b1"><bind xmlns="{BIND}"/></iq>',
            rf'<iq type="result" id="b1"><bind xmlns="{BIND}"><jid>{server.sender}@gcm\.googleapis\.com/([^<]+)</jid></bind></iq> ',
        )
        usable(stream, server)


@case
def streams_of_one_name_differ(server):
    with Stream(server) as one, Stream(server) as two:
        one.login(server.sender, server.server_key, "worker")
        two.login(server.sender, server.server_key, "worker")
        assert one.jid != two.jid, one.jid


@case
def every_identity_form(server):
    sender = server.sender
    forms = [
        ("", f"{sender}@fcm.googleapis.com"),
        ("", f"{sender}@gcm.googleapis.com"),
        ("", sender),
        (f"{sender}@gcm.googleapis.com", sender),
        (f"{sender}@projects.gcm.android.com", f"{sender}@projects.gcm.android.com"),
    ]
    for authzid, authcid in forms:
        with Stream(server) as stream:
            authenticated(stream, server, auth(authcid, server.server_key, authzid))
            resource = bound(
                stream,
                f'<iq type="set" id="b1"><bind xmlns="{BIND}"/></iq>',
                rf'<iq type="result" id="b1"><bind [^>]*><jid>{sender}@gcm\.googleapis\.com/([^<]+)</jid></bind></iq> ',
            )
            assert resource, (authzid, authcid)


@case
def every_host_name(server):
    names = [
        "gcm.googleapis.com", "gcm-xmpp.googleapis.com", "fcm-xmpp.googleapis.com", "fcm.googleapis.com", "localhost",
    ]
    for name in names:
        with Stream(server, sni=name) as stream:
            stream.send(HEADER.replace(HOST, name))
            stream.expect(header_of(name))
            stream.exactly(FEATURES_BEFORE)
    # No server name in the handshake, and one in the header that the certificate lacks.
    with Stream(server, sni=None) as stream:
        stream.send(HEADER.replace(HOST, "gcm-preprod.googleapis.com"))
        stream.expect(header_of("gcm-preprod.googleapis.com"))
        stream.exactly(FEATURES_BEFORE)


@case
def other_quotes_order_and_prefix(server):
    with Stream(server) as stream:
        stream.send(
            f"<?xml version='1.0' encoding='UTF-8'?><s:stream xmlns:s='{STREAMS}' xmlns='{CLIENT}' version='1.0'\n to='{HOST}' >"
        )
        stream.expect(header_of(HOST))
        stream.exactly(FEATURES_BEFORE)
        stream.send(f"<auth xmlns='{SASL}' mechanism='PLAIN'>{plain(server.sender, server.server_key)}</auth>")
        stream.exactly(SUCCESS)


@case
def empty_auth_is_challenged(server):
    with Stream(server) as stream:
        stream.open()
        stream.send(f'<auth mechanism="PLAIN" xmlns="{SASL}"/>')
        stream.exactly(f'<challenge xmlns="{SASL}"/>')
        stream.send(f'<response xmlns="{SASL}">{plain(server.sender, server.server_key)}</response>')
        stream.exactly(SUCCESS)


@case
def wrong_key_three_times(server):
    with Stream(server) as stream:
        stream.open()
        for _ in range(3):
            stream.send(auth(server.sender, "AAAA-no-key"))
            stream.exactly(failure("not-authorized"))
        stream.stream_error("policy-violation")


@case
def right_key_after_a_wrong_one(server):
    with Stream(server) as stream:
        stream.open()
        stream.send(auth(server.sender, "AAAA-no-key"))
        stream.exactly(failure("not-authorized"))
        stream.send(auth(server.sender, server.server_key))
        stream.exactly(SUCCESS)


@case
def unknown_sender(server):
    with Stream(server) as stream:
        stream.open()
        stream.send(auth("999999999999", server.server_key))
        stream.exactly(failure("not-authorized"))


@case
def unknown_device(server):
    with Stream(server) as stream:
        stream.open()
        stream.send(auth("nobodynobodynobody1234", "secret"))
        stream.exactly(failure("not-authorized"))


@case
def differing_authzid(server):
    with Stream(server) as stream:
        stream.open()
        stream.send(auth(server.sender, server.server_key, "200000000002@gcm.googleapis.com"))
        stream.exactly(failure("invalid-authzid"))


@case
def bad_base64(server):
    good = plain(server.sender, server.server_key)
    for bad in ["no base 64!", good[:20] + "\n" + good[20:], good[:-1], " " + good, good[:8] + "=" + good[9:]]:
        with Stream(server) as stream:
            stream.open()
            stream.send(f'<auth mechanism="PLAIN" xmlns="{SASL}">{bad}</auth>')
            stream.exactly(failure("incorrect-encoding"))
            # The stream goes on.
            stream.send(auth(server.sender, server.server_key))
            stream.exactly(SUCCESS)


@case
def malformed_credentials(server):
    for bad in ["=", "AAAA", "YWJj", "YQBi", f"<b>{plain('a', 'b')}</b>"]:
        with Stream(server) as stream:
            stream.open()
            stream.send(f'<auth mechanism="PLAIN" xmlns="{SASL}">{bad}</auth>')
            stream.exactly(failure("malformed-request"))


@case
def unknown_mechanism(server):
    with Stream(server) as stream:
        stream.open()
        for mechanism in ["X-OAUTH2", "SCRAM-SHA-1"]:
            stream.send(f'<auth mechanism="{mechanism}" xmlns="{SASL}">AAAA</auth>')
            stream.exactly(failure("invalid-mechanism"))
        stream.send(auth(server.sender, server.server_key))
        stream.exactly(SUCCESS)


@case
def abort(server):
    with Stream(server) as stream:
        stream.open()
        stream.send(f'<auth mechanism="PLAIN" xmlns="{SASL}"/>')
        stream.exactly(f'<challenge xmlns="{SASL}"/>')
        stream.send(f'<abort xmlns="{SASL}"/>')
        stream.exactly(failure("aborted"))
        stream.send(auth(server.sender, server.server_key))
        stream.exactly(SUCCESS)


@case
def closed_before_login(server):
    with Stream(server) as stream:
        stream.open()
        stream.send("</stream:stream>")
        stream.exactly("</stream:stream>")
        stream.ends()


@case
def closed_by_the_client_after_bind(server):
    with Stream(server) as stream:
        stream.login(server.sender, server.server_key)
        stream.send("</stream:stream>")
        stream.closes()


@case
def self_closed_header(server):
    with Stream(server) as stream:
        stream.send(HEADER[:-1] + "/>")
        stream.expect(header_of(HOST))
        stream.exactly("</stream:stream>")
        stream.ends()


if __name__ == "__main__":
    main(lambda function, server: function(server.with_project_of_its_own()))
