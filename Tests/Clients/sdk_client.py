"""HTTP clients, unmodified, against the server: their host names and ports stay built in.

firebase-admin, pyfcm 2, async-firebase, aiopyfcm, fcm-django, django-push-notifications, python-gcm and gcm-clerk.
Run with the Python of .venv-sdk and SSL_CERT_FILE naming the development authority.
"""

import loopback  # noqa: F401 first, so that nothing is looked up

import asyncio
import concurrent.futures
import functools
import json
import logging
import os
import warnings

import wire
from wire import case, equal

os.environ["SSL_CERT_FILE"] = os.environ["REQUESTS_CA_BUNDLE"] = wire.Server().ca
loopback.PORTS[443] = wire.Server().https

import firebase_admin  # noqa: E402
from firebase_admin import exceptions, messaging  # noqa: E402

logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")

GOOGLE = "https://oauth2.googleapis.com/token"


def account(server):
    """A service account whose token endpoint is Google's."""
    return {**server.make_service_account(), "token_uri": GOOGLE}


def other_token(token):
    """A token of the right form that nobody has."""
    return token[:-1] + ("A" if token[-1] != "A" else "B")


class App:
    """A firebase-admin app of the server's project; deleted at the end."""

    def __init__(self, server, **changes):
        self.app = firebase_admin.initialize_app(
            firebase_admin.credentials.Certificate({**account(server), **changes}), name=server.project
        )

    def __enter__(self):
        return self.app

    def __exit__(self, *_):
        firebase_admin.delete_app(self.app)


def raises(kind, call, code=None):
    try:
        result = call()
    except kind as error:
        assert type(error) is kind, f"wanted {kind}, got {type(error)}: {error}"
        if code is not None:
            equal(error.code, code)
        return error
    raise AssertionError(f"wanted {kind}, got {result!r}")


def asynchronous(function):
    @functools.wraps(function)
    def run(server):
        asyncio.run(asyncio.wait_for(function(server), 60))

    return run


# firebase-admin


@case
def admin_sends_a_whole_message(server):
    known = server.register(platform="android")
    with App(server) as app, server.device(known) as device:
        name = messaging.send(
            messaging.Message(
                token=known["token"], data={"text": "5 < 7 & \u00e9\u8a9e\U0001f30d"},
                notification=messaging.Notification(title="T", body="B", image="https://example.org/i.png"),
                android=messaging.AndroidConfig(
                    collapse_key="k", priority="high", ttl=3.5, restricted_package_name="org.example.app",
                    notification=messaging.AndroidNotification(
                        title="own", color="#aabbcc", channel_id="ch", body_loc_key="key", body_loc_args=["1"],
                        vibrate_timings_millis=[100, 200], priority="max", visibility="public",
                        notification_count=2,
                        light_settings=messaging.LightSettings(
                            color="#112233", light_on_duration_millis=100, light_off_duration_millis=50
                        ),
                    ),
                ),
            ),
            app=app,
        )
        assert name.startswith(f"projects/{server.project}/messages/0:"), name
        found = device.payload()
        device.ack(found)
        equal(found["data"], {"text": "5 < 7 & \u00e9\u8a9e\U0001f30d"})
        equal((found["priority"], found["ttl"], found["collapse_key"]), ("high", 3, "k"))
        shown = found["notification"]
        equal(shown["title"], "own")
        equal(shown["body"], "B")
        equal(shown["android_channel_id"], "ch")
        equal(shown["body_loc_args"], ["1"])
        equal(shown["notification_priority"], "PRIORITY_MAX")
        equal(shown["vibrate_timings"], ["0.100000000s", "0.200000000s"])
        equal(shown["light_settings"]["light_on_duration"], "0.100000000s")


