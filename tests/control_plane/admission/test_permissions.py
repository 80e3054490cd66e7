import pytest
from msgspec.structs import replace

from tests.control_plane.support.bench import refused
from tests.control_plane.support.policy_asking import MATCH, asked, stored
from tests.control_plane.support.samples import definition
from wharfinger.control_plane.access.users import User
from wharfinger.control_plane.admission.permissions import check_parameters
from wharfinger.formats.json.value import JsonObject

GROUP = "admissionregistration.k8s.io"
USER = User("u", ("g",), "", {"b": ("c", "d")})
MAPS: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap"}


@pytest.mark.parametrize(
    ("plural", "spec", "said"),
    [
        ("validatingadmissionpolicies", {"paramKind": MAPS}, "user &{u  [g] map[b:[c d]]} must have \"get\" permission"),
        ("validatingadmissionpolicies", {"paramKind": {**MAPS, "kind": "Nope"}}, "(kind=Nope, apiVersion=v1)"),
        ("mutatingadmissionpolicybindings", {"policyName": "p", "paramRef": {"name": "a"}}, "unable to get policy p"),
    ],
)  # fmt: skip
def test_policies_with_unreadable_parameters_are_refused(plural: str, spec: JsonObject, said: str) -> None:
    admission, _, _ = asked(plural, GROUP, spec=spec)

    check_parameters(admission)
    with refused(422, "Invalid", said):
        check_parameters(replace(admission, user=USER))
    check_parameters(replace(admission, user=USER, old=admission.obj))


@pytest.mark.parametrize(
    ("kind", "said"),
    [("Widget", 'does not have "list" permission on'), ("Nope", "unable to resolve paramKind &ParamKind{APIVersion:")],
)
def test_bindings_need_permission_for_parameters_of_custom_kinds(kind: str, said: str) -> None:
    admission, _, backend = asked(
        "validatingadmissionpolicybindings", GROUP, spec={"policyName": "p", "paramRef": {"selector": {}}}
    )
    stored(backend, "customresourcedefinitions", definition(), group="apiextensions.k8s.io")
    policy: JsonObject = {
        "apiVersion": f"{GROUP}/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"},
        "spec": {
            "paramKind": {"apiVersion": "example.com/v1", "kind": kind}, "matchConstraints": MATCH,
            "validations": [{"expression": "true"}],
        },
    }  # fmt: skip
    stored(backend, "validatingadmissionpolicies", policy)

    with refused(422, "Invalid", said):
        check_parameters(replace(admission, user=USER))


def test_policies_without_parameters_need_no_permission() -> None:
    admission, _, _ = asked("validatingadmissionpolicies", GROUP, spec={})

    check_parameters(replace(admission, user=USER))
