"""What schemathesis needs to know about this server besides its OpenAPI description."""

import re

import schemathesis
from hypothesis import strategies as st
from schemathesis.specs.openapi import checks

# A client that sends many invalid keys gets 429, which is a rejection, too.
checks.AUTH_REJECTION_STATUSES = frozenset(checks.AUTH_REJECTION_STATUSES) | {429}

# Custom formats of the schemas: some valid values, and some random text.
CRONS = ["* * * * *", "0 9 * * MON-FRI", "*/5 * * * * *", "30 2 29 2 *", "@hourly", "@yearly", "0 0 L * *"]
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Etc/GMT+12", "Asia/Kathmandu"]
schemathesis.openapi.format("cron", st.sampled_from(CRONS) | st.text(min_size=1, max_size=30))
schemathesis.openapi.format("time-zone", st.sampled_from(ZONES) | st.from_regex("[A-Za-z0-9_+/-]{1,30}", fullmatch=True))

# Rules that a schema cannot express, by the field that is refused. Anything else that a schema allows must be accepted.
BEYOND_SCHEMAS = {
    "Idempotency-Key": "equals the one in the body, if both are given",
    "cursor": "was returned by the server",
    "filter": "is required for some actions: null does not count",
    "retry.maxSeconds": "is at least baseSeconds",
    "dependsOn": "names existing jobs",
    "ref": "is unique in a batch",
    "name": "equals the one in the path",
    "cron": "is an expression that matches some time",
    "timezone": "is a known zone",
    "everySeconds": "has at most six decimals",
    "jitterSeconds": "is at most everySeconds",
    "runAt": "is within the years of its pattern in UTC, too",
    "expiresAt": "the same; that of a key is in the future",
    "expiresInSeconds": "excludes expiresAt",
    "tenant": "is not allowed for the role worker",
    "startAt": "the same",
    "endAt": "the same, and is after startAt",
    "from": "the same",
    "to": "is after from, and not in the future",
}
PREFIX_OR_INDEX = re.compile(r"^(jobs\[\d+\]|job)\.|\[\d+\]$")


@schemathesis.hook
def before_call(context, case, kwargs):
    """Shortens valid waits; invalid ones are sent unchanged."""
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
    """A request that its schema allows is refused only for a rule that a schema cannot express.

    More precise than `positive_data_acceptance`, which checks the status only.
    """
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code != 422:
        return
    problem = response.json()
    if problem["code"] == "idempotency_key_reused":
        return
    bad = {error["field"]: error["message"] for error in problem["errors"]}
    unexpected = {field: message for field, message in bad.items() if PREFIX_OR_INDEX.sub("", field) not in BEYOND_SCHEMAS}
    assert not unexpected, f"allowed by the schema but refused: {unexpected}"
