"""What hostile and broken peers send. Each case has the answer that the protocol or the documentation promises, and a
stream of another client, opened before, that must go on as if nothing had happened."""

import json
import socket
import uuid
import xml.etree.ElementTree as ElementTree

from wire import (
    CLIENT, DEADLINE, GCM, HEADER, SASL, STANZA_ERRORS, STREAM_ERRORS, STREAMS, Stream, auth, case, equal, escaped, fill, gone, main, message, on_request, send_all,
)

BAD_JSON = "InvalidJson: JSON_PARSING_ERROR : "
WRONG_TYPE = "InvalidJson: JSON_TYPE_ERROR : "


def fresh(prefix="m"):
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


def answered(stream, payload):
    """Sends a message and gives its answer."""
    stream.message(payload)
    answer = stream.payload()
    equal(answer["message_id"], payload["message_id"], "the answer's id")
    return answer


def refused(stream, payload, error):
    answer = answered(stream, payload)
    equal((answer["message_type"], answer.get("error")), ("nack", error), json.dumps(payload)[:200])
    assert answer["error_description"] or error == "DEVICE_UNREGISTERED", answer
    return answer


def alive(stream):
    """The stream still answers."""
    refused(stream, {"to": "no-token", "message_id": fresh()}, "BAD_REGISTRATION")


def fatal(server, text, condition):
    """This text ends its stream with that error."""
    with server.app_server() as stream:
        stream.send(text)
        stream.stream_error(condition)


def fatal_before_login(server, text, condition, header=HEADER):
    with Stream(server) as stream:
        stream.open(header)
        stream.send(text)
        stream.stream_error(condition)


def gcm(content):
    return f'<message id="m1"><gcm xmlns="{GCM}">{content}</gcm></message>'


# XML that is wrong or not allowed in a stream


@case
def malformed_xml(server):
    for text in [
        f'<message id="m1"><gcm xmlns="{GCM}">{{}}</message>',
        "<message<",
        "<message id='a><gcm/></message>",
        "<message><gcm></message></gcm>",
        "<message id='a' id='b'/>",
        "<message id=a/>",
        "<message>&nbsp;</message>",
        "<message>&</message>",
        "text between stanzas",
        "<x:message/>",
        "<message>]]></message>",
        "</stream:other>",
        "<presence/></message>",
    ]:
        with server.app_server() as stream:
            stream.send(text)
            try:
                stream.stream_error("not-well-formed")
            except AssertionError as wrong:
                raise AssertionError(f"after {text!r}: {wrong}") from wrong


@case
def malformed_header(server):
    for text, condition in [
        ("not XML at all", "not-well-formed"),
        ("<<", "not-well-formed"),
        (b"\xff\xfe<\0", "unsupported-encoding"),
        ('<?xml version="1.0" encoding="ISO-8859-1"?>' + HEADER, "unsupported-encoding"),
        (HEADER.replace(STREAMS, "urn:example:other"), "invalid-namespace"),
        (HEADER.replace(CLIENT, "jabber:server"), "invalid-namespace"),
        (HEADER.replace("<stream:stream", "<stream:other"), "bad-format"),
        (HEADER.replace(' version="1.0"', ""), "unsupported-version"),
        (HEADER.replace("1.0", "0.9"), "unsupported-version"),
    ]:
        with Stream(server) as stream:
            stream.send(text)
            stream.expect(r'<stream:stream from="[^"]*" id="[0-9A-F]{16}" [^>]*>')
            try:
                stream.stream_error(condition)
            except AssertionError as wrong:
                raise AssertionError(f"after {text!r}: {wrong}") from wrong


@case
def document_type(server):
    bomb = '<!DOCTYPE a [<!ENTITY b "bbbbbbbb"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>'
    fatal(server, bomb, "restricted-xml")
    with Stream(server) as stream:
        stream.send('<?xml version="1.0"?>' + bomb + HEADER)
        stream.expect(r"<stream:stream [^>]*>")
        stream.stream_error("restricted-xml")


@case
def comment(server):
    fatal(server, "<!-- a remark -->", "restricted-xml")
    fatal(server, gcm("<!-- a remark -->{}"), "restricted-xml")


@case
def processing_instruction(server):
    fatal(server, "<?php echo 1 ?>", "restricted-xml")
    fatal(server, gcm("<?php echo 1 ?>{}"), "restricted-xml")


