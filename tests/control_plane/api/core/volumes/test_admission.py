import pytest

from tests.control_plane.support.backend_views import FakeView
from tests.control_plane.support.samples import builtin
from wharfinger.control_plane.access.users import User
from wharfinger.control_plane.api.common.admission import Admission, Operation
from wharfinger.control_plane.api.core.volumes.admission import check_growth, fill_class, protect
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject, find

CLAIM = builtin("", "v1", "persistentvolumeclaims").kind


def storage_class(name: str, created: str, **fields: bool) -> JsonObject:
    annotations: JsonObject = {"storageclass.kubernetes.io/is-default-class": "true"}
    return {"metadata": {"name": name, "creationTimestamp": created, "annotations": annotations}, **fields}


def claim(size: str, name: str = "grows", phase: str = "Bound") -> JsonObject:
    return {
        "spec": {"storageClassName": name, "resources": {"requests": {"storage": size}}},
        "status": {"phase": phase},
    }


VIEW = FakeView(
    {
        ("storage.k8s.io", "storageclasses"): [
            storage_class("b", "2026-01-01T00:00:00Z"),
            storage_class("a", "2026-01-01T00:00:00Z"),
            storage_class("old", "2025-01-01T00:00:00Z"),
            {"metadata": {"name": "grows"}, "allowVolumeExpansion": True},
        ]
    }
)


def asked(obj: JsonObject, old: JsonObject | None = None, subresource: str = "") -> Admission:
    operation = Operation.CREATE if old is None else Operation.UPDATE
    return Admission(VIEW, User("u", ()), CLAIM, operation, subresource, "n", "c", obj, old)


def test_a_claim_gets_the_newest_default_class() -> None:
    assert find(fill_class(asked({}), {"spec": {}}), "spec", "storageClassName") == "a"
    assert fill_class(asked({}), {"spec": {"storageClassName": ""}}) == {"spec": {"storageClassName": ""}}


def test_claims_are_protected_once() -> None:
    protected = protect(asked({}), {})

    assert find(protected, "metadata", "finalizers") == ["kubernetes.io/pvc-protection"]
    assert protect(asked({}), protected) == protected


@pytest.mark.parametrize(
    ("new", "old", "said"),
    [
        (claim("2Gi"), claim("1Gi"), ""),
        (claim("1Gi"), claim("2Gi"), ""),
        (claim("2Gi"), claim("1Gi", phase="Pending"), "Only bound persistent volume claims can be expanded"),
        (claim("2Gi", "a"), claim("1Gi", "a"), "only dynamically provisioned pvc can be resized"),
        (claim("2Gi", "absent"), claim("1Gi", "absent"), "only dynamically provisioned pvc can be resized"),
    ],
)
def test_only_bound_claims_of_expandable_classes_may_grow(new: JsonObject, old: JsonObject, said: str) -> None:
    check_growth(asked(new, old, "status"))
    if not said:
        check_growth(asked(new, old))
        return

    with pytest.raises(StatusError, match=said):
        check_growth(asked(new, old))
