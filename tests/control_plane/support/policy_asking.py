"""Admission requests, and writes through a control plane, for tests of admission policies."""

from tests.control_plane.support.bench import made, new_backend, send, served
from wharfinger.control_plane.access.users import ADMINISTRATOR
from wharfinger.control_plane.admission.request import Resource, resource_of
from wharfinger.control_plane.api.common.admission import Admission, Operation
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.service import ControlPlane
from wharfinger.formats.json.value import JsonObject, JsonValue

GROUP = "admissionregistration.k8s.io"
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
    """Return an admission request for the object ``a``, its resource, and the backend.

    The request is an update of ``old``, or a create if ``old`` is None. ``members`` are further fields of the object.
    """
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


def stored(backend: Backend, plural: str, obj: JsonObject, *, group: str = GROUP) -> JsonObject:
    """Create an object as a client does, and return it."""
    return made(backend, served(backend, group, "v1", plural), obj)


async def bind_policy(plane: ControlPlane, which: str, *, rule: JsonObject, **spec: JsonValue) -> None:
    """Create a policy ``p`` with one resource rule, and its binding. ``which`` is Validating or Mutating."""
    kind = f"{which}AdmissionPolicy"
    made: JsonObject = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": "p"}}
    policy: JsonObject = {**made, "spec": {"matchConstraints": {"resourceRules": [rule]}, **spec}}
    path = f"/apis/{GROUP}/v1/{kind.lower()[:-1]}ies"
    answer = await send(plane, "POST", path, policy)
    assert answer.code == 201, answer.body
    actions: JsonObject = {"validationActions": ["Deny"]} if which == "Validating" else {}
    binding: JsonObject = {**made, "kind": f"{kind}Binding", "spec": {"policyName": "p", **actions}}
    answer = await send(plane, "POST", f"/apis/{GROUP}/v1/{kind.lower()}bindings", binding)
    assert answer.code == 201, answer.body