@case
def control_characters(server):
    """P01: what is no XML character ends the stream; tab, line feed and carriage return are characters."""
    for raw in [b"\x1a", b"\x00", b"\x08", b"\xef\xbf\xbe", b"\xef\xbf\xbf", b"\xed\xa0\x80", b"\xc0\xaf", b"\xff"]:
        text = gcm('{"to":"no-token","message_id":"m1","data":{"t":"aXb"}}').encode().replace(b"X", raw)
        with server.app_server() as stream:
            stream.send(text)
            try:
                stream.stream_error("not-well-formed")
            except AssertionError as wrong:
                raise AssertionError(f"after {raw!r}: {wrong}") from wrong
    fatal(server, gcm("&#26;"), "not-well-formed")
    fatal(server, gcm("&#0;"), "not-well-formed")
    fatal(server, gcm("&#xFFFF;"), "not-well-formed")
    with server.app_server() as stream:
        stream.send(gcm('\t{\n"to":"no-token",\r\n"message_id":"m1"}'))
        equal(stream.payload()["error"], "BAD_REGISTRATION")


@case
def surrogate_references(server):
    """P02: half a character is none; all legal spellings of one character arrive as that character."""
    fatal(server, gcm('{"to":"no-token","message_id":"m1","data":{"e":"&#55357;&#56838;"}}'), "not-well-formed")
    fatal(server, gcm('{"to":"no-token","message_id":"m1","data":{"e":"&#xdc31;"}}'), "not-well-formed")
    known = server.register()
    with server.app_server() as stream, server.device(known) as device:
        for spelling in ["\\ud83d\\ude06", "&#x1F606;", "&#128518;", "\U0001f606"]:
            name = fresh()
            stream.send(gcm(f'{{"to":"{known["token"]}","message_id":"{name}","data":{{"e":"{spelling}"}}}}'))
            delivered = device.payload()
            equal(delivered["data"], {"e": "\U0001f606"}, spelling)
            device.ack(delivered)
            equal(stream.payload()["message_type"], "ack")


@case
def markup_inside_text(server):
    """P03: escaped markup passes unchanged; raw markup is the sender's own fault alone."""
    known = server.register()
    with server.app_server() as stream, server.device(known) as device:
        value = "<test>test & \"q\" 'a' ]]> \\ / \u2028"
        stream.message({"to": known["token"], "message_id": fresh(), "data": {"m": value}})
        delivered = device.payload()
        equal(delivered["data"], {"m": value})
        device.ack(delivered)
        equal(stream.payload()["message_type"], "ack")
        # And the other way.
        device.message(
            {"to": server.sender + "@fcm.googleapis.com", "message_id": fresh("u"), "data": {"m": value}}
        )
        upstream = stream.payload()
        equal(upstream["data"], {"m": value})
        stream.ack(upstream)
        equal(device.payload()["message_type"], "ack")
        # In a CDATA section nothing needs escaping.
        name = fresh()
        body = json.dumps({"to": known["token"], "message_id": name, "data": {"m": "<b> & "}})
        stream.send(gcm(f"<![CDATA[{body}]]>"))
        delivered = device.payload()
        equal(delivered["data"], {"m": "<b> & "})
        device.ack(delivered)
        equal(stream.payload()["message_type"], "ack")
    fatal(server, gcm('{"to":"t","message_id":"m1","data":{"m":"<test>test"}}'), "not-well-formed")


@case
def elements_inside_gcm(server):
    with server.app_server() as stream:
        stream.send(gcm('{"to":"t","message_id":"m1","data":{"m":"<b>bold</b>"}}'))
        element, error, text = stream.stanza_error()
        equal(element.get("id"), "m1")
        equal(error.get("code"), "400")
        assert text.startswith(BAD_JSON), text
        alive(stream)


@case
def too_deep(server):
    with server.app_server() as stream:
        # 8 elements, the stanza counted.
        stream.send("<message>" + "<a>" * 7 + "</a>" * 7 + "</message>")
        stream.stanza_error()
        alive(stream)
    fatal(server, "<message>" + "<a>" * 8 + "</a>" * 8 + "</message>", "policy-violation")
    fatal(server, "<message>" + "<a>" * 10_000, "policy-violation")


