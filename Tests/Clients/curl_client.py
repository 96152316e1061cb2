"""curl against every HTTPS endpoint, over HTTP/1.1 and HTTP/2: status, headers and bodies, byte for byte where they are
fixed. Needs curl, and openssl for signing assertions; of Python the standard library only.
"""

import base64
import json
import os
import subprocess
import tempfile
import time
import urllib.parse

import wire
from wire import case, equal

JSON = "application/json; charset=UTF-8"
SEND = "https://fcm.googleapis.com/v1/projects/{}/messages:send"
SCOPE = "https://www.googleapis.com/auth/firebase.messaging"


def curl(server, url, *arguments, body=None, headers=(), method=None, version="--http1.1"):
    """One call to a host name of Google's that is pointed at the server: status, headers, body."""
    host = urllib.parse.urlsplit(url).hostname
    command = [
        "curl", "--silent", "--show-error", "--max-time", "20", version, "--cacert", server.ca,
        "--connect-to", f"{host}:443:127.0.0.1:{server.https}", "--dump-header", "/dev/stderr", url, *arguments,
    ]
    for header in headers:
        command += ["--header", header]
    if method:
        command += ["--request", method]
    if body is not None:
        command += ["--data-binary", "@-"]
    done = subprocess.run(command, input=body if body is not None else b"", capture_output=True, timeout=30)
    assert done.returncode == 0, (done.returncode, done.stderr)
    head = done.stderr.decode().replace("\r", "").strip().split("\n\n")[-1].split("\n")
    fields = dict(line.split(": ", 1) for line in head[1:] if ": " in line)
    return int(head[0].split(" ")[1]), {name.lower(): value for name, value in fields.items()}, done.stdout


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def assertion(account, **changes):
    """A signed assertion; a claim that is None is left out."""
    now = int(time.time())
    claims = {
        "iss": account["client_email"], "scope": SCOPE, "aud": "https://oauth2.googleapis.com/token", "iat": now,
        "exp": now + 3600, **changes,
    }
    claims = {name: value for name, value in claims.items() if value is not None}
    head = {"alg": "RS256", "typ": "JWT", "kid": account["private_key_id"]}
    text = ".".join(encoded(json.dumps(part).encode()) for part in (head, claims))
    with tempfile.NamedTemporaryFile("w", suffix=".key") as key:
        key.write(account["private_key"])
        key.flush()
        signed = subprocess.run(
            ["openssl", "dgst", "-sha256", "-sign", key.name], input=text.encode(), capture_output=True, check=True
        ).stdout
    return f"{text}.{encoded(signed)}"


def ask_token(server, text, grant="urn:ietf:params:oauth:grant-type:jwt-bearer", url="https://oauth2.googleapis.com/token"):
    form = urllib.parse.urlencode({"grant_type": grant, "assertion": text}).encode()
    status, fields, body = curl(server, url, body=form)
    equal(fields["content-type"], JSON)
    return status, json.loads(body)


def access_token(server, account=None, **changes):
    status, answer = ask_token(server, assertion(account or server.make_service_account(), **changes))
    equal(status, 200, answer)
    return answer["access_token"]


def pretty(value):
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


# The token endpoint


@case
def a_token_is_given_for_an_assertion(server):
    account = server.make_service_account()
    for url in (
        "https://oauth2.googleapis.com/token", "https://accounts.google.com/o/oauth2/token",
        "https://www.googleapis.com/oauth2/v4/token",
    ):
        status, answer = ask_token(server, assertion(account, aud=url), url=url)
        equal(status, 200)
        equal(sorted(answer), ["access_token", "expires_in", "token_type"])
        equal((answer["expires_in"], answer["token_type"]), (3599, "Bearer"))


