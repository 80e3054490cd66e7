"""Get and list: one object, or a page of a consistent list at one revision."""

import base64
import binascii
import string
from collections.abc import Callable
from dataclasses import dataclass

from wharfinger.cluster.control_plane import status
from wharfinger.cluster.control_plane.backend import Backend
from wharfinger.cluster.control_plane.catalog import Served
from wharfinger.cluster.control_plane.options import ListOptions
from wharfinger.cluster.control_plane.selectors import (
    FieldSelector,
    LabelSelector,
    SelectorError,
    parse_field_selector,
    parse_label_selector,
)
from wharfinger.cluster.control_plane.storage import CompactedError
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonError, JsonObject, decode_json, encode_json, find, find_int, find_str

_ALPHABET = frozenset(string.ascii_letters + string.digits + "-_")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a collection are meant."""

    labels: LabelSelector
    fields: FieldSelector

    @property
    def everything(self) -> bool:
        """Whether it leaves nothing out."""
        return not self.labels.requirements and not self.fields.terms

    def matches(self, obj: JsonObject) -> bool:
        """Whether an object is meant."""
        return self.labels.matches(obj) and self.fields.matches(obj)


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list; ``remaining`` is None where it is not known (the last page, or with a selector)."""

    items: tuple[JsonObject, ...]
    revision: int
    continue_token: str = ""
    remaining: int | None = None


def get(backend: Backend, served: Served, namespace: str, name: str) -> JsonObject:
    """One object. Raises StatusError."""
    obj = backend.get(served, namespace, name)
    if obj is None:
        raise status.not_found(served.kind, name)
    return presented(served, obj)


def presented(served: Served, obj: JsonObject) -> JsonObject:
    """A stored object at the version it was asked for at, with defaults that are newer than it."""
    obj = obj if obj.get("apiVersion") == served.api_version else {**obj, "apiVersion": served.api_version}
    return obj if served.version.custom is None else served.version.custom.completed(obj)


def selection(served: Served, options: ListOptions, *, name: str = "") -> Selection:
    """The selectors of a request, read; ``name`` adds one object's name. Raises StatusError (400)."""
    supported = _supported(served)
    text = ",".join(part for part in (options.field_selector, f"metadata.name={name}" if name else "") if part)
    try:
        return Selection(parse_label_selector(options.label_selector), parse_field_selector(text, supported))
    except SelectorError as error:
        raise status.bad_request(str(error)) from error


def _supported(served: Served) -> Callable[[str], bool]:
    paths = {"metadata.name", *served.version.selectable}
    if served.kind.namespaced:
        paths.add("metadata.namespace")
    return paths.__contains__


def list_page(backend: Backend, served: Served, namespace: str, options: ListOptions) -> Page:
    """A page of a list. Raises StatusError."""
    chosen = selection(served, options)
    start, revision = "", backend.storage.revision
    if options.continue_token:
        if options.revision:
            raise status.bad_request("specifying resource version is not allowed when using continue")
        revision, start = read_token(options.continue_token)
    elif options.revision is not None:
        if options.revision > revision:
            raise status.too_large_revision(options.revision, revision)
        if options.match == "Exact":
            revision = options.revision
    try:
        found = backend.storage.list(served.kind.collection, namespace, at=revision)
    except CompactedError as error:
        raise _expired(error, paging=bool(options.continue_token)) from error
    matching = [obj for obj in found if _place(obj) > start and (chosen.everything or chosen.matches(obj))]
    items = tuple(presented(served, obj) for obj in (matching[: options.limit] if options.limit else matching))
    if len(items) == len(matching):
        return Page(items, revision)
    remaining = len(matching) - len(items) if chosen.everything else None
    return Page(items, revision, write_token(revision, _place(items[-1])), remaining)


def _place(obj: JsonObject) -> str:
    return f"{find_str(obj, 'metadata', 'namespace')}/{find_str(obj, 'metadata', 'name')}"


def _expired(error: CompactedError, *, paging: bool) -> status.StatusError:
    if paging:
        return status.expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list "
            "without the continue parameter."
        )
    return status.expired(f"The resourceVersion for the provided list is too old: {error.asked}")


def write_token(revision: int, place: str) -> str:
    """The continue token of a page that ended at ``place``."""
    document: JsonObject = {"v": "meta.k8s.io/v1", "rv": revision, "start": place}
    return base64.urlsafe_b64encode(encode_json(document)).decode().rstrip("=")


def read_token(token: str) -> tuple[int, str]:
    """The revision and place of a continue token. Raises StatusError (400)."""
    bad = next((index for index, char in enumerate(token) if char not in _ALPHABET), len(token) - 1)
    try:
        if bad != len(token) - 1 or token[-1] not in _ALPHABET:
            raise binascii.Error
        data = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise status.bad_request(
            f"invalid continue token: continue key is not valid: illegal base64 data at input byte {bad}"
        ) from error
    try:
        document = decode_json(data, max_bytes=4096, what="continue token")
        place, revision = find_str(document, "start"), find_int(document, "rv")
        if find(document, "v") != "meta.k8s.io/v1" or revision < 1 or "/" not in place:
            raise JsonError("the token's version, revision or key is missing")
    except (FormatError, ValueError) as error:
        raise status.bad_request(f"invalid continue token: continue key is not valid: {error}") from error
    return revision, place