@case
def admin_sends_what_each_platform_gets(server):
    devices = {platform: server.register(platform=platform) for platform in ("android", "ios", "web")}
    with App(server) as app:
        streams = {platform: server.device(known) for platform, known in devices.items()}
        tokens = [known["token"] for known in devices.values()]
        equal(messaging.subscribe_to_topic(tokens, "all", app=app).success_count, 3)
        message = dict(
            notification=messaging.Notification(title="T"), data={"k": "v"},
            android=messaging.AndroidConfig(data={"own": "1"}),
            apns=messaging.APNSConfig(
                headers={"apns-priority": "5"},
                payload=messaging.APNSPayload(
                    messaging.Aps(badge=3, alert=messaging.ApsAlert(subtitle="S"), category="c"), custom="x"
                ),
            ),
            webpush=messaging.WebpushConfig(
                headers={"TTL": "60"}, notification=messaging.WebpushNotification(icon="i.png"),
                fcm_options=messaging.WebpushFCMOptions(link="https://example.org/"),
            ),
        )
        for known in devices.values():
            messaging.send(messaging.Message(token=known["token"], **message), app=app)
        messaging.send(messaging.Message(topic="all", **message), app=app)
        for _ in range(2):
            found = {platform: stream.payload() for platform, stream in streams.items()}
            equal(found["android"]["data"], {"own": "1"})
            equal(found["android"]["notification"], {"title": "T"})
            equal(found["ios"]["data"], {"k": "v"})
            equal(found["ios"]["notification"], {"title": "T", "subtitle": "S", "badge": "3", "click_action": "c"})
            equal(
                found["ios"]["apns"]["payload"],
                {"aps": {"alert": {"subtitle": "S", "title": "T"}, "badge": 3, "category": "c"}, "custom": "x", "k": "v"},
            )
            equal(found["ios"]["priority"], "normal")
            equal(found["web"]["ttl"], 60)
            equal(
                found["web"]["notification"], {"title": "T", "icon": "i.png", "click_action": "https://example.org/"}
            )
            for platform, stream in streams.items():
                stream.ack(found[platform])
        for stream in streams.values():
            stream.close()


@case
def admin_sends_many(server):
    known = [server.register() for _ in range(3)]
    tokens = [one["token"] for one in known] + [other_token(known[0]["token"]), "malformed"]
    with App(server) as app:
        for answer in (
            messaging.send_each_for_multicast(messaging.MulticastMessage(tokens=tokens, data={"a": "1"}), app=app),
            messaging.send_each([messaging.Message(token=token, data={"a": "1"}) for token in tokens], app=app),
        ):
            equal([one.success for one in answer.responses], [True, True, True, False, False])
            equal(type(answer.responses[3].exception), messaging.UnregisteredError)
            equal(type(answer.responses[4].exception), exceptions.InvalidArgumentError)
        equal(messaging.send_each([messaging.Message(topic="t")] * 120, app=app).success_count, 120)


@case
@asynchronous
async def admin_sends_many_over_http2(server):
    known = [server.register() for _ in range(2)]
    tokens = [one["token"] for one in known] + [other_token(known[0]["token"])]
    # Deleting the app would close the client's connections on an event loop of its own.
    app = App(server).app
    messages = [messaging.Message(token=token, data={"a": "1"}) for token in tokens]
    answer = await messaging.send_each_async(messages, app=app)
    equal([one.success for one in answer.responses], [True, True, False])
    equal(type(answer.responses[2].exception), messaging.UnregisteredError)
    many = await messaging.send_each_async([messaging.Message(topic="t")] * 250, app=app)
    equal(many.success_count, 250)
    joined = await messaging.subscribe_to_topic_async(tokens, "news", app=app)
    equal((joined.success_count, joined.failure_count), (2, 1))


@case
def admin_sends_to_topics_and_conditions(server):
    known = server.register()
    with App(server) as app, server.device(known) as device:
        answer = messaging.subscribe_to_topic([known["token"], other_token(known["token"])], "news", app=app)
        equal((answer.success_count, answer.failure_count), (1, 1))
        equal(answer.errors[0].index, 1)
        name = messaging.send(messaging.Message(topic="news", data={"n": "1"}), app=app)
        assert name.rsplit("/", 1)[1].isdigit(), name
        found = device.payload()
        equal((found["from"], found["data"]), ("/topics/news", {"n": "1"}))
        device.ack(found)
        messaging.send(messaging.Message(condition="'news' in topics && !('old' in topics)", data={"n": "2"}), app=app)
        found = device.payload()
        equal(found["data"], {"n": "2"})
        device.ack(found)
        equal(messaging.unsubscribe_from_topic(known["token"], "news", app=app).success_count, 1)
        equal(messaging.unsubscribe_from_topic(known["token"], "news", app=app).success_count, 1)
        # The instance id calls that earlier releases made.
        legacy = messaging.subscribe_to_topic_legacy([known["token"], "malformed"], "old", app=app)
        equal((legacy.success_count, [error.reason for error in legacy.errors]), (1, ["INVALID_ARGUMENT"]))
        equal(messaging.unsubscribe_from_topic_legacy(known["token"], "old", app=app).success_count, 1)
        # Nobody is in it.
        messaging.send(messaging.Message(topic="nobody"), app=app)