@case
def an_assertion_at_fault_is_refused(server):
    account = server.make_service_account()
    now = int(time.time())
    for text, error, description in (
        (assertion(account, iat=now + 240, exp=now + 3000), None, None),
        (assertion(account, iat=now + 3, exp=now + 3603), None, None),
        (assertion(account, iat=now + 400, exp=now + 3000), "invalid_grant", "ahead of the server's clock"),
        (assertion(account, iat=now - 3660, exp=now - 60), "invalid_grant", "behind the server's clock"),
        (assertion(account, iat=now, exp=now + 3601), "invalid_grant", "3601 seconds after iat"),
        (assertion(account, scope=""), "invalid_scope", "Empty or missing scope not allowed."),
        (assertion(account, scope=None), "invalid_scope", "Empty or missing scope not allowed."),
        (assertion(account, aud="https://example.org/"), "invalid_grant", "Failed audience check"),
        (assertion(account, iss="nobody"), "invalid_grant", "Invalid grant: account not found"),
        (assertion(account)[:-8] + "AAAAAAAA", "invalid_grant", "Invalid JWT Signature."),
        ("x.y.z", "invalid_grant", "not a signed JSON Web Token"),
        ("", "invalid_request", "assertion"),
    ):
        status, answer = ask_token(server, text)
        if error is None:
            equal(status, 200, answer)
            continue
        equal((status, answer["error"]), (400, error), answer)
        assert description in answer["error_description"], answer
    status, answer = ask_token(server, "x", grant="password")
    equal((status, answer), (400, {"error": "unsupported_grant_type", "error_description": "Invalid grant_type: password"}))
    status, answer = ask_token(server, assertion(account, sub="somebody"))
    equal((status, answer["error"]), (401, "unauthorized_client"))


# HTTP v1


def v1(server, token, message, *, query="", version="--http1.1", project=None, headers=(), **more):
    return curl(
        server, SEND.format(project or server.project) + query, body=json.dumps({"message": message, **more}).encode(),
        headers=[f"Authorization: Bearer {token}", "Content-Type: application/json", *headers], version=version,
    )


@case
def bodies_of_http_v1_are_those_of_the_service(server):
    token = access_token(server)
    known = server.register()["token"]
    bad_request = "type.googleapis.com/google.rpc.BadRequest"
    fcm = {"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": "INVALID_ARGUMENT"}

    def fault(message, details=None, status="INVALID_ARGUMENT", code=400):
        error = {"code": code, "message": message, "status": status}
        if details is not None:
            error["details"] = details
        return pretty({"error": error})

    def violation(message, field):
        return [{"@type": bad_request, "fieldViolations": [{"field": field, "description": message}]}, fcm]

    recipient = "Recipient of the message is not set."
    malformed = "The registration token is not a valid FCM registration token"
    topic = "Topic name contains invalid characters."
    ttl = "TTL must be a non-negative integer."
    unknown = "Invalid JSON payload received. Unknown name \"toen\" at 'message': Cannot find field."
    for version in ("--http1.1", "--http2"):
        for message, code, wanted in (
            ({}, 400, fault(recipient, violation(recipient, "message"))),
            ({"token": "x"}, 400, fault(malformed, violation(malformed, "message.token")[::-1])),
            ({"topic": "no name"}, 400, fault(topic, violation(topic, "message"))),
            ({"condition": "'a' in"}, 400, fault("Request contains an invalid argument.")),
            (
                {"token": known, "data": {"a": "x" * 4096}}, 400,
                fault("Message is too large. The maximum is 4K (4096 bytes).", [{"@type": bad_request}, fcm]),
            ),
            (
                {"token": known, "webpush": {"headers": {"TTL": "-1"}}}, 400,
                fault(ttl, violation(ttl, "message.webpush.headers.TTL")),
            ),
            (
                {"toen": "x"}, 400,
                fault(unknown, [{"@type": bad_request, "fieldViolations": [{"field": "message", "description": unknown}]}]),
            ),
            (
                {"token": known[:-1] + ("A" if known[-1] != "A" else "B")}, 404,
                fault("Requested entity was not found.", [{**fcm, "errorCode": "UNREGISTERED"}], "NOT_FOUND", 404),
            ),
        ):
            status, fields, body = v1(server, token, message, version=version)
            equal((status, body), (code, wanted))
            equal(fields["content-type"], JSON)
        status, fields, body = v1(server, token, {"token": known}, version=version, headers=["X-Weir-Message-Id: m1"])
        equal((status, body), (200, pretty({"name": f"projects/{server.project}/messages/m1"})))
        equal(fields["content-type"], JSON)
        status, _, body = v1(server, token, {"token": known}, version=version, query="?prettyPrint=false", validate_only=True)
        equal(status, 200)
        assert body.startswith(b'{"name":"projects/'), body
        # The project's number stands for its id.
        equal(v1(server, token, {"topic": "a"}, version=version, project=server.sender)[0], 200)