@case
def too_many_attributes(server):
    def attributes(count):
        return "".join(f' a{number}="1"' for number in range(count))

    with server.app_server() as stream:
        stream.send(f"<message{attributes(32)}/>")
        stream.stanza_error()
        alive(stream)
    fatal(server, f"<message{attributes(33)}/>", "policy-violation")
    fatal(server, f"<message{attributes(33)}><gcm xmlns='{GCM}'>{{}}</gcm></message>", "policy-violation")


def padded(total):
    """A stanza of exactly so many bytes that is a valid message apart from its token."""
    text = gcm('{"to":"no-token","message_id":"m1"PAD}')
    return text.replace("PAD", " " * (total - len(text) + 3))


@case
def stanza_of_64_kib(server):
    with server.app_server() as stream:
        text = padded(65_536)
        equal(len(text), 65_536)
        stream.send(text)
        equal(stream.payload()["error"], "BAD_REGISTRATION")
        alive(stream)
    fatal(server, padded(65_537), "policy-violation")


@case
def stanza_of_1_mib(server):
    with server.app_server() as stream:
        send_all(stream, padded(1 << 20))
        stream.stream_error("policy-violation")


@case
def tag_without_an_end(server):
    with server.app_server() as stream:
        send_all(stream, "<message id='" + "a" * (1 << 18))
        stream.stream_error("policy-violation")


@case
def too_much_before_login(server):
    with Stream(server) as stream:
        stream.send(HEADER.replace(">", ' note="' + "n" * (8_192 - len(HEADER) - 8) + '">'))
        stream.expect(r"<stream:stream [^>]*>")
        stream.expect(r"<stream:features>.*?</stream:features>")
        stream.send(" " * 100_000)
        element = auth(server.sender, "x")
        stream.send(element.replace("<auth ", "<auth " + "a='" + "b" * (8_192 - len(element) - 5) + "' "))
        stream.expect(f'<failure xmlns="{SASL}"><not-authorized/></failure>')
        send_all(stream, element.replace("<auth ", "<auth " + "a='" + "b" * (8_193 - len(element) - 5) + "' "))
        stream.stream_error("policy-violation")
    with Stream(server) as stream:
        send_all(stream, HEADER.replace(">", ' note="' + "n" * (8_193 - len(HEADER) - 8) + '">'))
        stream.expect(r"<stream:stream [^>]*>")
        stream.stream_error("policy-violation")


# Stanzas at the wrong time, and wrong stanzas


@case
def stanza_before_login(server):
    fatal_before_login(server, message({"to": "t", "message_id": "m1"}), "not-authorized")
    fatal_before_login(server, '<iq type="get" id="a"><ping xmlns="urn:xmpp:ping"/></iq>', "not-authorized")
    fatal_before_login(server, '<starttls xmlns="urn:ietf:params:xml:ns:xmpp-tls"/>', "not-authorized")


@case
def stanza_before_bind(server):
    with Stream(server) as stream:
        stream.open()
        stream.send(auth(server.sender, server.server_key))
        stream.exactly(f'<success xmlns="{SASL}"/>')
        stream.send(HEADER)
        stream.expect(r"<stream:stream [^>]*><stream:features>.*?</stream:features>")
        stream.send(message({"to": "t", "message_id": "m1"}))
        stream.stream_error("not-authorized")


@case
def unknown_element(server):
    fatal(server, "<other/>", "unsupported-stanza-type")
    fatal(server, '<message xmlns="urn:example:other"/>', "unsupported-stanza-type")
    fatal(server, f'<auth mechanism="PLAIN" xmlns="{SASL}">AAAA</auth>', "unsupported-stanza-type")


@case
def stream_error_of_the_peer(server):
    with server.app_server() as stream:
        stream.send(f'<stream:error><undefined-condition xmlns="{STREAM_ERRORS}"/></stream:error></stream:stream>')
        stream.closes()