@case
def admin_tells_every_error(server):
    known = server.register()
    stranger = server.with_project_of_its_own().register()
    gone = server.register()
    server.unregister(gone)
    with App(server) as app:

        def send(**fields):
            return lambda: messaging.send(messaging.Message(**fields), app=app)

        raises(exceptions.InvalidArgumentError, send(token="malformed"), "INVALID_ARGUMENT")
        raises(messaging.UnregisteredError, send(token=gone["token"]), "NOT_FOUND")
        raises(messaging.UnregisteredError, send(token=other_token(known["token"])), "NOT_FOUND")
        raises(messaging.SenderIdMismatchError, send(token=stranger["token"]), "PERMISSION_DENIED")
        raises(exceptions.InvalidArgumentError, send(token=known["token"], data={"from": "x"}))
        raises(exceptions.InvalidArgumentError, send(token=known["token"], data={"a": "x" * 5000}))
        raises(exceptions.InvalidArgumentError, send(condition="'a' in"))
        raises(
            exceptions.InvalidArgumentError,
            send(token=known["token"], android=messaging.AndroidConfig(ttl=2419201)),
        )
        dry = messaging.send(messaging.Message(token=known["token"]), dry_run=True, app=app)
        assert dry.startswith("projects/"), dry
        raises(messaging.UnregisteredError, lambda: messaging.send(messaging.Message(token=gone["token"]), True, app))
    with App(server, project_id="somebody-elses") as app:
        raises(exceptions.PermissionDeniedError, lambda: messaging.send(messaging.Message(topic="a"), app=app))


@case
def admin_tells_the_errors_of_a_server_in_trouble(server):
    known = {
        kind: server.register()
        for kind in (messaging.QuotaExceededError, exceptions.UnavailableError, exceptions.InternalError)
    }
    codes = {
        messaging.QuotaExceededError: ("DEVICE_MESSAGE_RATE_EXCEEDED", "RESOURCE_EXHAUSTED"),
        exceptions.UnavailableError: ("SERVICE_UNAVAILABLE", "UNAVAILABLE"),
        exceptions.InternalError: ("INTERNAL_SERVER_ERROR", "INTERNAL"),
    }

    def arm(device, count=1, **fault):
        status, made = server.administer(
            "POST", "/admin/v1/faults", {"project": server.project, "token": device["token"], "count": count, **fault}
        )
        assert status == 201, made

    with App(server) as app:

        def send(device):
            return messaging.send(messaging.Message(token=device["token"], data={"a": "1"}), app=app)

        # The SDK tries again four times, after what Retry-After says, before it raises: one thread each.
        def fails(kind):
            code, status = codes[kind]
            arm(known[kind], kind="nack", code=code, retry_after="1", count=5)
            error = raises(kind, lambda: send(known[kind]), status)
            equal(error.http_response.headers["Retry-After"], "1")
            # The sixth try is a new send, and gets through.
            assert send(known[kind]).startswith("projects/")

        with concurrent.futures.ThreadPoolExecutor() as threads:
            list(threads.map(fails, known))
        one = known[exceptions.InternalError]
        # After 401 it renews its access token and tries again, twice.
        arm(one, kind="nack", code="INVALID_APNS_CREDENTIAL", count=3)
        raises(messaging.ThirdPartyAuthError, lambda: send(one), "UNAUTHENTICATED")
        with server.device(one) as device:
            # The answer that is hidden belongs to a message that was taken; the next try is another message.
            arm(one, kind="unavailable", status=503, retry_after="1")
            assert send(one).startswith("projects/")
            for _ in range(3):
                found = device.payload()
                equal(found["data"], {"a": "1"})
                device.ack(found)


@case
def admin_is_refused_with_a_key_that_is_not_the_accounts(server):
    from google.auth.exceptions import RefreshError

    with App(server, private_key=account(server)["private_key"]) as app:
        error = raises(RefreshError, lambda: messaging.send(messaging.Message(topic="a"), app=app))
        assert "Invalid JWT Signature" in str(error), error
    with App(server, client_email="nobody@example.org") as app:
        error = raises(RefreshError, lambda: messaging.send(messaging.Message(topic="a"), app=app))
        assert "account not found" in str(error), error


