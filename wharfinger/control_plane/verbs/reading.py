"""The verbs get and list: one object, or a page of a consistent list at one revision."""

import base64
import binascii
import string
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice
from posixpath import normpath
from typing import Final, cast

import msgspec

from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.catalog.conversions import shown, stored_field
from wharfinger.control_plane.catalog.custom_kinds import custom_of
from wharfinger.control_plane.catalog.custom_versions import shown_custom
from wharfinger.control_plane.catalog.webhook_conversions import gather
from wharfinger.control_plane.storage.interface import CompactedError, Record
from wharfinger.control_plane.verbs.options import ListOptions
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.go_json import syntax_error
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, decode_json, encode_json, find_int, find_str
from wharfinger.kube.selectors import (
    FieldSelector,
    FieldTerm,
    LabelSelector,
    SelectorError,
    parse_field_selector,
    parse_label_selector,
)

ANY_REVISION: Final = -1
"""The number that a continue token contains instead of a revision if the current revision is meant."""
_ENCODED_AS: Final = "meta.k8s.io/v1"
_ALPHABET: Final = frozenset(string.ascii_letters + string.digits + "-_")
_UNPRINTED_FIELDS: Final = {
    ("Job.batch", "status.successful"): ("status.succeeded", "0"),
    ("Node", "spec.unschedulable"): ("spec.unschedulable", "false"),
    ("Pod", "spec.hostNetwork"): ("spec.hostNetwork", "false"),
}
"""Fields that are absent from a stored object if they have their zero value. Each key is the kind and the name of the field in
field selectors. Each value is the path of the field and its zero value.
"""