@case
def who_may_not_is_told_why(server):
    known = server.register()["token"]
    account = server.make_service_account()
    token = access_token(server, account)

    def call(*headers, project=None):
        status, fields, body = curl(
            server, SEND.format(project or server.project), body=json.dumps({"message": {"token": known}}).encode(),
            headers=["Content-Type: application/json", *headers],
        )
        error = json.loads(body)["error"] if status != 200 else {}
        reasons = [detail.get("reason") for detail in error.get("details", [])]
        return status, error.get("status"), reasons, fields.get("www-authenticate")

    realm = 'Bearer realm="https://accounts.google.com/"'
    equal(call(), (401, "UNAUTHENTICATED", ["CREDENTIALS_MISSING"], realm))
    equal(call("Authorization: Bearer wrong"), (401, "UNAUTHENTICATED", [], realm + ', error="invalid_token"'))
    equal(call(f"Authorization: key={server.server_key}")[:2], (401, "UNAUTHENTICATED"))
    equal(call(f"Authorization: Bearer {token[:-2]}")[0], 401)
    equal(call(f"Authorization: Bearer {token}")[0], 200)
    equal(call(f"Authorization: Bearer {token}", project="nothing")[:2], (403, "PERMISSION_DENIED"))
    other = server.with_project_of_its_own()
    equal(call(f"Authorization: Bearer {token}", project=other.project)[:2], (403, "PERMISSION_DENIED"))
    narrow = access_token(server, account, scope="https://www.googleapis.com/auth/datastore")
    equal(call(f"Authorization: Bearer {narrow}")[:2], (403, "PERMISSION_DENIED"))
    # A service account's own signature, without a token call.
    own = assertion(account, aud="https://fcm.googleapis.com/", scope=None, sub=account["client_email"])
    equal(call(f"Authorization: Bearer {own}")[0], 200)
    now = int(time.time())
    late = assertion(account, aud="https://fcm.googleapis.com/", iat=now - 3700, exp=now - 100)
    equal(call(f"Authorization: Bearer {late}")[2], ["ACCESS_TOKEN_EXPIRED"])


@case
def the_same_id_is_delivered_once(server):
    token = access_token(server)
    known = server.register()
    key = f"Authorization: key={server.server_key}"
    with server.device(known) as device:
        names = [v1(server, token, {"token": known["token"], "data": {"n": "1"}}, headers=["X-Weir-Message-Id: a"])[2] for _ in range(3)]
        equal(len(set(names)), 1)
        legacy = [
            curl(
                server, "https://fcm.googleapis.com/fcm/send",
                body=json.dumps({"to": known["token"], "data": {"n": n}, "message_id": name}).encode(),
                headers=[key, "Content-Type: application/json"],
            )[2]
            for n, name in (("2", "b"), ("2", "b"), ("again", "a"))
        ]
        equal([json.loads(one)["results"] for one in legacy], [[{"message_id": "b"}], [{"message_id": "b"}], [{"message_id": "a"}]])
        many = [
            json.loads(
                curl(
                    server, "https://fcm.googleapis.com/fcm/send",
                    body=json.dumps({"registration_ids": [known["token"], *more], "data": {"n": "3"}}).encode(),
                    headers=[key, "Content-Type: application/json", "X-Weir-Message-Id: c"],
                )[2]
            )["results"]
            for more in ([], ["malformed"], [])
        ]
        equal(many[0][0], many[1][0])
        v1(server, token, {"token": known["token"], "data": {"n": "last"}})
        found = [device.payload() for _ in range(4)]
        for one in found:
            device.ack(one)
        equal([one["data"]["n"] for one in found], ["1", "2", "3", "last"])
        status, found = server.administer("GET", f"/admin/v1/messages/{server.sender}/a")
        equal((status, found["message_id"]), (200, "a"))


# Legacy HTTP


def legacy(server, body, *headers, url="https://fcm.googleapis.com/fcm/send", type="application/json", version="--http1.1"):
    text = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return curl(
        server, url, body=text, version=version,
        headers=[*(headers or [f"Authorization: key={server.server_key}"]), f"Content-Type: {type}" if type else "Content-Type;"],
    )