@case
def admin_sends_to_an_installation(server):
    known = server.register()
    with App(server) as app, server.device(known) as device:
        messaging.send(messaging.Message(fid=known["token"].split(":")[0], data={"a": "1"}), app=app)
        found = device.payload()
        equal((found["data"], found["token"]), ({"a": "1"}, known["token"]))
        device.ack(found)
        raises(messaging.UnregisteredError, lambda: messaging.send(messaging.Message(fid="A" * 22), app=app))


# pyfcm 2


@case
def pyfcm_sends_and_tells_errors(server):
    from google.oauth2 import service_account
    from pyfcm import FCMNotification, errors

    known = server.register()
    gone = server.register()
    server.unregister(gone)
    credentials = service_account.Credentials.from_service_account_info(
        account(server), scopes=["https://www.googleapis.com/auth/firebase.messaging"]
    )
    push = FCMNotification(credentials=credentials, project_id=server.project)
    with server.device(known) as device:
        answer = push.notify(
            fcm_token=known["token"], notification_title="T", notification_body="B", data_payload={"a": "1"},
            android_config={"ttl": "60s", "collapse_key": "k"},
        )
        assert answer["name"].startswith(f"projects/{server.project}/messages/"), answer
        found = device.payload()
        equal((found["data"], found["ttl"], found["notification"]), ({"a": "1"}, 60, {"title": "T", "body": "B"}))
        device.ack(found)
    assert push.notify(topic_name="news")["name"]
    assert push.notify(topic_condition="'a' in topics || 'b' in topics")["name"]
    raises(errors.FCMNotRegisteredError, lambda: push.notify(fcm_token=gone["token"], notification_title="T"))
    raises(errors.InvalidDataError, lambda: push.notify(fcm_token="malformed", notification_title="T"))
    stranger = server.with_project_of_its_own().register()
    raises(errors.FCMSenderIdMismatchError, lambda: push.notify(fcm_token=stranger["token"], notification_title="T"))


# async-firebase and aiopyfcm


@case
@asynchronous
async def async_firebase_sends_and_subscribes(server):
    from async_firebase import AsyncFirebaseClient
    from async_firebase.messages import Message, MulticastMessage, Notification

    known = server.register()
    for is_http2 in (False, True):
        async with AsyncFirebaseClient(use_http2=is_http2) as client:
            client.creds_from_service_account_info(account(server))
            answer = await client.send(
                Message(token=known["token"], data={"a": "1"}, notification=Notification(title="T", body="B"))
            )
            assert answer.success, answer.exception
            assert answer.message_id.startswith("projects/"), answer.message_id
            many = await client.send_each_for_multicast(
                MulticastMessage(tokens=[known["token"], other_token(known["token"])], data={"a": "2"})
            )
            equal([one.success for one in many.responses], [True, False])
            equal(type(many.responses[1].exception).__name__, "UnregisteredError")
            joined = await client.subscribe_to_topic([known["token"], "malformed"], "news")
            equal((joined.success_count, joined.failure_count), (1, 1))
            equal((await client.unsubscribe_from_topic([known["token"]], "news")).success_count, 1)
            legacy = await client.subscribe_devices_to_topic([known["token"]], "old")
            equal(legacy.success_count, 1)
            refused = await client.send(Message(token="malformed", data={"a": "1"}))
            equal(type(refused.exception).__name__, "InvalidArgumentError")


# Django


