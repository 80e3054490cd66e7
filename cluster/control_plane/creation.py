"""Create: from a client's object to a stored one.

The order is the kube-apiserver's, because it shows: field managers own what the client wrote and what defaults filled in,
not what the server prepares afterwards; an absent namespace is said before an invalid object, an invalid object before a
name that is taken.
"""

from dataclasses import replace

from wharfinger.cluster.control_plane import status
from wharfinger.cluster.control_plane.admission.chain import check, mutated
from wharfinger.cluster.control_plane.admission.plugin import Admission, Operation
from wharfinger.cluster.control_plane.backend import Backend
from wharfinger.cluster.control_plane.catalog import Served
from wharfinger.cluster.control_plane.defaults.objects import apply_defaults
from wharfinger.cluster.control_plane.intake import Written, accepted, check_namespace
from wharfinger.cluster.control_plane.kinds import Generation
from wharfinger.cluster.control_plane.managed_fields import record_update
from wharfinger.cluster.control_plane.options import WriteOptions
from wharfinger.cluster.control_plane.preparation import (
    SERVER_OWNED,
    prepared,
    with_metadata,
    without_status,
)
from wharfinger.cluster.control_plane.status import FieldError
from wharfinger.cluster.control_plane.storage import Collection, Key
from wharfinger.cluster.control_plane.strategies.objects import strategy_of
from wharfinger.cluster.control_plane.timestamps import format_time
from wharfinger.cluster.control_plane.validation.objects import validate
from wharfinger.formats.json_value import JsonObject, JsonValue, ShapeError, find, find_str

NAMESPACES = Collection("", "namespaces")
SERVICES = Collection("", "services")


def create(backend: Backend, served: Served, namespace: str, body: JsonValue, options: WriteOptions) -> Written:
    """POST: the object as stored (or, in a dry run, as it would be). Raises StatusError."""
    asked = accepted(served, body, options.validation)
    obj = check_namespace(served, asked.obj, namespace)
    if find_str(obj, "metadata", "resourceVersion"):
        raise status.internal("resourceVersion should not be set on objects to be created")
    prefix = find_str(obj, "metadata", "generateName")
    if prefix and not find_str(obj, "metadata", "name"):
        obj = with_metadata(obj, {"name": backend.generate_name(prefix)})
    return replace(asked, obj=create_object(backend, served, obj, options, applied=False), created=True)


def create_object(
    backend: Backend, served: Served, obj: JsonObject, options: WriteOptions, *, applied: bool
) -> JsonObject:
    """Store a new object that has its name and namespace; ``applied`` ones bring their managed fields along."""
    obj = with_metadata(obj, dict.fromkeys(SERVER_OWNED))
    if served.version.status or served.kind.initial_status is not None:
        obj = without_status(obj)
    obj = with_defaults(served, obj)
    now = backend.now()
    if not applied:
        obj = record_update(None, obj, manager=options.manager, subresource="", now=now, lists=served.version.lists)
    try:
        obj = mutated(_admission(backend, served, obj, options), obj)
        services = backend.storage.list(SERVICES) if served.kind.collection == SERVICES else ()
        obj = prepared(served.kind, obj, services)
        obj = strategy_of(served.kind).create(obj, backend)
    except ShapeError as error:
        raise status.bad_request(f"{served.kind.kind}: {error}") from error
    namespace, name = find_str(obj, "metadata", "namespace"), find_str(obj, "metadata", "name")
    if served.kind.namespaced:
        check_namespace_open(backend, served, namespace, name)
    if errors := validate(served.kind, obj) + schema_errors(served, obj):
        raise status.invalid_object(served.kind, name, errors)
    if backend.get(served, namespace, name) is not None:
        raise status.already_exists(served.kind, name)
    check_definition_open(backend, served, name)
    check(_admission(backend, served, obj, options))
    stamped: JsonObject = {"uid": backend.new_uid(), "creationTimestamp": format_time(now)}
    if served.kind.generation is Generation.SPEC:
        stamped["generation"] = 1
    obj = with_metadata(obj, stamped)
    return obj if options.dry_run else store(backend, served, backend.key(served, namespace, name), obj)


def _admission(backend: Backend, served: Served, obj: JsonObject, options: WriteOptions) -> Admission:
    namespace, name = find_str(obj, "metadata", "namespace"), find_str(obj, "metadata", "name")
    return Admission(
        backend, options.user, served.kind, Operation.CREATE, "", namespace, name, obj, None, dry_run=options.dry_run
    )


def store(backend: Backend, served: Served, key: Key, obj: JsonObject) -> JsonObject:
    """Store an object that has the defaults of its kind, in its stored form."""
    stored = backend.put(key, stored_form(served, obj))
    if served.version.custom is not None and find_str(stored, "apiVersion") == served.api_version:
        served.version.custom.is_complete(stored)
    return stored


def with_defaults(served: Served, obj: JsonObject) -> JsonObject:
    """The object with the defaults of its kind. Raises StatusError (400) where that makes too much of it."""
    if served.version.custom is None:
        return apply_defaults(obj)
    try:
        return served.version.custom.defaulted(obj)
    except ShapeError as error:
        raise status.bad_request(f"{served.kind.kind}: {error}") from error


def schema_errors(served: Served, obj: JsonObject, old: JsonObject | None = None) -> list[FieldError]:
    """What is wrong with an object by its kind's schema, except for what is as it was in ``old``."""
    return [] if served.version.custom is None else served.version.custom.errors(obj, old)


def stored_form(served: Served, obj: JsonObject) -> JsonObject:
    """The object at its kind's storage version (versions of a kind differ in nothing else here)."""
    return {**obj, "apiVersion": served.kind.api_version(served.kind.storage_version)}


def check_namespace_open(backend: Backend, served: Served, namespace: str, name: str) -> None:
    """Refuse new content where the namespace is absent (404) or being deleted (403)."""
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