@case
def unknown_iq(server):
    with server.app_server() as stream:
        for kind in ["get", "set"]:
            for query in [
                '<query xmlns="jabber:iq:roster"/>',
                '<query xmlns="http://jabber.org/protocol/disco#info"/>',
                '<vCard xmlns="vcard-temp"/>',
                "",
            ]:
                name = fresh("iq")
                stream.send(f'<iq type="{kind}" id="{name}">{query}</iq>')
                answer = stream.stanza()
                equal((answer.tag, answer.get("type"), answer.get("id")), (f"{{{CLIENT}}}iq", "error", name))
                error = answer.find(f"{{{CLIENT}}}error")
                equal(error.get("type"), "cancel")
                equal(error[0].tag, f"{{{STANZA_ERRORS}}}service-unavailable")
        stream.send('<iq type="get" id="p"><ping xmlns="urn:xmpp:ping"/></iq>')
        answer = stream.stanza()
        equal((answer.get("type"), answer.get("id"), len(answer)), ("result", "p", 0))
        # Answers to what was never asked, and a second bind.
        stream.send('<iq type="result" id="x"/><iq type="error" id="y"/>')
        stream.send('<iq type="set" id="b2"><bind xmlns="urn:ietf:params:xml:ns:xmpp-bind"/></iq>')
        equal((stream.stanza().get("id")), "b2")
        alive(stream)


@case
def presence_and_chat(server):
    with server.app_server() as stream:
        stream.send('<presence/><presence type="unavailable"/><presence to="a@b"><show>away</show></presence>')
        stream.send('<message type="error" id="e"><body>x</body></message>')
        alive(stream)
        stream.send('<message id="chat" to="devices@gcm.googleapis.com"><body>hello</body></message>')
        element, error, text = stream.stanza_error()
        equal((element.get("id"), error.get("code")), ("chat", "400"))
        assert text.startswith(BAD_JSON), text
        alive(stream)


# JSON


def stanza_refused(stream, content, text_start):
    """The text as payload gives a stanza error that echoes it, and the stream goes on."""
    name = fresh("s")
    stream.send(f'<message id="{name}"><gcm xmlns="{GCM}">{escaped(content)}</gcm></message>')
    element, error, text = stream.stanza_error()
    equal(element.get("id"), name)
    equal(element.find(f"{{{GCM}}}gcm").text or "", content, "the echo")
    equal((error.get("code"), error.get("type")), ("400", "modify"))
    assert error.find(f"{{{STANZA_ERRORS}}}bad-request") is not None, ElementTree.tostring(error)
    assert text.startswith(text_start), (content, text)
    assert text.endswith("\n"), text


@case
def broken_json(server):
    with server.app_server() as stream:
        for content in [
            '{"to":"t","message_id":"m1"', "", "   ", "nonsense", "[]", '"text"', "12", "null", "true",
            '{"message_id":"m1",}', "{'message_id':'m1'}", '{"message_id":"m1"}}', '{"message_id":"m1"} x',
            '{"message_id":"\\x"}', '{"message_id":"\\ud800"}x', '{"message_id":"m1","a":01}', '{"a":"\\u12"}',
            '{"message_id":"a\tb"}', "[" * 10_000, '{"a":' * 5_000, "\ufeff{}", "<b>&amp;</b>",
        ]:
            stanza_refused(stream, content, BAD_JSON)
        # An error to a stanza without id has none either.
        stream.send(f'<message><gcm xmlns="{GCM}">broken</gcm></message>')
        element, _, _ = stream.stanza_error()
        equal(element.get("id"), None)
        alive(stream)


@case
def message_id_missing_or_wrong(server):
    """Nothing to tie a nack to. P05: a number is no message id."""
    with server.app_server() as stream:
        stanza_refused(stream, '{"to":"t"}', BAD_JSON + "Missing Required Field: message_id")
        stanza_refused(stream, '{"to":"t","message_id":""}', BAD_JSON + "Missing Required Field: message_id")
        stanza_refused(stream, '{"to":"t","message_id":null}', BAD_JSON + "Missing Required Field: message_id")
        stanza_refused(stream, '{"to":"t","message_id":12345678901234567890}', WRONG_TYPE + 'Field "message_id"')
        stanza_refused(stream, '{"to":"t","message_id":["a"]}', WRONG_TYPE + 'Field "message_id"')
        stanza_refused(stream, '{"to":"t","message_id":{"a":1}}', WRONG_TYPE + 'Field "message_id"')
        alive(stream)


