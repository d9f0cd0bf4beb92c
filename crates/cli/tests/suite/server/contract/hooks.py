"""What schemathesis has to be told about this server beside its description."""

import re

import schemathesis
from hypothesis import strategies as st
from schemathesis.specs.openapi import checks

# Whoever shows many keys that are none is told to wait, which lets nobody in either.
checks.AUTH_REJECTION_STATUSES = frozenset(checks.AUTH_REJECTION_STATUSES) | {429}

# Formats of which a schema says only the name: some that are right, and some that are not.
CRONS = ["* * * * *", "0 9 * * MON-FRI", "*/5 * * * * *", "30 2 29 2 *", "@hourly", "@yearly", "0 0 L * *"]
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Etc/GMT+12", "Asia/Kathmandu"]
schemathesis.openapi.format("cron", st.sampled_from(CRONS) | st.text(min_size=1, max_size=30))
schemathesis.openapi.format("time-zone", st.sampled_from(ZONES) | st.from_regex("[A-Za-z0-9_+/-]{1,30}", fullmatch=True))

# Rules that no schema can say, by the fields that are refused for them. Anything else that a schema allows must be taken.
BEYOND_SCHEMAS = {
    "Idempotency-Key": "is that of the body, if both are there",
    "cursor": "is one that was answered",
    "filter": "says something, where it must: null says nothing",
    "retry.maxSeconds": "is no less than baseSeconds",
    "dependsOn": "names jobs that there are",
    "ref": "is there once in a batch",
    "name": "is the one in the path",
    "cron": "is an expression that comes true",
    "timezone": "is a zone that there is",
    "everySeconds": "has no more than six decimals",
    "jitterSeconds": "is no more than everySeconds",
    "runAt": "lies in the years that its pattern says by UTC, too",
    "expiresAt": "the same, and a key's lies ahead of now",
    "expiresInSeconds": "is not there beside expiresAt",
    "tenant": "is not there for a worker's key",
    "startAt": "the same",
    "endAt": "the same, and comes after startAt",
    "from": "the same",
    "to": "comes after from, and not ahead of now",
}
PLACE = re.compile(r"^(jobs\[\d+\]|job)\.|\[\d+\]$")


@schemathesis.hook
def before_call(context, case, kwargs):
    """Nobody waits for long: a wait that is allowed is cut, one that is not is sent as it is."""
    for part, numbers in ((case.body, (int, float)), (case.query, (int, float, str))):
        if isinstance(part, dict) and type(part.get("waitSeconds")) in numbers and is_wait(part["waitSeconds"]):
            part["waitSeconds"] = 0.01


def is_wait(value):
    try:
        return 0 < float(value) <= 60
    except ValueError:
        return False


@schemathesis.check
def refused_beyond_schemas_only(ctx, response, case):
    """What a schema allows is refused for a rule that no schema can say, or not at all.

    A closer look than `positive_data_acceptance` can take, which knows the status only.
    """
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code != 422:
        return
    problem = response.json()
    if problem["code"] == "idempotency_key_reused":
        return
    bad = {error["field"]: error["message"] for error in problem["errors"]}
    unforeseen = {field: message for field, message in bad.items() if PLACE.sub("", field) not in BEYOND_SCHEMAS}
    assert not unforeseen, f"The schema allows it, and it is refused: {unforeseen}"
