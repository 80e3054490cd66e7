"""Conversions of custom objects by the webhook that their definition names (``spec.conversion.strategy: Webhook``).

A request is answered in one step without a trio checkpoint, so no webhook can be called during that step. Instead,
:func:`by_webhook` raises ConversionsNeededError before anything is stored. The HTTP handler then makes the calls, and tries
the request again with the results (``CONVERTED``). A result keeps the metadata of the original, except for labels and
annotations.

Source: apiextensions-apiserver, ``pkg/apiserver/conversion/webhook_converter.go``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, TypeVar

from wharfinger.control_plane.kinds.kind import Kind
from wharfinger.control_plane.wire import status
from wharfinger.formats.json.value import JsonObject, as_object, checksum, decode_json, find, find_object, find_str

MAX_CONVERTER: Final = 4 * 1024 * 1024
"""The maximum size of ``spec.conversion.webhook`` as JSON, in bytes."""
_VOLATILE: Final = frozenset({"creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"})
"""The metadata that may differ between two attempts of the same request, and that no conversion can change."""
_FROM_WEBHOOK: Final = ("annotations", "labels")
_KEPT: Final = ("name", "namespace", "uid")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ConversionCall:
    """One object that a webhook has to convert. ``converter`` is the object's ``spec.conversion.webhook`` in its definition, as
    JSON.
    """

    key: str
    converter: str
    api_version: str
    obj: JsonObject

    def client(self) -> JsonObject:
        """Return the ``clientConfig`` of the webhook."""
        read = decode_json(self.converter.encode(), max_bytes=MAX_CONVERTER, what="spec.conversion.webhook")
        return find_object(read, "clientConfig")


class ConversionsNeededError(Exception):
    """The request can be answered only after the objects in ``calls`` have been converted."""

    def __init__(self, calls: Sequence[ConversionCall]) -> None:
        super().__init__(f"{len(calls)} objects have to be converted")
        self.calls = tuple(calls)


_NOTHING: Final[Mapping[str, JsonObject | str]] = {}
CONVERTED: Final[ContextVar[Mapping[str, JsonObject | str]]] = ContextVar("CONVERTED", default=_NOTHING)
"""The results of the conversions for the current request, by the keys of their calls: the converted object, or a string with
the reason why the conversion failed.
"""


def by_webhook(kind: Kind, obj: JsonObject, api_version: str) -> JsonObject:
    """Return an object as its kind's webhook converts it; the object itself if the kind has no webhook.

    Raises ConversionsNeededError, and StatusError (500) if the conversion failed.
    """
    if not kind.converter:
        return obj
    metadata = find_object(obj, "metadata")
    steady: JsonObject = {**obj, "metadata": {name: part for name, part in metadata.items() if name not in _VOLATILE}}
    key = f"{api_version} {checksum([kind.converter, steady])}"
    found = CONVERTED.get().get(key)
    if found is None:
        raise ConversionsNeededError([ConversionCall(key, kind.converter, api_version, obj)])
    if isinstance(found, str):
        what = f"{find_str(obj, 'apiVersion')}, Kind={kind.kind}"
        raise status.internal(f"conversion webhook for {what} failed: {found}")
    changed = {name: part for name in _FROM_WEBHOOK if (part := find(found, "metadata", name)) is not None}
    kept = {name: part for name, part in metadata.items() if name not in _FROM_WEBHOOK}
    return {**found, "metadata": {**kept, **changed}}


def gather(makers: Iterable[Callable[[], Result]]) -> list[Result]:
    """Return the results of all ``makers``.

    If some of them need conversions, raises one ConversionsNeededError with all needed calls, so that all objects are
    converted together.
    """
    found: list[Result] = []
    calls: list[ConversionCall] = []
    for make in makers:
        try:
            found.append(make())
        except ConversionsNeededError as needed:
            calls += needed.calls
    if calls:
        raise ConversionsNeededError(calls)
    return found


def answered(response: JsonObject, uid: str, calls: Sequence[ConversionCall]) -> Sequence[JsonObject] | str:
    """Return the converted objects in the ``response`` of a ConversionReview, in the order of the calls.

    If the response is refused, return the reason as a string.
    """
    if find_str(response, "uid") != uid:
        return f'expected response.uid="{uid}", got "{find_str(response, "uid")[:80]}"'
    if find(response, "result", "status") != "Success":
        return find_str(response, "result", "message") or "the webhook reported no reason"
    items = find(response, "convertedObjects")
    objects = items if isinstance(items, list) else []
    if len(objects) != len(calls):
        return f"webhook returned {len(objects)} objects, expected {len(calls)}"
    for index, (item, call) in enumerate(zip(objects, calls, strict=True)):
        if problem := _problem(item if isinstance(item, dict) else {}, call):
            return f"webhook returned invalid converted object at index {index}: {problem}"
    return [as_object(item, "a converted object") for item in objects]


def _problem(converted: JsonObject, call: ConversionCall) -> str:
    if (version := find_str(converted, "apiVersion")) != call.api_version:
        return f"invalid groupVersion, expected {call.api_version}, got {version[:80]}"
    if find(converted, "kind") != find(call.obj, "kind"):
        return "invalid kind"
    for name in _KEPT:
        if (find(converted, "metadata", name) or "") != (find(call.obj, "metadata", name) or ""):
            return f"invalid metadata, {name} must not change"
    return ""