@case
def fields_refused(server):
    """JSON is right and the message id is there: every other fault is a nack. P07: reserved keys."""
    token = server.register()["token"]
    with server.app_server() as stream:
        for fields in [
            {}, {"to": ""}, {"to": 5}, {"to": token, "condition": "'a' in topics"}, {"registration_ids": [token]},
            {"to": token, "time_to_live": "600"}, {"to": token, "time_to_live": -1},
            {"to": token, "time_to_live": 2_419_201}, {"to": token, "time_to_live": 1.5},
            {"to": token, "time_to_live": 10**30}, {"to": token, "priority": "urgent"}, {"to": token, "priority": 10},
            {"to": token, "data": "text"}, {"to": token, "data": []}, {"to": token, "notification": "text"},
            {"to": token, "notification": {"title": 5}}, {"to": token, "dry_run": "yes"},
            {"to": token, "collapse_key": 5}, {"to": token, "delivery_receipt_requested": "true"},
            {"to": token, "message_type": "nonsense"}, {"to": token, "restricted_package_name": "org.example.other"},
            {"to": token, "data": {"from": "x"}}, {"to": token, "data": {"google.x": "1"}},
            {"to": token, "data": {"gcm": "1"}}, {"to": token, "data": {"message_type": "1"}},
            {"condition": '"news" in topics'},
        ]:
            refused(stream, {"message_id": fresh(), **fields}, "INVALID_JSON")
        refused(stream, {"message_id": fresh(), "to": "no-token"}, "BAD_REGISTRATION")
        refused(stream, {"message_id": fresh(), "to": "'news' in topics"}, "BAD_REGISTRATION")
        refused(stream, {"message_id": fresh(), "to": token[:-1]}, "BAD_REGISTRATION")
        other = token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB")
        refused(stream, {"message_id": fresh(), "to": other}, "DEVICE_UNREGISTERED")
        for name in ["From", "fromage"]:
            equal(answered(stream, {"message_id": fresh(), "to": token, "data": {name: "x"}})["message_type"], "ack")


@case
def message_ids_of_all_kinds(server):
    """Whatever the id holds comes back as it was."""
    with server.app_server() as stream:
        for name in ["a<b>&\"c'", "\u00e9\u8a9e\U0001f30d", "\n\t\r", "x" * 2_000, "\x7f\x01", "\ufffe", "\\", "/"]:
            refused(stream, {"to": "no-token", "message_id": name}, "BAD_REGISTRATION")


@case
def payload_sizes(server):
    """P08: 4,096 bytes pass and 4,097 do not, counted in UTF-8 after decoding."""
    known = server.register()
    with server.app_server() as stream, server.device(known) as device:
        for text in ["x" * 4_095, "\u00e9" * 2_047 + "x", "\U0001f30d" * 1_023 + "xxx", '"' * 4_095, "&" * 4_095]:
            name = fresh()
            stream.message({"to": known["token"], "message_id": name, "data": {"b": text}})
            delivered = device.payload()
            equal(delivered["data"], {"b": text})
            device.ack(delivered)
            equal(stream.payload(), {"from": known["token"], "message_id": name, "message_type": "ack"})
            refused(stream, {"to": known["token"], "message_id": fresh(), "data": {"b": text + "x"}}, "INVALID_JSON")
        refused(
            stream,
            {"to": known["token"], "message_id": fresh(), "data": {"b": "x" * 2_000}, "notification": {"body": "y" * 2_092}},
            "INVALID_JSON",
        )


@case
def large_integers(server):
    """P05: numbers in data keep their digits."""
    known = server.register()
    digits = {
        "a": "1000000000000000001", "b": "9007199254740993", "c": "18446744073709551615",
        "d": "18446744073709551616", "e": "-9223372036854775808", "f": "1.10", "g": "1e400",
    }
    with server.app_server() as stream, server.device(known) as device:
        data = ",".join(f'"{name}":{value}' for name, value in digits.items())
        stream.message(f'{{"to":"{known["token"]}","message_id":"{fresh()}","data":{{{data}}}}}')
        delivered = device.payload()
        equal(delivered["data"], digits)
        device.ack(delivered)
        equal(stream.payload()["message_type"], "ack")


@case
def time_to_live_zero(server):
    """P09: now or never."""
    known = server.register()
    with server.app_server() as stream:
        gone = {"to": known["token"], "message_id": fresh(), "time_to_live": 0, "data": {"n": "gone"}}
        equal(answered(stream, gone)["message_type"], "ack")
        kept = {"to": known["token"], "message_id": fresh(), "data": {"n": "kept"}}
        equal(answered(stream, kept)["message_type"], "ack")
        with server.device(known) as device:
            delivered = device.payload()
            equal(delivered["data"], {"n": "kept"})
            device.ack(delivered)
            stream.message({"to": known["token"], "message_id": fresh(), "time_to_live": 0, "data": {"n": "now"}})
            delivered = device.payload()
            equal(delivered["data"], {"n": "now"})
            device.ack(delivered)
            equal(stream.payload()["message_type"], "ack")


