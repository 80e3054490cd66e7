import pytest

from tests.control_plane.support.samples import NOW, builtin
from wharfinger.control_plane.access.users import User
from wharfinger.control_plane.api.common.admission import Admission, Operation
from wharfinger.control_plane.api.core.quotas.admission import charge_quota, check_quota
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.storage.interface import Collection, Key
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject, find

QUOTAS = Collection("", "resourcequotas")


def backend(**status: JsonObject) -> Backend:
    made = Backend(MemoryStorage(), Catalog(), lambda: NOW)
    quota: JsonObject = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "n"},
        "spec": {},
        "status": dict(status),
    }
    made.put(Key(QUOTAS, "n", "q"), quota)
    return made


def write(
    view: Backend, plural: str, obj: JsonObject, old: JsonObject | None = None, subresource: str = ""
) -> Admission:
    kind = builtin("", "v1", plural).kind
    operation = Operation.CREATE if old is None else Operation.UPDATE
    return Admission(view, User("u", ()), kind, operation, subresource, "n", "a", obj, old)


def used(view: Backend) -> JsonObject | None:
    found = find(view.object("", "resourcequotas", "n", "q"), "status", "used")
    return found if isinstance(found, dict) else None


def test_writes_are_charged_until_the_quota_is_exhausted() -> None:
    view = backend(hard={"configmaps": "1"}, used={"configmaps": "0"})
    request = write(view, "configmaps", {})

    check_quota(request)
    charge_quota(request, view)

    assert used(view) == {"configmaps": "1"}
    with pytest.raises(
        StatusError, match="exceeded quota: q, requested: configmaps=1, used: configmaps=1, limited: conf"
    ):
        check_quota(request)


def test_a_quota_without_a_status_is_ignored() -> None:
    view = backend()
    check_quota(write(view, "configmaps", {}))
    charge_quota(write(view, "configmaps", {}), view)

    assert used(view) is None


def test_a_quota_without_known_usage_refuses_writes() -> None:
    with pytest.raises(StatusError, match="status unknown for quota: q, resources: configmaps"):
        check_quota(write(backend(hard={"configmaps": "1"}), "configmaps", {}))


def test_only_increases_are_charged() -> None:
    view = backend(hard={"services.nodeports": "2"}, used={"services.nodeports": "2"})
    old: JsonObject = {"spec": {"type": "NodePort", "ports": [{}, {}]}}

    check_quota(write(view, "services", old, old))
    with pytest.raises(StatusError, match=r"services\.nodeports=1, used: services\.nodeports=2"):
        check_quota(write(view, "services", {"spec": {"type": "NodePort", "ports": [{}, {}, {}]}}, old))


def test_other_writes_are_not_charged() -> None:
    view = backend(hard={"configmaps": "0", "pods": "0"}, used={"configmaps": "0", "pods": "0"})

    check_quota(write(view, "configmaps", {}, {}))
    check_quota(write(view, "events", {}))
    check_quota(write(view, "pods", {"spec": {}}, {"spec": {}}))
    check_quota(write(view, "pods", {"spec": {}}, None, "eviction"))
    with pytest.raises(StatusError, match="pods=1"):
        check_quota(write(view, "pods", {}))


def test_pods_must_specify_counted_resources() -> None:
    view = backend(hard={"limits.cpu": "1"}, used={"limits.cpu": "0"})

    with pytest.raises(StatusError, match=r"failed quota: q: must specify limits\.cpu for: c"):
        check_quota(write(view, "pods", {"spec": {"containers": [{"name": "c"}]}}))