@case
def fcm_django_switches_a_gone_device_off(server):
    known = server.register()
    gone = server.register()
    server.unregister(gone)
    with App(server) as app:
        import django
        from django.conf import settings

        if not settings.configured:
            settings.configure(
                SECRET_KEY="x", USE_TZ=True, DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
                DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
                INSTALLED_APPS=[
                    "django.contrib.contenttypes", "django.contrib.auth", "fcm_django", "push_notifications",
                ],
                FCM_DJANGO_SETTINGS={"DEFAULT_FIREBASE_APP": app}, PUSH_NOTIFICATIONS_SETTINGS={},
            )
            django.setup()
            from django.core.management import call_command

            call_command("migrate", verbosity=0, run_syncdb=True)
        from fcm_django.models import FCMDevice
        from push_notifications.gcm import dict_to_fcm_message, send_message

        for one in (known, gone):
            FCMDevice.objects.create(registration_id=one["token"], type="android")
        with server.device(known) as device:
            answer = FCMDevice.objects.send_message(messaging.Message(data={"a": "1"}), app=app)
            equal(
                [one.success for one in answer.response.responses],
                [one == known["token"] for one in answer.registration_ids_sent],
            )
            equal(answer.deactivated_registration_ids, [gone["token"]])
            equal(FCMDevice.objects.get(registration_id=gone["token"]).active, False)
            equal(FCMDevice.objects.get(registration_id=known["token"]).active, True)
            found = device.payload()
            device.ack(found)
            equal(found["data"], {"a": "1"})

            # django-push-notifications takes the default app.
            default = firebase_admin.initialize_app(app.credential)
            try:
                from push_notifications.models import GCMDevice

                for one in (known, gone):
                    GCMDevice.objects.create(registration_id=one["token"], cloud_message_type="FCM")
                message = dict_to_fcm_message({"message": "B", "title": "T", "badge": 3, "collapse_key": "k", "x": "1"})
                send_message([known["token"], gone["token"]], message)
            finally:
                firebase_admin.delete_app(default)
            found = device.payload()
            device.ack(found)
            equal(found["notification"], {"title": "T", "body": "B", "notification_count": 3})
            equal((found["data"], found["collapse_key"]), ({"x": "1"}, "k"))
            equal(GCMDevice.objects.get(registration_id=gone["token"]).active, False)
            equal(GCMDevice.objects.get(registration_id=known["token"]).active, True)


# Legacy clients


@case
def python_gcm_sends_both_forms(server):
    from gcm import gcm

    known = server.register()
    gone = server.register()
    server.unregister(gone)
    renewed = server.register(previous_token=known["token"])
    client = gcm.GCM(server.server_key)
    answer = client.json_request(
        registration_ids=[known["token"], renewed["token"], gone["token"], "malformed"], data={"a": "1"},
        collapse_key="k", time_to_live=60,
    )
    equal(sorted(answer["success"]), sorted([known["token"], renewed["token"]]))
    equal(dict(answer["errors"]), {"NotRegistered": [gone["token"]], "InvalidRegistration": ["malformed"]})
    equal(dict(answer["canonical"]), {known["token"]: renewed["token"]})
    equal(client.plaintext_request(registration_id=known["token"], data={"a": "1"}), renewed["token"])
    raises(
        gcm.GCMInvalidRegistrationException,
        lambda: client.plaintext_request(registration_id="malformed", data={"a": "1"}),
    )
    raises(
        gcm.GCMNotRegisteredException, lambda: client.plaintext_request(registration_id=gone["token"], data={"a": "1"})
    )
    raises(
        gcm.GCMMessageTooBigException,
        lambda: client.plaintext_request(registration_id=known["token"], data={"a": "x" * 5000}),
    )
    assert client.send_topic_message(topic="news", data={"a": "1"}) is not None
    raises(
        gcm.GCMAuthenticationException, lambda: gcm.GCM("wrong").json_request(registration_ids=[known["token"]])
    )


@case
def gcm_clerk_sends_both_forms(server):
    from gcm_clerk import gcm as clerk

    known = server.register()
    gone = server.register()
    server.unregister(gone)
    renewed = server.register(previous_token=known["token"])
    client = clerk.GCM(server.server_key)
    answer = client.send(clerk.JSONMessage([known["token"], gone["token"], "malformed"], {"a": "1"}, time_to_live=60))
    equal(list(answer.success), [known["token"]])
    equal(dict(answer.canonical), {known["token"]: renewed["token"]})
    equal(list(answer.not_registered), [gone["token"]])
    equal(dict(answer.failed), {"malformed": "InvalidRegistration"})
    plain = client.send(clerk.PlainTextMessage(renewed["token"], {"a": "1"}, collapse_key="k"))
    equal(list(plain.success), [renewed["token"]])
    missing = client.send(clerk.PlainTextMessage(gone["token"], {"a": "1"}))
    equal(list(missing.not_registered), [gone["token"]])
    raises(clerk.GCMAuthenticationError, lambda: clerk.GCM("wrong").send(clerk.JSONMessage([known["token"]], {})))


if __name__ == "__main__":
    wire.main(lambda function, server: function(server.with_project_of_its_own()))