@case
def characters_split_anywhere(server):
    """P04: a stanza cut at any byte is the same stanza."""
    known = server.register()
    value = "\u00e9\u8a9e\U0001f30d&<\"\\"
    with server.app_server() as stream, server.device(known) as device:
        def text(name):
            body = json.dumps({"to": known["token"], "message_id": name, "data": {"e": value}}, ensure_ascii=False)
            return f'<message id="{name}"><gcm xmlns="{GCM}">{escaped(body)}</gcm></message>'.encode()

        def arrives(name):
            delivered = device.payload()
            equal(delivered["data"], {"e": value}, name)
            device.ack(delivered)
            equal(stream.payload(), {"from": known["token"], "message_id": name, "message_type": "ack"})

        for cut in range(1, len(text("m-000"))):
            name = fresh()[:2] + f"{cut:03}"
            whole = text(name)
            stream.send(whole[:cut])
            stream.send(whole[cut:])
            arrives(name)
        name = "m-one"
        for byte in text(name):
            stream.send(bytes([byte]))
        arrives(name)


# Acks


@case
def malformed_acks(server):
    with server.app_server() as stream:
        for fields in [{}, {"to": ""}, {"to": 5}]:
            refused(stream, {"message_id": fresh(), "message_type": "ack", **fields}, "BAD_ACK")
        alive(stream)


@case
def ack_of_nothing(server):
    with server.app_server() as stream:
        name = fresh("s")
        stream.message({"to": "someone", "message_id": "never-sent", "message_type": "ack"}, name)
        element, error, text = stream.stanza_error()
        equal((element.get("id"), error.get("code")), (name, "406"))
        assert error.find(f"{{{STANZA_ERRORS}}}not-acceptable") is not None, ElementTree.tostring(error)
        assert text, "no text"
        alive(stream)


@case
def ack_twice(server):
    """P11: a second ack is harmless, also one on another stream is no more than an error there."""
    known = server.register()
    with server.app_server() as stream, server.device(known) as device:
        device.message({"to": server.sender + "@fcm.googleapis.com", "message_id": fresh("u"), "data": {"a": "b"}})
        upstream = stream.payload()
        stream.ack(upstream)
        stream.ack(upstream)
        equal(device.payload()["message_type"], "ack")
        alive(stream)
        # Of a device: unknown, repeated and malformed acks.
        device.message({"message_type": "ack", "message_id": "00112233445566778899aabbccddeeff"})
        device.message({"message_type": "ack", "message_id": "nonsense"})
        stream.message({"to": known["token"], "message_id": fresh(), "data": {"a": "b"}})
        delivered = device.payload()
        device.ack(delivered)
        device.ack(delivered)
        equal(stream.payload()["message_type"], "ack")


# Floods and silence


@case
def burst_without_reading(server):
    """1,000 messages in one write: each is acked or refused, none is forgotten, acks are taken all the while."""
    # So many that no device's store overflows.
    known = [server.register() for _ in range(20)]
    names = [f"burst-{number}" for number in range(1_000)]
    talker = server.register()
    with server.app_server() as stream, server.device(talker) as device:
        device.message({"to": server.sender + "@fcm.googleapis.com", "message_id": fresh("u"), "data": {"a": "b"}})
        upstream = stream.payload()
        stanzas = [
            message({"to": known[number % 20]["token"], "message_id": name, "data": {"n": name}})
            for number, name in enumerate(names)
        ]
        # The ack in the middle does not count and is taken although the window may be full.
        ack = message({"to": upstream["from"], "message_id": upstream["message_id"], "message_type": "ack"})
        stream.send("".join(stanzas[:500]) + ack + "".join(stanzas[500:]))
        equal(device.payload()["message_type"], "ack")
        answers = {}
        while len(answers) < len(names):
            payload = stream.payload()
            assert payload["message_id"] not in answers, payload
            answers[payload["message_id"]] = payload
        equal(set(answers), set(names))
        refusals = [one for one in answers.values() if one["message_type"] == "nack"]
        assert all(one["error"] == "SERVICE_UNAVAILABLE" for one in refusals), refusals[:3]
        taken = {name for name, one in answers.items() if one["message_type"] == "ack"}
        assert len(taken) >= 100, len(taken)
        # What was refused may be sent again under its id.
        for one in refusals[:3]:
            name = one["message_id"]
            stream.message({"to": known[names.index(name) % 20]["token"], "message_id": name, "data": {"n": name}})
            equal(stream.payload(), {"from": one["from"], "message_id": name, "message_type": "ack"})
            taken.add(name)
    # Each that was taken is delivered once.
    received = []
    for number, one in enumerate(known):
        expected = sorted(name for name in taken if names.index(name) % 20 == number)
        with server.device(one) as device:
            while len(received) < len(expected):
                payload = device.payload()
                received.append(payload["data"]["n"])
                device.ack(payload)
            equal(sorted(received), expected)
        received = []


