"""The shapes a hook's configuration may have (spec hook-protocol §1.4.1-1.4.8), and what is wrong with a document. Pure.

The documents are small and the wording of the complaints is part of the contract, so the schema is a table in this module's own
terms instead of an OpenAPI document. A path has no list indexes in it, and all complaints about a document come out together.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from wharfinger.formats.json_value import JsonObject, JsonValue

MAX_BINDINGS: Final = 256
"""Of one kind in one hook: every one costs a watch or an entry in the clock."""
MAX_NAMES: Final = 100
"""In one ``matchNames``: every one costs a watch."""
_MAX_SHOWN: Final = 60
_INT64: Final = range(-(2**63), 2**63)
_UINT32: Final = range(2**32)


@dataclass(frozen=True, slots=True)
class Text:
    """A string; one of ``choices`` if there are any; not "" if ``filled``."""

    choices: tuple[str, ...] = ()
    filled: bool = False


@dataclass(frozen=True, slots=True)
class Flag:
    """A boolean."""


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer; ``1.0`` is one too."""

    within: range = _INT64


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of ``item``, ``least`` to ``most`` of them."""

    item: "Shape"
    least: int = 0
    most: int = 10_000


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping with any keys."""

    item: "Shape"


@dataclass(frozen=True, slots=True)
class Record:
    """A mapping with these keys; others are forbidden unless it is ``free``."""

    fields: "Mapping[str, Shape]"
    required: tuple[str, ...] = ()
    least: int = 0
    free: bool = False


@dataclass(frozen=True, slots=True)
class Unserved:
    """Something the contract knows and this daemon does not do; ``why`` says what to do about it."""

    why: str


Shape: TypeAlias = Text | Flag | Whole | ListOf | MapOf | Record | Unserved

_FILLED: Final = Text(filled=True)
_TEXTS: Final = ListOf(Text())
_SNAPSHOTS: Final = ListOf(Text(), least=1)
_NAMES: Final = Record({"matchNames": ListOf(Text(), most=MAX_NAMES)}, required=("matchNames",))
_LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_LABELS: Final = Record(
    {
        "matchLabels": MapOf(Text()),
        "matchExpressions": ListOf(
            Record({"key": Text(), "operator": Text(_LABEL_OPERATORS), "values": _TEXTS}, required=("key", "operator"))
        ),
    },
    least=1,
)
_FIELDS: Final = Record(
    {
        "matchExpressions": ListOf(
            Record(
                {"field": Text(), "operator": Text(("=", "==", "Equals", "!=", "NotEquals")), "value": Text()},
                required=("field", "operator", "value"),
            )
        )
    },
    required=("matchExpressions",),
)
_VERBS: Final = ListOf(Text(("Added", "Modified", "Deleted")))
_SCHEDULE: Final = Record(
    {
        "name": Text(),
        "crontab": _FILLED,
        "allowFailure": Flag(),
        "includeSnapshotsFrom": _SNAPSHOTS,
        "queue": Text(),
        "group": Text(),
    },
    required=("crontab",),
)
_KUBERNETES: Final = Record(
    {
        "name": Text(),
        "apiVersion": Text(),
        "kind": _FILLED,
        "executeHookOnEvent": _VERBS,
        "watchEvent": _VERBS,
        "executeHookOnSynchronization": Flag(),
        "waitForSynchronization": Flag(),
        "keepFullObjectsInMemory": Flag(),
        "jqFilter": Text(),
        "allowFailure": Flag(),
        "queue": Text(),
        "group": Text(),
        "includeSnapshotsFrom": _SNAPSHOTS,
        "nameSelector": _NAMES,
        "labelSelector": _LABELS,
        "fieldSelector": _FIELDS,
        "namespace": Record({"nameSelector": _NAMES, "labelSelector": _LABELS}, least=1),
        "resynchronizationPeriod": Text(),
    },
    required=("kind",),
)
_HELM_BINDINGS: "Final[Mapping[str, Shape]]" = {
    "beforeHelm": Whole(_UINT32),
    "afterHelm": Whole(_UINT32),
    "beforeDeleteHelm": Whole(_UINT32),
    "afterDeleteHelm": Whole(_UINT32),
}
_WEBHOOK: Final = Unserved("is not served here yet: admission and conversion hooks need a webhook server; leave it out")
_GLOBAL: Final = Unserved("is not served here yet: it is a binding of global hooks, and this is a hook of a package")
_UNSERVED: "Final[Mapping[str, Shape]]" = {
    "kubernetesValidating": _WEBHOOK,
    "kubernetesMutating": _WEBHOOK,
    "kubernetesCustomResourceConversion": _WEBHOOK,
    "beforeAll": _GLOBAL,
    "afterAll": _GLOBAL,
}
_SETTINGS: Final = Record(
    {"executionMinInterval": Text(), "executionBurst": Whole(_UINT32)},
    required=("executionMinInterval", "executionBurst"),
)

