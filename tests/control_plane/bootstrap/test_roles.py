from datetime import UTC, datetime

from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.bootstrap.roles import install
from wharfinger.control_plane.catalog.catalog import Catalog
from wharfinger.control_plane.storage.interface import Collection, Key
from wharfinger.control_plane.storage.memory import MemoryStorage
from wharfinger.formats.json.value import find, find_list

ROLES = Collection("rbac.authorization.k8s.io", "clusterroles")


def test_changed_roles_are_not_restored() -> None:
    backend = Backend(MemoryStorage(), Catalog(), lambda: datetime(2026, 11, 21, tzinfo=UTC))
    install(backend)
    key = Key(ROLES, "", "cluster-admin")
    first = backend.storage.get(key)

    assert find_list(first, "rules")[0] == {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    assert find(first, "metadata", "labels", "kubernetes.io/bootstrapping") == "rbac-defaults"
    assert find(first, "metadata", "creationTimestamp") == "2026-11-21T00:00:00Z"
    assert [
        find(entry, "manager")
        for entry in find_list(backend.storage.get(Key(ROLES, "", "admin")), "metadata", "managedFields")
    ] == [
        "clusterrole-aggregation-controller",
        "kube-apiserver",
    ]

    backend.put(key, {"metadata": {"name": "cluster-admin"}, "rules": []})
    revision = backend.storage.revision
    install(backend)
    assert backend.storage.revision == revision
