"""Writes that policies are asked about."""

from tests.control_plane.support.bench import made, new_backend, served
from wharfinger.control_plane.access.users import ADMINISTRATOR
from wharfinger.control_plane.admission.request import Resource, resource_of
from wharfinger.control_plane.api.common.admission import Admission, Operation
from wharfinger.control_plane.backend import Backend
from wharfinger.formats.json.value import JsonObject, JsonValue

RULE: JsonObject = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
MATCH: JsonObject = {
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "resourceRules": [RULE],
}


def asked(
    plural: str = "configmaps",
    group: str = "",
    version: str = "v1",
    old: JsonObject | None = None,
    **members: JsonValue,
) -> tuple[Admission, Resource, Backend]:
    """A create of ``a`` in ``default``, or an update of ``old``."""
    backend = new_backend()
    found = served(backend, group, version, plural)
    namespace = "default" if found.kind.namespaced else ""
    metadata: JsonObject = {"name": "a", "namespace": namespace} if namespace else {"name": "a"}
    obj: JsonObject = {"apiVersion": found.api_version, "kind": found.kind.kind, "metadata": metadata, **members}
    operation = Operation.CREATE if old is None else Operation.UPDATE
    admission = Admission(backend, ADMINISTRATOR, found.kind, operation, "", namespace, "a", obj, old, version=version)
    resource = resource_of(admission)
    assert resource is not None
    return admission, resource, backend


def stored(
    backend: Backend, plural: str, obj: JsonObject, *, group: str = "admissionregistration.k8s.io"
) -> JsonObject:
    """An object that is written as a client writes it."""
    return made(backend, served(backend, group, "v1", plural), obj)
