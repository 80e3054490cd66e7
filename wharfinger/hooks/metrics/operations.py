"""The metric operations that a hook wrote to METRICS_PATH (spec hook-protocol §3.2). Pure.

Documents come from :func:`~wharfinger.hooks.running.results.read_metrics`, which limits their size. Each document becomes a
:data:`MetricOperation`. All operations are read before any is applied: a wrong operation fails the run, and then none is
applied.

As in the contract, unknown keys are ignored, and ``null`` means missing. ``"add": N`` and ``"set": N`` are short for an action
with its value, and override an ``action`` beside them. ``name`` and ``value`` are required for all actions except ``expire``,
and ``buckets`` is required for ``observe``. An unknown action does not fail the run: it becomes an :class:`Unknown`, which is
reported as a warning. The names of metrics and labels are not checked here: the store refuses invalid names with a warning,
because an invalid name, like an unknown action, must not fail the run.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find_list, find_object, find_str, type_name
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.results import METRICS

MAX_BUCKETS: Final = 100
MAX_SHOWN: Final = 60
ACTIONS: Final = ("add", "set", "observe", "expire")


@dataclass(frozen=True, slots=True)
class Add:
    """An operation that increases a counter by ``value``."""

    group: str
    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Set:
    """An operation that sets a gauge to ``value``."""

    group: str
    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Observe:
    """An operation that adds a value to a histogram; ``buckets`` are the upper bounds of its buckets, in rising order."""

    group: str
    name: str
    labels: Mapping[str, str]
    value: float
    buckets: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Expire:
    """An operation that removes all metrics of its group."""

    group: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """A metric operation that is dropped with a warning; ``why`` is the reason."""

    why: str


Publication: TypeAlias = Add | Set | Observe
MetricOperation: TypeAlias = Publication | Expire | Unknown
"""An operation of a hook. If its ``group`` is empty, it belongs to the group named after the hook."""


def read_metric_operations(documents: Iterable[JsonValue], *, hook: str) -> tuple[MetricOperation, ...]:
    """Read the operations in ``documents``, in order. Raises HookError for the first wrong document; in that case, no operation
    may be applied.
    """
    operations: list[MetricOperation] = []
    for number, document in enumerate(documents, 1):
        try:
            operations.append(_operation(as_object(document, "the operation"), number))
        except FormatError as error:
            why = f"got bad metrics: document {number}{_named(document)}: {error}"
            raise HookError(hook, why, file=METRICS) from error
    return tuple(operations)


def _operation(document: JsonObject, number: int) -> MetricOperation:
    action, value = _action(document)
    group, name, labels = find_str(document, "group"), find_str(document, "name"), _labels(document)
    buckets = _buckets(document)
    if action not in ACTIONS:
        told = f"unknown action {action[:MAX_SHOWN]!r}" if action else "no action"
        return Unknown(f"document {number}{_named(document)}: {told}; expected one of {', '.join(ACTIONS)}")
    if action == "expire":
        return Expire(group)
    if not name:
        raise FormatError(f"name: required for {action}")
    if value is None:
        raise FormatError(f"value: required for {action}")
    if action == "add":
        return Add(group, name, labels, value)
    if action == "set":
        return Set(group, name, labels, value)
    if not buckets:
        raise FormatError("buckets: at least one is required for observe")
    return Observe(group, name, labels, value, buckets)


def _action(document: JsonObject) -> tuple[str, float | None]:
    """Return the action of a metric operation and its value (None if the document has no value)."""
    action, value = find_str(document, "action"), _number(document.get("value"), "value")
    short = {key: _number(document.get(key), key) for key in ("add", "set")}
    given = [(key, number) for key, number in short.items() if number is not None]
    if len(given) > 1:
        raise FormatError("'add' and 'set' exclude each other")
    return given[0] if given else (action, value)


def _labels(document: JsonObject) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in find_object(document, "labels").items():
        if not isinstance(value, str | None):
            raise FormatError(f"labels.{key[:MAX_SHOWN]}: expected a string, found {type_name(value)}")
        found[key] = value or ""
    return found


def _buckets(document: JsonObject) -> tuple[float, ...]:
    listed = find_list(document, "buckets")
    if len(listed) > MAX_BUCKETS:
        raise FormatError(f"buckets: {len(listed)} is over the limit of {MAX_BUCKETS}")
    numbers = [_number(each, f"buckets[{index}]") for index, each in enumerate(listed)]
    if None in numbers:
        raise FormatError(f"buckets[{numbers.index(None)}]: expected a number, found null")
    return tuple(sorted({number for number in numbers if number is not None}))


def _number(value: JsonValue, what: str) -> float | None:
    """Return a finite number; None if the value is missing."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FormatError(f"{what}: expected a number, found {type_name(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise FormatError(f"{what}: the number is out of range")
    return number


def _named(document: JsonValue) -> str:
    """Return a text that identifies the document by its name, such as `` ('queue_length')``. Its labels are not shown, because
    hooks may write secrets into them.
    """
    name = document.get("name") if isinstance(document, dict) else None
    return f" ({name[:MAX_SHOWN]!r})" if isinstance(name, str) and name else ""
