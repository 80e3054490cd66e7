from tests.control_plane.support.bench import OPTIONS, config_maps, made, new_backend, refused, served, thing
from tests.control_plane.support.policy_asking import MATCH, RULE, stored
from wharfinger.control_plane.access.users import ADMINISTRATOR
from wharfinger.control_plane.admission.bindings import BoundPolicies
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.verbs.creation import create
from wharfinger.control_plane.verbs.deletion import delete
from wharfinger.control_plane.verbs.options import DeleteOptions, WriteOptions
from wharfinger.control_plane.verbs.updating import replace
from wharfinger.formats.json.value import JsonObject

POLICY: JsonObject = {
    "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"},
    "spec": {"matchConstraints": MATCH, "validations": [{"expression": "request.operation == 'UPDATE'"}]},
}  # fmt: skip
BINDING: JsonObject = {
    "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]},
}  # fmt: skip
DELETE = DeleteOptions(user=ADMINISTRATOR)


def test_policies_apply_while_they_are_bound() -> None:
    backend = new_backend()
    maps = config_maps(backend)
    made(backend, maps, thing(maps))
    stored(backend, "validatingadmissionpolicybindings", BINDING)
    assert not _is_bound(backend)
    stored(backend, "validatingadmissionpolicies", POLICY)
    assert _is_bound(backend)

    with refused(422, "Invalid", "denied request"):
        made(backend, maps, thing(maps, "b"))
    with refused(422, "Invalid", 'configmaps "a" is forbidden'):
        delete(backend, maps, "default", "a", DELETE)
    with refused(422, "Invalid", 'configmaps "Unknown" is forbidden'):
        delete(backend, maps, "default", "a", DeleteOptions(user=ADMINISTRATOR, each=True))
    replace(backend, maps, "default", "a", "", {**thing(maps), "data": {"a": "b"}}, OPTIONS)
    delete(backend, maps, "default", "a", DeleteOptions())

    bindings = served(backend, "admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings")
    delete(backend, bindings, "", "b", DELETE)
    assert not _is_bound(backend)
    made(backend, maps, thing(maps, "b"))


def test_an_unchanged_policy_is_not_compiled_again() -> None:
    backend = new_backend()
    stored(backend, "validatingadmissionpolicies", POLICY)
    stored(backend, "validatingadmissionpolicybindings", BINDING)
    bound = BoundPolicies(backend)
    before = [policy for policy, _ in bound._bound]
    stored(backend, "validatingadmissionpolicybindings", {**BINDING, "metadata": {"name": "c"}})

    bound.load()

    assert [policy for policy, _ in bound._bound] == before
    assert [len(bindings) for _, bindings in bound._bound] == [2]


def _is_bound(backend: Backend) -> bool:
    return backend.policies is not None


def test_policies_do_not_apply_to_writes_of_the_server() -> None:
    backend = new_backend()
    every: JsonObject = {**RULE, "apiGroups": ["*"], "resources": ["*"]}
    anything: JsonObject = {**MATCH, "resourceRules": [every]}
    policy: JsonObject = {
        **POLICY,
        "spec": {"matchConstraints": anything, "validations": [{"expression": "object.kind == 'Role'"}]},
    }
    maps = config_maps(backend)
    stored(backend, "validatingadmissionpolicies", policy)
    stored(backend, "validatingadmissionpolicybindings", BINDING)

    create(backend, maps, "default", thing(maps), WriteOptions("server", own=True))
    with refused(422, "Invalid", "denied request"):
        made(backend, maps, thing(maps, "b"))