@dataclass(frozen=True, slots=True)
class Selection:
    """A filter of the objects of a collection, by labels and fields."""

    labels: LabelSelector
    fields: FieldSelector

    @property
    def everything(self) -> bool:
        """Return whether the filter selects every object."""
        return not self.labels.requirements and not self.fields.terms

    def matches(self, obj: JsonObject) -> bool:
        """Return whether an object is selected."""
        return self.labels.matches(obj) and self.fields.matches(obj)

    def takes(self, record: Record) -> bool:
        """Return whether the selectors select a stored object. Decode only the parts of the object that the selectors need."""
        if self.labels.requirements:
            labels = record.labels()
            if not all(term.holds(labels) for term in self.labels.requirements):
                return False
        for term in self.fields.terms:
            known = {"metadata.name": record.key.name, "metadata.namespace": record.key.namespace}.get(term.path)
            if known is None:
                return self.fields.matches(record.decode())
            if (known == term.value) is not term.equal:
                return False
        return True


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list; ``remaining`` is the number of objects after it, or None (on the last page, or with a selector)."""

    served: Served
    records: tuple[Record, ...]
    revision: int
    continue_token: str = ""
    remaining: int | None = None

    @property
    def items(self) -> tuple[JsonObject, ...]:
        """Return the objects in the requested form."""
        return tuple(gather(partial(_presented_record, self.served, record) for record in self.records))

    @property
    def metadata(self) -> JsonObject:
        """Return the metadata of the list itself: its revision, its continue token and the number of remaining items."""
        metadata: JsonObject = {"resourceVersion": str(self.revision)}
        if self.continue_token:
            metadata["continue"] = self.continue_token
        if self.remaining is not None:
            metadata["remainingItemCount"] = self.remaining
        return metadata


def get(backend: Backend, served: Served, namespace: str, name: str, not_before: int | None = None) -> JsonObject:
    """Return one object, at revision ``not_before`` or later. Raises StatusError."""
    if not_before is not None and not_before > backend.storage.revision:
        raise status.too_large_revision(not_before, backend.storage.revision)
    obj = backend.get(served, namespace, name)
    if obj is None:
        raise status.not_found(served.kind, name)
    return presented(served, obj)


def presented(served: Served, obj: JsonObject) -> JsonObject:
    """Return a stored object at the requested version; a custom object gets the defaults of its current schema."""
    return shown(served, obj) if custom_of(served.version) is None else shown_custom(served, obj)


def _presented_record(served: Served, record: Record) -> JsonObject:
    return presented(served, record.decode())


def is_plain(served: Served, record: Record) -> bool:
    """Return whether a client that requests this kind and version gets the stored bytes unchanged."""
    if custom_of(served.version) is None:
        return record.body.startswith(_kind_prefix(served.kind.kind, served.api_version))
    obj = record.decode()
    return presented(served, obj) is obj


@cache
def _kind_prefix(kind: str, api_version: str) -> bytes:
    return b'{"kind":%s,"apiVersion":%s,' % (encode_json(kind), encode_json(api_version))


def raw_list(page: Page, metadata: JsonObject) -> JsonObject:
    """Return a list whose items are the stored bytes if possible; it can only be encoded as JSON."""
    served = page.served
    items = gather(partial(_raw_item, served, record) for record in page.records)
    kind, api_version = served.kind.list_kind, served.api_version
    if served.kind.custom:
        whole = {"apiVersion": api_version, "items": items, "kind": kind, "metadata": {"continue": "", **metadata}}
    else:
        whole = {"kind": kind, "apiVersion": api_version, "metadata": metadata, "items": items}
    return cast("JsonObject", whole)


def _raw_item(served: Served, record: Record) -> msgspec.Raw | JsonObject:
    """Return one item of a list; items of built-in kinds have no apiVersion and kind."""
    plain = is_plain(served, record)
    if served.kind.custom:
        return msgspec.Raw(record.body) if plain else presented(served, record.decode())
    if plain:
        return msgspec.Raw(b"{" + record.body[len(_kind_prefix(served.kind.kind, served.api_version)) :])
    obj = presented(served, record.decode())
    return {name: value for name, value in obj.items() if name not in {"apiVersion", "kind"}}


def check_fields(served: Served, text: str) -> None:
    """Refuse a field selector with a field that selectors do not support. Raises StatusError (400)."""
    try:
        parse_field_selector(text, _supported(served), partial(_refusal, served))
    except SelectorError as error:
        raise status.bad_request(str(error)) from error


def selection(served: Served, options: ListOptions, *, name: str = "") -> Selection:
    """Return the parsed selectors of a request. Raises StatusError (400).

    If the request is for a single object, ``name`` is the name of the object. A field selector of the request must then select
    this name.
    """
    try:
        text = options.field_selector or (f"metadata.name={name}" if name else "")
        fields = parse_field_selector(text, _supported(served), partial(_refusal, served))
        if name and fields.name != name:
            raise status.bad_request("fieldSelector metadata.name doesn't match requested name")
        terms = tuple(_stored_term(served, term) for term in fields.terms)
        return Selection(parse_label_selector(options.label_selector), replace(fields, terms=terms))
    except SelectorError as error:
        raise status.bad_request(str(error)) from error


def _stored_term(served: Served, term: FieldTerm) -> FieldTerm:
    """Return a term of a field selector in a form that can be compared with stored objects."""
    path, absent = _UNPRINTED_FIELDS.get((served.kind.group_kind, term.path), (stored_field(served, term.path), ""))
    return replace(term, path=path, absent=absent)


def _refusal(served: Served, path: str) -> str:
    """Return the message about a field that selectors do not support; its wording differs by kind."""
    kind = served.kind
    if kind.group_kind == "Job.batch":
        return f'field label "{path}" not supported for Job'
    if kind.group_kind == "ResourceSlice.resource.k8s.io":
        return f"field label not supported for {served.api_version}, Kind=ResourceSlice: {path}"
    if served.version.selectable or kind.custom:
        return f"field label not supported: {path}"
    return f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def _supported(served: Served) -> Callable[[str], bool]:
    paths = {"metadata.name", *served.version.selectable}
    if served.kind.namespaced:
        paths.add("metadata.namespace")
    return paths.__contains__


_UNCACHED: Final = frozenset({"Event", "Event.events.k8s.io"})
"""Kinds without a watch cache in kube-apiserver."""


def list_page(backend: Backend, served: Served, namespace: str, options: ListOptions) -> Page:
    """Return a page of a list. Raises StatusError."""
    chosen, storage = selection(served, options), backend.storage
    place, revision = _beginning(backend, namespace, options)
    collection = served.kind.collection
    try:
        found = storage.records(collection, namespace, start=place, at=revision)
        if chosen.fields.name and (namespace or not served.kind.namespaced):
            found = iter([record for record in found if record.key.name == chosen.fields.name])  # one record at most
        matching = found if chosen.everything else filter(chosen.takes, found)
        limit = min(options.limit, sys.maxsize) or None
        if options.revision == 0 and served.kind.group_kind not in _UNCACHED:
            limit = None  # a list at revision 0 comes from the watch cache, which ignores the limit
        records = tuple(islice(matching, limit))
        # The page has a continue token if any later record exists, even one that the selectors do not match.
        more = limit is not None and len(records) == limit and next(found, None) is not None
        if not more:
            return Page(served, records, revision)
        end = f"{records[-1].key.place}\0"
        remaining = storage.count(collection, namespace, start=end, at=revision) if chosen.everything else None
    except CompactedError as error:
        raise _expired(place.removeprefix(_prefix(namespace)) if options.continue_token else "") from error
    return Page(served, records, revision, write_token(revision, end.removeprefix(_prefix(namespace))), remaining)


def _prefix(namespace: str) -> str:
    return f"{namespace}/" if namespace else ""


def _beginning(backend: Backend, namespace: str, options: ListOptions) -> tuple[str, int]:
    """Return the place (``namespace/name``) and the revision at which a list begins. Raises StatusError."""
    revision = backend.storage.revision
    if options.continue_token:
        given, place = read_token(options.continue_token)
        if options.revision:
            raise status.bad_request("specifying resource version is not allowed when using continue")
        return _prefix(namespace) + place, given if given > 0 else revision
    if options.revision is not None:
        if options.revision > revision:
            raise status.too_large_revision(options.revision, revision)
        if options.match == "Exact" or (options.limit and options.revision and not options.match):
            return "", options.revision
    return "", revision


def _expired(place: str) -> status.StatusError:
    if not place:
        return status.expired("The resourceVersion for the provided list is too old.")
    found = status.expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
        "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
        "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
        "deleted between the time the first chunk was returned and now may show up in the list."
    )
    found.continue_token = write_token(ANY_REVISION, place)
    return found


def write_token(revision: int, place: str) -> str:
    """Return the continue token for the page that begins at ``place``; ANY_REVISION means the current revision."""
    document: JsonObject = {"v": "meta.k8s.io/v1", "rv": revision, "start": place}
    return base64.urlsafe_b64encode(encode_json(document)).decode().rstrip("=")


def read_token(token: str) -> tuple[int, str]:
    """Return the revision and place of a continue token. Raises StatusError (400)."""
    bad = next((index for index, char in enumerate(token) if char not in _ALPHABET), len(token) - 1)
    try:
        if bad != len(token) - 1 or token[-1] not in _ALPHABET:
            raise binascii.Error
        data = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise _invalid_token(f"continue key is not valid: illegal base64 data at input byte {bad}") from error
    try:
        document = decode_json(data, max_bytes=4096, what="continue token")
        version, place, revision = find_str(document, "v"), find_str(document, "start"), find_int(document, "rv")
    except FormatError as error:
        raise _invalid_token(f"continue key is not valid: {syntax_error(data) or error}") from error
    if version != _ENCODED_AS:
        raise _invalid_token(f"continue key is not valid: server does not recognize this encoded version {version}")
    if revision == 0:
        raise _invalid_token(
            "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)"
        )
    if not place:
        raise _invalid_token("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")
    if normpath(f"/{place.removeprefix('/')}") != f"/{place.removeprefix('/')}":
        raise _invalid_token(f"continue key is not valid: {place}")
    return revision, place.removeprefix("/")


def _invalid_token(why: str) -> status.StatusError:
    return status.bad_request(f"invalid continue token: {why}")