@on_request
@case
def peer_that_never_reads(server):
    """Needs a server with a write backlog of 64 KiB: what waits for this peer passes it, and only this peer is cut
    off; what it had not acked goes to another stream."""
    known = server.register()
    with Stream(server, receive_buffer=4_096) as hung, server.device(known) as device:
        hung.login(server.sender, server.server_key)
        fill(hung)
        names = [f"u-{number}" for number in range(40)]
        for name in names:
            device.message(
                {"to": server.sender + "@fcm.googleapis.com", "message_id": name, "data": {"b": "x" * 4_000}}
            )
            equal(device.payload(), {"message_type": "ack", "message_id": name})
        with server.app_server() as stream:
            received = []
            while len(received) < len(names):
                upstream = stream.payload()
                stream.ack(upstream)
                received.append(upstream["message_id"])
            equal(sorted(received), sorted(names))
            alive(stream)
        gone(hung)


# The wrong protocol


def plaintext(server, data):
    """Sends plain bytes to the TLS port; gives what comes until the end."""
    with socket.create_connection(("127.0.0.1", server.xmpp), timeout=DEADLINE) as plain:
        plain.sendall(data)
        answer = b""
        try:
            while part := plain.recv(65536):
                answer += part
        except ConnectionResetError:
            pass
        return answer


@case
def http_on_the_tls_port(server):
    """P17 (b)."""
    answer = plaintext(server, b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 "), answer
    head, body = answer.split(b"\r\n\r\n", 1)
    assert f"content-length: {len(body)}".encode() in head.lower(), answer


@case
def plain_header_on_the_tls_port(server):
    """P17 (c): closed by the TLS layer, no XML is spoken."""
    for text in [HEADER, '<?xml version="1.0"?>' + HEADER, "\0\0\0\0", "\x16\x03\x01nonsense" + "x" * 70_000]:
        answer = plaintext(server, text.encode("latin-1"))
        assert b"<" not in answer and len(answer) < 64, answer


@case
def http_inside_tls(server):
    with Stream(server) as stream:
        stream.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        stream.expect(r"<stream:stream [^>]*>")
        stream.stream_error("not-well-formed")


@case
def cut_off_anywhere(server):
    """Clients that vanish without a word, at every step."""
    for step in ["connected", "header", "auth", "bound", "half"]:
        stream = Stream(server)
        if step == "header":
            stream.open()
        elif step == "auth":
            stream.open()
            stream.send(auth(server.sender, server.server_key))
        elif step in ("bound", "half"):
            stream.login(server.sender, server.server_key)
        if step == "half":
            stream.send("<message><gcm xmlns=")
        stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        stream.close()


# The bystander


class Bystander:
    """Another client's app server and device, connected before the case begins."""

    def __init__(self, server):
        known = server.register(app="org.example.bystander")
        self.token = known["token"]
        self.stream = server.app_server()
        self.device = server.device(known)
        self.check("before")

    def check(self, when):
        """A message goes through."""
        name = fresh(when)
        self.stream.message({"to": self.token, "message_id": name, "data": {"when": when}})
        delivered = self.device.payload()
        equal(delivered["data"], {"when": when}, "the bystander's message")
        self.device.ack(delivered)
        equal(
            self.stream.payload(), {"from": self.token, "message_id": name, "message_type": "ack"},
            "the bystander's ack",
        )


def beside_a_bystander(function, server):
    bystander = Bystander(server)
    function(server.with_project_of_its_own())
    bystander.check("after")


if __name__ == "__main__":
    main(beside_a_bystander)
