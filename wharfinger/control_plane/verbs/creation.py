"""The verb create: from a client's object to a stored one.

The steps have kube-apiserver's order, because clients can observe the order. The field manager of the request owns the fields
that the client wrote and the fields that got a default, but not the fields that the server adds afterwards. A missing namespace
is reported before an invalid object, and an invalid object before a name that is already in use.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Final

from wharfinger.control_plane.access.request_authorization import authorize_creation
from wharfinger.control_plane.admission.chain import charge, check, mutated
from wharfinger.control_plane.api.by_kind.defaults import apply_defaults, defaults_after
from wharfinger.control_plane.api.by_kind.strategies import strategy_of
from wharfinger.control_plane.api.by_kind.validation import validate, warnings_of
from wharfinger.control_plane.api.common.admission import Admission, Operation
from wharfinger.control_plane.backend import SUFFIX_LENGTH, Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.catalog.conversions import check_annotations, settled, to_stored, with_known_entries
from wharfinger.control_plane.catalog.custom_kinds import custom_of
from wharfinger.control_plane.catalog.custom_versions import converted_custom, shown_custom, stored_custom
from wharfinger.control_plane.kinds.kind import Generation
from wharfinger.control_plane.merging.managed_fields import record_update
from wharfinger.control_plane.objects.object_metadata import with_metadata, without_status
from wharfinger.control_plane.storage.interface import Collection, Key
from wharfinger.control_plane.verbs.duplicate_owners import without_repeated_owners
from wharfinger.control_plane.verbs.empty_values_in_errors import as_sent
from wharfinger.control_plane.verbs.intake import Written, accepted, check_namespace
from wharfinger.control_plane.verbs.null_lists import with_null_lists
from wharfinger.control_plane.verbs.options import FieldValidation, WriteOptions
from wharfinger.control_plane.verbs.preparation import SERVER_OWNED, keeps_status, prepared
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.bodies import Body
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, find, find_str
from wharfinger.kube.times import format_time

_VERSION_DIGITS: Final = 20
_NEW: Final = ("uid", "creationTimestamp")
_UNSTORED: Final = ("resourceVersion", "selfLink")
"""Members of metadata that are removed before a new object is stored. They are still in the answer to a dry run."""
NAMESPACES = Collection("", "namespaces")
UNOWNED: Final = {"CertificateSigningRequest.certificates.k8s.io": ("spec", "status")}
"""The fields that updates of the main resource cannot change, for each kind that has such fields. No manager owns them after
such an update or a create.
"""


def create(
    backend: Backend, served: Served, namespace: str, body: "JsonValue | Body", options: WriteOptions
) -> Written:
    """Handle a POST: return the object as stored (or, in a dry run, as it would be stored). Raises StatusError."""
    asked = accepted(served, body, options.validation)
    options.warnings.extend(asked.warnings)
    obj = check_namespace(served, asked.obj, namespace)
    prefix = find_str(obj, "metadata", "generateName")
    if prefix and not find_str(obj, "metadata", "name"):
        obj = with_metadata(obj, {"name": backend.generate_name(prefix)})
    obj = without_repeated_owners(obj, options.warnings, admitted=False)
    created = create_object(backend, served, obj, options, applied=False, posted=True)
    return Written(created, created=True, warnings=asked.warnings)


def create_object(
    backend: Backend,
    served: Served,
    obj: JsonObject,
    options: WriteOptions,
    *,
    applied: bool,
    posted: bool = False,
) -> JsonObject:
    """Store a new object that has its name and namespace, and return it. Raises StatusError.

    An ``applied`` object already contains its managed fields. A ``posted`` object with a resourceVersion is refused after
    validation and admission, except in a dry run. An object that is not ``posted`` comes from a PUT or an apply to an object
    that does not exist. In this case, more of the metadata in the request is kept, and this function checks that the user may
    create the object.
    """
    obj = with_metadata(obj, dict.fromkeys(SERVER_OWNED if posted else _NEW))
    if (served.version.status or served.kind.initial_status is not None) and not keeps_status(served.kind):
        obj = without_status(obj)
    sent, now = obj, backend.now()
    obj = settled(served, with_defaults(served, obj, now))
    kept = {"status": obj["status"]} if keeps_status(served.kind) and "status" in obj else {}
    obj = without_status(obj) if kept else obj
    if not applied:
        hidden = {name: obj[name] for name in UNOWNED.get(served.kind.group_kind, ()) if name in obj}
        seen = {name: value for name, value in obj.items() if name not in hidden} if hidden else obj
        seen = record_update(None, seen, manager=options.manager, subresource="", now=now, lists=served.version.lists)
        seen = with_known_entries(served, seen)
        obj = {**seen, **hidden} if hidden else seen
    obj = with_stored_defaults(served, obj)
    obj = {**obj, **kept} if kept else obj
    namespace = find_str(obj, "metadata", "namespace")
    if served.kind.namespaced:
        check_namespace_open(backend, served, namespace, _name_in_errors(obj))
    try:
        asked = _admission(backend, served, obj, options, by_prefix=True)
        obj = mutated(asked, obj, partial(completed, served, now))
        obj = without_repeated_owners(obj, options.warnings, admitted=True)
        obj = with_metadata(obj, {"uid": backend.new_uid(), "creationTimestamp": format_time(now)})
        obj = prepared(served.kind, obj)
        strategy, view = strategy_of(served.kind), backend.view(dry_run=options.dry_run)
        obj = strategy.create(obj, view)
    except ShapeError as error:
        raise status.bad_request(f"{served.kind.kind}: {error}") from error
    obj = _with_generation(served, obj)
    name = find_str(obj, "metadata", "name")
    placed = strategy.create_errors(obj, view)
    errors = placed + validate(served.kind, obj)
    if errors := errors + schema_errors(served, obj, found=errors):
        if custom_of(served.version) is None:
            errors = as_sent(
                errors, obj, sent, lambda whole: placed + validate(served.kind, whole), served.version.lists
            )
        raise status.invalid_object(served.kind, name, errors)
    options.warnings.extend(warnings_of(served.kind, obj, None))
    if not posted:
        authorize_creation(backend, options.user, served.kind, served.version.name, namespace, name)
    admission = _admission(backend, served, obj, options)
    check(admission)
    if not options.dry_run:
        if posted and _is_version(find_str(obj, "metadata", "resourceVersion")):
            raise status.internal("resourceVersion should not be set on objects to be created")
        obj = with_metadata(obj, dict.fromkeys(_UNSTORED))
    if (there := backend.get(served, namespace, name)) is not None:
        raise _name_in_use(served, obj, there)
    check_definition_open(backend, served, name)
    if options.dry_run:
        return stored_form(served, obj)
    stored = stored_form(served, obj)
    check_converted(served, stored)
    charge(admission, backend)
    return store(backend, served, backend.key(served, namespace, name), stored)


def _with_generation(served: Served, obj: JsonObject) -> JsonObject:
    counted = served.kind.generation not in {Generation.NONE, Generation.LATER}
    return with_metadata(obj, {"generation": 1}) if counted else obj


def _name_in_use(served: Served, obj: JsonObject, there: JsonObject) -> status.StatusError:
    """Return the error (409) for a name that is already in use; the message differs for a generated name."""
    name = find_str(obj, "metadata", "name")
    if find_str(obj, "metadata", "generateName"):
        return status.not_generated(served.kind, name)
    return status.already_exists(served.kind, name, leaving=find(there, "metadata", "deletionTimestamp") is not None)


def _name_in_errors(obj: JsonObject) -> str:
    """Return the name of a new object in error messages: its prefix if its name is generated."""
    name, prefix = find_str(obj, "metadata", "name"), find_str(obj, "metadata", "generateName")
    return prefix if _is_generated(name, prefix) else name or "Unknown"


def _is_generated(name: str, prefix: str) -> bool:
    return bool(prefix) and name.startswith(prefix) and len(name) == len(prefix) + SUFFIX_LENGTH


def _is_version(text: str) -> bool:
    """Return whether a text has the form of a resourceVersion of a stored object."""
    return text.isascii() and text.isdigit() and len(text) <= _VERSION_DIGITS and int(text) > 0


def _admission(
    backend: Backend, served: Served, obj: JsonObject, options: WriteOptions, *, by_prefix: bool = False
) -> Admission:
    """Return the Admission of a create request: the description of the write that the admission plugins get.

    With ``by_prefix``, error messages show the prefix (``generateName``) instead of a name that was generated from it.
    """
    namespace, name = find_str(obj, "metadata", "namespace"), find_str(obj, "metadata", "name")
    prefix = find_str(obj, "metadata", "generateName")
    if by_prefix and _is_generated(name, prefix):
        name = prefix
    return Admission(
        backend, options.user, served.kind, Operation.CREATE, "", namespace, name, obj, None,
        dry_run=options.dry_run, warnings=options.warnings, version=served.version.name, policies=backend.policies,
        asked=options.asked, own=options.own,
    )  # fmt: skip


def store(backend: Backend, served: Served, key: Key, obj: JsonObject) -> JsonObject:
    """Store an object that already has the defaults of its kind, and return it in its stored form."""
    stored = backend.put(key, stored_form(served, obj))
    custom = custom_of(served.version)
    if custom is not None and find_str(stored, "apiVersion") == served.api_version:
        custom.is_complete(stored)
    return stored


def check_converted(served: Served, stored: JsonObject) -> None:
    """Check, before an object is stored, that it can be converted to the version that the client gets.

    Raises StatusError if the conversion fails, and ConversionsNeededError if a webhook has to be called first.
    """
    if served.kind.converter:
        shown_custom(served, stored)


def completed(served: Served, now: datetime, version: str, patched: JsonObject) -> JsonObject:
    """Return an object that a policy or webhook has patched, in the form with which the write continues.

    ``version`` is the version of the patched object. The result has the version ``served`` if the kind is custom, and
    otherwise the stored form. It has defaults, and no undeclared fields. Raises StatusError.
    """
    there = served.kind.version(version) or served.version
    at = Served(served.kind, there)
    obj = with_defaults(at, accepted(at, patched, FieldValidation.IGNORE).obj, now)
    if served.kind.custom:
        return converted_custom(served.kind, obj, served.api_version)
    return with_stored_defaults(at, obj)


def with_defaults(
    served: Served, obj: JsonObject, now: datetime | None = None, before: JsonObject | None = None
) -> JsonObject:
    """Return the object with the defaults of its kind; in an update, ``before`` is the stored object.

    Raises StatusError (400) if the object is invalid, or if defaults make it too large.
    """
    custom = custom_of(served.version)
    if custom is None:
        check_annotations(served, obj)
        return apply_defaults(obj, now) if before is None else defaults_after(obj, before, now)
    try:
        return custom.defaulted(obj)
    except ShapeError as error:
        raise status.bad_request(f"{served.kind.kind}: {error}") from error


def with_stored_defaults(served: Served, obj: JsonObject) -> JsonObject:
    """Return the object in the version in which it is stored. If the object had to be converted, add the defaults of the stored
    version.
    """
    converted = to_stored(served, obj)
    return obj if converted is obj else apply_defaults(converted)


def schema_errors(
    served: Served,
    obj: JsonObject,
    old: JsonObject | None = None,
    *,
    subresource: str = "",
    found: Sequence[FieldError] = (),
    warnings: list[str] | None = None,
) -> list[FieldError]:
    """Return the errors that the schema of a custom object finds; a built-in object has none.

    ``found`` are the other errors of the object. Warnings are added to ``warnings``.
    """
    custom = custom_of(served.version)
    if custom is None:
        return []
    judgement = custom.judged(obj, old, subresource=subresource, found=found)
    if warnings is not None:
        warnings.extend(judgement.warnings)
    return judgement.errors


def stored_form(served: Served, obj: JsonObject) -> JsonObject:
    """Return the object at its kind's storage version."""
    version = served.kind.stored_api_version
    if custom_of(served.version) is not None:
        obj = stored_custom(served, obj)
    else:
        obj = with_null_lists(obj, served.kind.group, version.rpartition("/")[2], served.kind.kind)
    if obj.get("apiVersion") == version and [*islice(obj, 2)] == ["kind", "apiVersion"]:
        return obj
    return {"kind": served.kind.kind, "apiVersion": version, **obj} | {"apiVersion": version}


def check_namespace_open(backend: Backend, served: Served, namespace: str, name: str) -> None:
    """Refuse new content if the namespace is absent (404) or being deleted (403)."""
    found = backend.storage.get(Key(NAMESPACES, "", namespace))
    if found is None:
        details: JsonObject = {"name": namespace, "kind": "namespaces"}
        raise status.StatusError(404, "NotFound", f'namespaces "{namespace}" not found', details)
    if find(found, "metadata", "deletionTimestamp") is not None:
        cause = FieldError("metadata.namespace", "NamespaceTerminating", f"namespace {namespace} is being terminated")
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        raise status.forbidden(served.kind, name, why, [cause])


def check_definition_open(backend: Backend, served: Served, name: str) -> None:
    """Refuse new instances of a custom kind whose definition is being deleted."""
    if served.kind.custom:
        definitions = Collection("apiextensions.k8s.io", "customresourcedefinitions")
        definition = backend.storage.get(Key(definitions, "", served.kind.resource))
        if find(definition, "metadata", "deletionTimestamp") is not None:
            why = "create not allowed while custom resource definition is terminating"
            raise status.forbidden(served.kind, name, why)
