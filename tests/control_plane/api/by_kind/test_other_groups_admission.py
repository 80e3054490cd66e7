import pytest

from tests.control_plane.support.backend_views import FakeView
from tests.control_plane.support.requests_made import request
from tests.control_plane.support.samples import builtin
from wharfinger.control_plane.access.users import User
from wharfinger.control_plane.api.by_kind.other_groups_admission import (
    check_subject,
    fill_ingress_class,
    record_requester,
)
from wharfinger.control_plane.api.common.admission import Admission, Operation
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject, find

USER = User("ann", ("g",), "", {"scopes": ("a", "b")})


def ingress_class(name: str, created: str, default: str = "true") -> JsonObject:
    annotations: JsonObject = {"ingressclass.kubernetes.io/is-default-class": default}
    return {"metadata": {"name": name, "creationTimestamp": created, "annotations": annotations}}


VIEW = FakeView(
    {
        ("networking.k8s.io", "ingressclasses"): [
            ingress_class("b", "2026-01-01T00:00:00Z"),
            ingress_class("a", "2026-01-01T00:00:00Z"),
            ingress_class("old", "2025-01-01T00:00:00Z"),
            ingress_class("newest", "2026-02-01T00:00:00Z", "false"),
        ]
    }
)


def asked(group: str, plural: str, obj: JsonObject, view: FakeView = VIEW) -> Admission:
    return Admission(view, USER, builtin(group, "v1", plural).kind, Operation.CREATE, "", "n", "a", obj, None)


@pytest.mark.parametrize(
    ("ingress", "view", "name"),
    [
        ({}, VIEW, "a"),
        ({"spec": {"ingressClassName": "x"}}, VIEW, "x"),
        ({"metadata": {"annotations": {"kubernetes.io/ingress.class": "x"}}}, VIEW, None),
        ({}, FakeView(), None),
    ],
)
def test_an_ingress_gets_the_newest_default_class(ingress: JsonObject, view: FakeView, name: str | None) -> None:
    filled = fill_ingress_class(asked("networking.k8s.io", "ingresses", ingress, view), ingress)

    assert find(filled, "spec", "ingressClassName") == name


def test_the_user_is_recorded_in_a_certificate_request() -> None:
    given: JsonObject = {"spec": {"username": "bob", "uid": "1", "groups": ["x"], "usages": ["any"]}}
    stamped = record_requester(asked("certificates.k8s.io", "certificatesigningrequests", given), given)

    assert stamped["spec"] == {
        "username": "ann", "groups": ["g"], "extra": {"scopes": ["a", "b"]}, "usages": ["any"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("signer", "encoded", "said"),
    [
        ("kubernetes.io/kube-apiserver-client", request("g"), ""),
        ("a.b/c", request("system:masters"), ""),
        ("kubernetes.io/kube-apiserver-client", request("system:masters"), "with system:masters group is not allowed"),
        ("kubernetes.io/kube-apiserver-client", "eA==", "failed to parse CSR: PEM block type must be"),
    ],
)
def test_certificates_of_administrators_are_refused(signer: str, encoded: str, said: str) -> None:
    admission = asked(
        "certificates.k8s.io", "certificatesigningrequests", {"spec": {"signerName": signer, "request": encoded}}
    )
    if not said:
        check_subject(admission)
        return
    with pytest.raises(StatusError, match=said):
        check_subject(admission)