@case
def bodies_of_legacy_http_are_those_of_the_service(server):
    known = server.register()
    text = "text/plain; charset=UTF-8"
    for version in ("--http1.1", "--http2"):
        for url in (
            "https://fcm.googleapis.com/fcm/send", "https://gcm-http.googleapis.com/gcm/send",
            "https://android.googleapis.com/gcm/send",
        ):
            status, fields, body = legacy(server, {"registration_ids": ["ABC"]}, url=url, version=version)
            found = json.loads(body)
            equal((status, fields["content-type"]), (200, JSON))
            wanted = (
                f'{{"multicast_id":{found["multicast_id"]},"success":0,"failure":1,"canonical_ids":0,'
                '"results":[{"error":"InvalidRegistration"}]}'
            )
            equal(body.decode(), wanted)
        status, fields, body = legacy(server, {"to": "/topics/a"}, version=version)
        equal((status, fields["content-type"]), (200, JSON))
        assert isinstance(json.loads(body)["message_id"], int), body
        equal(body.decode(), f'{{"message_id":{json.loads(body)["message_id"]}}}')
        status, fields, body = legacy(server, {"condition": "'a' in topics"}, version=version)
        assert isinstance(json.loads(body)["message_id"], int), body
        status, fields, body = legacy(server, "x", version=version)
        equal((status, fields["content-type"]), (400, text))
        status, fields, body = legacy(server, {"to": known["token"]}, "Authorization: key=wrong", version=version)
        equal((status, fields["content-type"]), (401, "text/html; charset=UTF-8"))
        assert b"INVALID_KEY" in body and b"Error 401" in body, body
        status, _, body = legacy(server, {"to": known["token"]}, "X-Nothing: 1", version=version)
        assert status == 401 and b"Unauthorized" in body, body
        status, fields, body = legacy(server, f"registration_id={known['token']}&data.a=1", type=None, version=version)
        equal((status, fields["content-type"], body[:5]), (200, text, b"id=0:"))
        status, fields, body = legacy(server, "registration_id=x", type="application/x-www-form-urlencoded", version=version)
        equal((status, body), (200, b"Error=InvalidRegistration"))


@case
def a_bearer_token_needs_its_header(server):
    known = server.register()
    bearer = f"Authorization: Bearer {access_token(server)}"
    equal(legacy(server, {"to": known["token"]}, bearer)[0], 401)
    equal(legacy(server, {"to": known["token"]}, bearer, "access_token_auth: true")[0], 200)


@case
def groups_are_made_and_sent_to(server):
    url = "https://fcm.googleapis.com/fcm/notification"
    known = [server.register() for _ in range(2)]
    gone = server.register()
    server.unregister(gone)
    key = [f"Authorization: key={server.server_key}", f"project_id: {server.sender}"]
    bearer = [f"Authorization: Bearer {access_token(server)}", "access_token_auth: true", f"project_id: {server.sender}"]

    def call(body, headers=key, query=""):
        status, fields, answer = curl(
            server, url + query, body=None if body is None else json.dumps(body).encode(),
            headers=[*headers, "Content-Type: application/json"],
        )
        return status, answer.decode() if status == 401 else json.loads(answer)

    create = {"operation": "create", "notification_key_name": "user-7", "registration_ids": [known[0]["token"], "malformed"]}
    status, made = call(create)
    equal((status, list(made)), (200, ["notification_key"]))
    group = made["notification_key"]
    equal(call(create), (400, {"error": "notification_key already exists"}))
    equal(call({**create, "notification_key_name": "x", "registration_ids": ["x"]}), (400, {"error": "no valid registration ids"}))
    equal(call(None, query="?notification_key_name=user-7", headers=bearer), (200, {"notification_key": group}))
    equal(call(None, query="?notification_key_name=nobody"), (400, {"error": "notification_key not found"}))
    add = {"operation": "add", "notification_key": group, "registration_ids": [known[1]["token"]]}
    equal(call(add, headers=bearer), (200, {"notification_key": group}))
    equal(
        call({**add, "notification_key_name": "other"}),
        (400, {"error": "notification_key_name doesn't match the group name of the notification_key"}),
    )
    equal(call({**add, "notification_key": "APA91bNothing"}), (400, {"error": "notification_key not found"}))
    equal(call(add, headers=[key[0]]), (400, {"error": "project_id is missing"}))
    equal(call(add, headers=["Authorization: key=wrong", key[1]])[0], 401)
    equal(call(add, headers=bearer[:1] + bearer[2:])[0], 401)

    with server.device(known[0]) as first, server.device(known[1]) as second:
        equal(legacy(server, {"to": group, "data": {"a": "1"}})[2], b'{"success":2,"failure":0}')
        for device in (first, second):
            found = device.payload()
            device.ack(found)
            equal(found["data"], {"a": "1"})
    token = bearer[0].removeprefix("Authorization: Bearer ")
    equal(v1(server, token, {"token": group})[0], 200)
    for one in known:
        equal(call({"operation": "remove", "notification_key": group, "registration_ids": [one["token"]]})[0], 200)
    equal(call(None, query="?notification_key_name=user-7"), (400, {"error": "notification_key not found"}))


