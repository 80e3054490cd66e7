"""Functions that compute the cells of server-side tables (``kubectl get``), for columns that many kinds share.

The model is Kubernetes' package ``printers/internalversion``.

A cell never fails: a value of an unexpected type is shown as if it were absent, so that one object cannot break a whole list.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from wharfinger.control_plane.api.common.filling import objects
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.times import age

Cell = Callable[[JsonObject, datetime], JsonValue]
NONE: Final = "<none>"
UNSET: Final = "<unset>"
SHOWN: Final = 3
"""The number of endpoints or ports that are shown; the remaining ones are only counted."""
_MODES: Final = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def pure(show: Callable[[JsonObject], JsonValue]) -> Cell:
    """Return a cell that does not depend on the time."""

    def cell(obj: JsonObject, now: datetime) -> JsonValue:  # noqa: ARG001
        return show(obj)

    return cell


def text(*path: str, default: str = NONE) -> Cell:
    """Return a cell with the string (or number) at a path."""
    return pure(lambda obj: said(obj, *path, default=default))


def said(obj: JsonValue, *path: str, default: str = "") -> str:
    """Return the string or number at a path as text; ``default`` if the value is absent, empty, or of another type."""
    found = find(obj, *path)
    return (
        str(found) if isinstance(found, str | int | float) and not isinstance(found, bool) and found != "" else default
    )


def number(*path: str) -> Cell:
    """Return a cell with the integer at a path, 0 if it is absent."""
    return pure(lambda obj: integer(obj, *path))


def flag(*path: str, default: bool = False) -> Cell:
    """Return a cell with the boolean at a path."""

    def show(obj: JsonObject) -> JsonValue:
        found = find(obj, *path)
        return found if isinstance(found, bool) else default

    return pure(show)


def since(*paths: tuple[str, ...]) -> Cell:
    """Return a cell with the age of the timestamp at a path; of several paths, the first with a timestamp counts."""

    def cell(obj: JsonObject, now: datetime) -> JsonValue:
        found = (find(obj, *path) for path in paths)
        return age(next((item for item in found if isinstance(item, str) and item), ""), now)

    return cell


def count(*paths: str) -> Cell:
    """Return a cell with the total number of entries of the lists or objects at these dotted paths."""

    def show(obj: JsonObject) -> JsonValue:
        return sum(len(found) for path in paths if isinstance(found := find(obj, *path.split(".")), list | dict))

    return pure(show)


def ratio(done: tuple[str, ...], wanted: tuple[str, ...]) -> Cell:
    """Return a cell with the two integers at these paths, such as ``1/3``."""
    return pure(lambda obj: f"{integer(obj, *done)}/{integer(obj, *wanted)}")


def joined(*path: str, default: str = "") -> Cell:
    """Return a cell with the strings of a list, separated by commas."""
    return pure(lambda obj: ",".join(strings(find(obj, *path))) or default)


def integer(obj: JsonValue, *path: str) -> int:
    """Return the integer at a path, 0 if it is absent."""
    found = find(obj, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def strings(value: JsonValue) -> list[str]:
    """Return the strings of a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def condition(obj: JsonValue, type_: str) -> JsonObject | None:
    """Return the condition of this type in ``status``, or None."""
    return next((item for item in objects(obj, "status", "conditions") if item.get("type") == type_), None)


def holds(obj: JsonValue, type_: str) -> bool:
    """Return whether the condition of this type is True."""
    found = condition(obj, type_)
    return found is not None and found.get("status") == "True"


def deleted(obj: JsonValue) -> bool:
    """Return whether the object is being deleted."""
    return find(obj, "metadata", "deletionTimestamp") is not None


def containers(key: str, *path: str) -> Cell:
    """Return a cell that lists the names or images (``key``) of the containers in the pod template at ``path``."""
    return pure(lambda obj: ",".join(said(item, key) for item in objects(obj, *path, "spec", "containers")))


def labels(*path: str) -> Cell:
    """Return a cell with a map of labels in the form of a query: ``a=b,c=d``."""
    return pure(lambda obj: format_labels(find(obj, *path)) or NONE)


def selector(*path: str, default: str = NONE) -> Cell:
    """Return a cell with a label selector in the form of a query."""
    return pure(lambda obj: format_selector(find(obj, *path)) or default)


def format_labels(value: JsonValue) -> str:
    """Return labels as ``a=b,c=d``, sorted by key."""
    return ",".join(f"{key}={value[key]}" for key in sorted(value)) if isinstance(value, dict) else ""


def format_selector(value: JsonValue) -> str:
    """Return a LabelSelector as ``a=b,tier in (x,y),!z``, sorted by key; "" if it selects nothing or everything."""
    terms: list[tuple[str, str]] = []
    matched = find(value, "matchLabels")
    for key, wanted in matched.items() if isinstance(matched, dict) else ():
        terms.append((key, f"{key}={wanted}"))
    for item in objects(value, "matchExpressions"):
        key = said(item, "key")
        among = ",".join(sorted(strings(item.get("values"))))
        shown = {
            "In": f"{key} in ({among})",
            "NotIn": f"{key} notin ({among})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        terms.append((key, shown.get(said(item, "operator"), "<error>")))
    return ",".join(term for _, term in sorted(terms, key=lambda term: term[0]))


def with_more(shown: Iterable[str]) -> str:
    """Return a text with the first few items and the number of the remaining ones, such as ``a,b,c + 2 more...``."""
    everything = list(shown)
    first = ",".join(everything[:SHOWN])
    return f"{first} + {len(everything) - SHOWN} more..." if len(everything) > SHOWN else first


def access_modes(*path: str) -> Cell:
    """Return a cell with access modes such as ``RWO,RWX``: each mode once, in a fixed order."""

    def show(obj: JsonObject) -> JsonValue:
        modes = strings(find(obj, *path))
        return ",".join(short for mode, short in _MODES.items() if mode in modes)

    return pure(show)


def balanced(obj: JsonObject) -> str:
    """Return the addresses of the load balancer in an object's status, sorted and without duplicates."""
    ingress = objects(obj, "status", "loadBalancer", "ingress")
    return ",".join(sorted({said(item, "ip") or said(item, "hostname") for item in ingress} - {""}))
