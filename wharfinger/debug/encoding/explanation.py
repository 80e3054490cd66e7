"""Explanations as JSON, and back (see :mod:`wharfinger.debug.encoding.encoding`).

Shape; empty and unknown fields are left out. ``ready`` is true if nothing blocks the package or its next run::

    explanation: {name, ready, causes: [{subject, state, message?, since?}], remedy?, also?: [...]}

The causes form a chain: each results from the next one, the last is the root cause, and ``remedy`` says what to do about it.
"""

from wharfinger.debug.fields import find_texts, read_flag, read_time, time_text
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find, find_list, find_str, need_str
from wharfinger.runtime.inspector import CauseSnapshot, ExplanationSnapshot


def explanation_to_json(explanation: ExplanationSnapshot) -> JsonObject:
    """Return the explanation of a package's state as JSON."""
    result: JsonObject = {
        "name": explanation.name,
        "ready": explanation.ready,
        "causes": [_cause_to_json(cause) for cause in explanation.causes],
    }
    if explanation.remedy:
        result["remedy"] = explanation.remedy
    if explanation.also:
        result["also"] = list(explanation.also)
    return result


def explanation_from_json(value: JsonValue) -> ExplanationSnapshot:
    """Read `explanation_to_json` back. Raises ShapeError."""
    return ExplanationSnapshot(
        name=need_str(as_object(value, "explanation"), "name"),
        ready=read_flag(value, "ready"),
        causes=tuple(_cause_from_json(as_object(each, "causes")) for each in find_list(value, "causes")),
        remedy=find_str(value, "remedy"),
        also=find_texts(value, "also"),
    )


def _cause_to_json(cause: CauseSnapshot) -> JsonObject:
    result: JsonObject = {"subject": cause.subject, "state": cause.state}
    if cause.message:
        result["message"] = cause.message
    if cause.since is not None:
        result["since"] = time_text(cause.since)
    return result


def _cause_from_json(value: JsonObject) -> CauseSnapshot:
    return CauseSnapshot(
        subject=need_str(value, "subject"),
        state=need_str(value, "state"),
        message=find_str(value, "message"),
        since=None if find(value, "since") is None else read_time(value, "since"),
    )