@case
def topics_are_managed_through_instance_ids(server):
    known = server.register(platform="android")
    token = known["token"]
    key = f"Authorization: key={server.server_key}"
    bearer = [f"Authorization: Bearer {access_token(server)}", "access_token_auth: true"]
    host = "https://iid.googleapis.com"

    def call(path, *headers, body=None, method=None):
        status, fields, answer = curl(
            server, host + path, headers=headers, method=method, body=None if body is None else json.dumps(body).encode()
        )
        return status, answer.decode() if status == 401 else json.loads(answer)

    batch = {"to": "/topics/news", "registration_tokens": [token, token[:-1] + ("A" if token[-1] != "A" else "B"), "x"]}
    wanted = {"results": [{}, {"error": "NOT_FOUND"}, {"error": "INVALID_ARGUMENT"}]}
    equal(call("/iid/v1:batchAdd", key, body=batch), (200, wanted))
    equal(call("/iid/v1:batchAdd", *bearer, body=batch), (200, wanted))
    equal(call("/iid/v1:batchRemove", key, body=batch), (200, wanted))
    equal(call("/iid/v1:batchAdd", bearer[0], body=batch)[0], 401)
    equal(call("/iid/v1:batchAdd", key, body={**batch, "to": "no name"}), (400, {"error": "Topic name format is invalid"}))
    equal(call("/iid/v1:batchAdd", key, body={"to": "a"}), (400, {"error": "MissingIIdToken"}))
    for spelled in (token, token.replace(":", "%3A")):
        equal(call(f"/iid/v1/{spelled}/rel/topics/single", key, method="POST", body=None), (200, {}))
    equal(call("/iid/v1/x/rel/topics/single", key, method="POST"), (400, {"error": "InvalidToken"}))
    unknown = batch["registration_tokens"][1]
    missing = {"error": "No information found about this instance id."}
    equal(call(f"/iid/v1/{unknown}/rel/topics/single", key, method="POST"), (404, missing))
    status, info = call(f"/iid/info/{token}?details=true", key)
    day = time.strftime("%Y-%m-%d", time.gmtime())
    equal(
        (status, info),
        (
            200,
            {
                "application": "org.example.app", "authorizedEntity": server.sender, "platform": "ANDROID", "scope": "*",
                "attestStatus": "UNKNOWN", "connectionType": "OTHER", "connectDate": day,
                "rel": {"topics": {"single": {"addDate": day}}},
            },
        ),
    )
    status, info = call(f"/iid/info/{token}", *bearer)
    equal(sorted(info), ["application", "attestStatus", "authorizedEntity", "platform", "scope"])
    equal(call(f"/iid/info/{unknown}", key), (404, missing))
    equal(call("/iid/info/x", key), (400, {"error": "InvalidToken"}))
    equal(call(f"/iid/v1/{token}/rel/topics/single", key, method="DELETE"), (200, {}))
    apns = {"application": "org.example.app", "sandbox": True, "apns_tokens": ["ab" * 32, "zz"]}
    status, first = call("/iid/v1:batchImport", key, body=apns)
    equal(status, 200)
    equal([one["status"] for one in first["results"]], ["OK", "INVALID_ARGUMENT"])
    equal(call("/iid/v1:batchImport", key, body=apns)[1], first)
    made = first["results"][0]["registration_token"]
    equal(call(f"/iid/info/{made}", key)[1]["platform"], "IOS")
    equal(json.loads(legacy(server, {"to": made, "data": {"a": "1"}})[2])["success"], 1)