VERSION_1: Final = Record(
    {
        "configVersion": Text(("v1",)),
        "onStartup": Whole(),
        "schedule": ListOf(_SCHEDULE, least=1, most=MAX_BINDINGS),
        "kubernetes": ListOf(_KUBERNETES, least=1, most=MAX_BINDINGS),
        "settings": _SETTINGS,
        **_HELM_BINDINGS,
        **_UNSERVED,
    },
    required=("configVersion",),
)

_SCHEDULE_0: Final = Record(
    {"name": Text(), "crontab": _FILLED, "allowFailure": Flag()}, required=("crontab",), free=True
)
_LABELS_0: Final = Record(_LABELS.fields, free=True)
_KUBERNETES_0: Final = Record(
    {
        "name": Text(),
        "event": ListOf(Text(("add", "update", "delete"))),
        "kind": _FILLED,
        "selector": _LABELS_0,
        "objectName": Text(),
        "namespaceSelector": Record({"matchNames": ListOf(Text(), most=MAX_NAMES), "any": Flag()}, free=True),
        "jqFilter": Text(),
        "allowFailure": Flag(),
    },
    required=("kind",),
    free=True,
)
VERSION_0: Final = Record(
    {
        "onStartup": Whole(),
        "schedule": ListOf(_SCHEDULE_0, most=MAX_BINDINGS),
        "onKubernetesEvent": ListOf(_KUBERNETES_0, most=MAX_BINDINGS),
        **_HELM_BINDINGS,
        "beforeAll": _GLOBAL,
        "afterAll": _GLOBAL,
    },
    least=1,
)


def problems(value: JsonValue, shape: Shape, path: str = "") -> Iterator[str]:
    """What keeps ``value`` from having ``shape``, each with its dotted path; nothing if it has it."""
    match shape:
        case Text():
            yield from _text_problems(value, shape, path)
        case Flag():
            if not isinstance(value, bool):
                yield _mistyped(value, "boolean", path)
        case Whole(within=within):
            yield from _whole_problems(value, within, path)
        case ListOf():
            yield from _list_problems(value, shape, path)
        case MapOf(item=item):
            if not isinstance(value, dict):
                yield _mistyped(value, "object", path)
                return
            for key, inner in value.items():
                yield from problems(inner, item, _joined(path, key))
        case Record():
            if not isinstance(value, dict):
                yield _mistyped(value, "object", path)
                return
            yield from _record_problems(value, shape, path)
        case Unserved(why=why):
            yield f"{path} {why}"
        case _:
            assert_never(shape)


def _text_problems(value: JsonValue, shape: Text, path: str) -> Iterator[str]:
    if not isinstance(value, str):
        yield _mistyped(value, "string", path)
    elif shape.filled and not value:
        yield f"{path} is required"
    elif shape.choices and value not in shape.choices:
        yield f"{path} should be one of [{' '.join(shape.choices)}]"


def _whole_problems(value: JsonValue, within: range, path: str) -> Iterator[str]:
    if whole(value) is None:
        yield _mistyped(value, "integer", path)
    elif whole(value) not in within:
        yield f"{path} should be from {within.start} to {within.stop - 1}"


def _list_problems(value: JsonValue, shape: ListOf, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield _mistyped(value, "array", path)
    elif len(value) < shape.least:
        yield f"{path} should have at least {shape.least} items"
    elif len(value) > shape.most:
        yield f"{path} should have at most {shape.most} items, has {len(value)}"
    else:
        for item in value:
            yield from problems(item, shape.item, path)


def _record_problems(value: JsonObject, shape: Record, path: str) -> Iterator[str]:
    for key, inner in value.items():
        known = shape.fields.get(key)
        if known is not None:
            yield from problems(inner, known, _joined(path, key))
        elif not shape.free:
            yield f"{_joined(path, key)} is a forbidden property"
    yield from (f"{_joined(path, key)} is required" for key in shape.required if key not in value)
    if len(value) < shape.least:
        yield f"{path or 'it'} should have at least {shape.least} properties"


def whole(value: JsonValue) -> int | None:
    """The integer that a number is; None for anything else."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _mistyped(value: JsonValue, wanted: str, path: str) -> str:
    return f'{path or "it"} must be of type {wanted}: "{_type(value)}"'


def _type(value: JsonValue) -> str:
    """The type in the words of OpenAPI; of a number no finer than that."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            assert_never(value)


def _joined(path: str, key: str) -> str:
    shown = key if len(key) <= _MAX_SHOWN else key[:_MAX_SHOWN] + "…"
    return f"{path}.{shown}" if path else shown
