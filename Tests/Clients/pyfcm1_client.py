"""pyfcm 1, unmodified, against the server: legacy HTTP and the instance id calls with a server key.

Run with the Python of .venv-pyfcm1 and SSL_CERT_FILE naming the development authority.
"""

import loopback  # noqa: F401 first, so that nothing is looked up

import os

import wire
from wire import case, equal

os.environ["REQUESTS_CA_BUNDLE"] = wire.Server().ca
loopback.PORTS[443] = wire.Server().https

from pyfcm import FCMNotification  # noqa: E402
from pyfcm import errors  # noqa: E402


def raises(kind, call):
    try:
        result = call()
    except kind as error:
        return error
    raise AssertionError(f"wanted {kind}, got {result!r}")


@case
def sends_to_one_and_to_many(server):
    known = server.register()
    gone = server.register()
    server.unregister(gone)
    push = FCMNotification(api_key=server.server_key)
    with server.device(known) as device:
        answer = push.notify_single_device(
            registration_id=known["token"], message_title="T", message_body="B", data_message={"n": 7, "b": True},
            time_to_live=60, collapse_key="k", sound="default",
        )
        equal((answer["success"], answer["failure"], answer["canonical_ids"]), (1, 0, 0))
        equal(len(answer["multicast_ids"]), 1)
        assert answer["results"][0]["message_id"].startswith("0:"), answer
        found = device.payload()
        device.ack(found)
        equal(found["data"], {"n": "7", "b": "true"})
        equal(found["notification"], {"title": "T", "body": "B", "sound": "default"})
        equal((found["ttl"], found["collapse_key"], found["priority"]), (60, "k", "high"))
    answer = push.multiple_devices_data_message(
        registration_ids=[known["token"], gone["token"], "malformed"], data_message={"a": "1"}
    )
    equal((answer["success"], answer["failure"]), (1, 2))
    equal([one.get("error") for one in answer["results"]], [None, "NotRegistered", "InvalidRegistration"])


@case
def sends_to_more_than_a_thousand(server):
    known = server.register()
    push = FCMNotification(api_key=server.server_key)
    answer = push.multiple_devices_data_message(
        registration_ids=[known["token"]] * 2 + [f"malformed{n}" for n in range(1200)], data_message={"a": "1"}
    )
    equal((answer["success"], answer["failure"], len(answer["multicast_ids"])), (2, 1200, 2))
    equal([("error" in one) for one in answer["results"]], [False] * 2 + [True] * 1200)


@case
def manages_topics_and_sends_to_them(server):
    known = server.register()
    push = FCMNotification(api_key=server.server_key)
    equal(push.subscribe_registration_ids_to_topic([known["token"]], "news"), True)
    with server.device(known) as device:
        answer = push.notify_topic_subscribers(topic_name="news", message_body="B", condition=None)
        assert isinstance(answer["topic_message_id"], int), answer
        found = device.payload()
        device.ack(found)
        equal((found["from"], found["notification"]), ("/topics/news", {"body": "B"}))
    info = push.get_registration_id_info(known["token"])
    equal((info["application"], info["authorizedEntity"], info["platform"]), ("org.example.app", server.sender, "LINUX"))
    equal(push.clean_registration_ids([known["token"], "malformed"]), [known["token"]])
    equal(push.unsubscribe_registration_ids_from_topic([known["token"]], "news"), True)
    error = raises(
        errors.InvalidDataError, lambda: push.subscribe_registration_ids_to_topic([known["token"]], "no name")
    )
    assert "Topic name format is invalid" in str(error), error


@case
def tells_errors(server):
    known = server.register()
    push = FCMNotification(api_key=server.server_key)
    raises(errors.AuthenticationError, lambda: FCMNotification(api_key="wrong").notify_single_device(known["token"]))
    error = raises(
        errors.InvalidDataError,
        lambda: push.notify_single_device(known["token"], message_body="B", extra_kwargs={"message_id": 5}),
    )
    assert "message_id" in str(error), error
    too_big = push.single_device_data_message(known["token"], data_message={"a": "x" * 5000})
    equal(too_big["results"], [{"error": "MessageTooBig"}])
    reserved = push.single_device_data_message(known["token"], data_message={"from": "x"})
    equal(reserved["results"], [{"error": "InvalidDataKey"}])
    stranger = server.with_project_of_its_own().register()
    equal(push.single_device_data_message(stranger["token"], data_message={})["results"], [{"error": "MismatchSenderId"}])


if __name__ == "__main__":
    wire.main(lambda function, server: function(server.with_project_of_its_own()))