@case
def a_batch_is_answered_part_by_part(server):
    token = access_token(server)
    known = server.register()
    bodies = [
        json.dumps({"message": {"token": known["token"], "data": {"e": "\u00e9\u8a9e\U0001f30d"}}}, ensure_ascii=False),
        json.dumps({"message": {"token": "x"}}), json.dumps({"message": {"topic": "a"}}),
    ]
    parts = ""
    for number, body in enumerate(bodies, 1):
        # As Admin SDKs for Node count: UTF-16 units.
        length = len(body.encode("utf-16-le")) // 2
        inner = (
            f"POST https://fcm.googleapis.com/v1/projects/{server.project}/messages:send HTTP/1.1\r\n"
            f"Content-Length: {length}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{body}"
        )
        parts += (
            f"--__END_OF_PART__\r\nContent-Length: {length + 200}\r\nContent-Type: application/http\r\n"
            f"content-id: {number}\r\ncontent-transfer-encoding: binary\r\n\r\n{inner}\r\n"
        )
    parts += "--__END_OF_PART__--\r\n"
    headers = ["Content-Type: multipart/mixed; boundary=__END_OF_PART__", f"Authorization: Bearer {token}"]
    with server.device(known) as device:
        for version in ("--http1.1", "--http2"):
            status, fields, body = curl(
                server, "https://fcm.googleapis.com/batch", body=parts.encode(), headers=headers, version=version
            )
            equal(status, 200)
            assert fields["content-type"].startswith("multipart/mixed; boundary="), fields
            boundary = fields["content-type"].split("boundary=")[1]
            answers = body.decode().split(f"--{boundary}")[1:-1]
            equal([one.split("\r\n\r\n")[1].split(" ")[1] for one in answers], ["200", "400", "200"])
            assert '"name"' in answers[0] and "registration token" in answers[1], answers
            found = device.payload()
            device.ack(found)
            equal(found["data"], {"e": "\u00e9\u8a9e\U0001f30d"})
    status, _, body = curl(server, "https://fcm.googleapis.com/batch", body=parts.encode(), headers=headers[:1])
    equal((status, json.loads(body)["error"]["status"]), (401, "UNAUTHENTICATED"))
    status, _, body = curl(server, "https://fcm.googleapis.com/batch", body=b"x", headers=headers)
    equal(status, 400)


@case
def topic_subscriptions_take_every_credential(server):
    known = server.register()
    token = known["token"].replace(":", "%3A")
    path = f"https://fcm.googleapis.com/v1/projects/{server.project}/registrations/{token}/topicSubscriptions"
    bearer = f"Authorization: Bearer {access_token(server)}"
    for header in (bearer, f"Authorization: key={server.server_key}", f"x-goog-api-key: {server.api_key}"):
        status, _, body = curl(server, path + "?topic_name=news", body=b"{}", headers=[header])
        equal(status, 200, body)
        assert json.loads(body)["name"].endswith("/topicSubscriptions/news"), body
        equal(curl(server, path + "/news?allow_missing=true", headers=[header], method="DELETE")[0], 200)
        equal(curl(server, path + "/news", headers=[header], method="DELETE")[0], 404)
    equal(curl(server, path + "?topic_name=news", body=b"{}")[0], 401)
    equal(curl(server, path + "?topic_name=news", body=b"{}", headers=["Authorization: Bearer wrong"])[0], 401)


@case
def paths_that_are_not_there_are_told(server):
    for version in ("--http1.1", "--http2"):
        status, fields, body = curl(server, "https://fcm.googleapis.com/nothing", version=version)
        equal((status, json.loads(body)["error"]["status"]), (404, "NOT_FOUND"))
        status, fields, body = curl(server, "https://fcm.googleapis.com/fcm/send", version=version)
        equal((status, fields["allow"]), (405, "POST"))
        status, _, body = curl(server, "https://localhost/openapi.json", version=version)
        document = json.loads(body)
        equal((status, document["openapi"]), (200, "3.0.3"))


if __name__ == "__main__":
    wire.main(lambda function, server: function(server.with_project_of_its_own()))
