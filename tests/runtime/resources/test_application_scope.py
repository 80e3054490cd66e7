"""An Application's chart may write only in the Application's namespace: refused objects, the label that allows them, and the
removal of this label.
"""

import base64
import logging
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.support.clusters import memory_cluster
from tests.packages.support.charts import chart
from tests.runtime.support.world import World, open_world
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.cluster.objects.ownership import MANAGED_BY, RELEASE_NAME, RELEASE_NAMESPACE
from wharfinger.cluster.objects.scope import ALLOWED, CLUSTER_SCOPE_LABEL
from wharfinger.cluster.records.release import from_secret, pack_document
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.runtime.resources.application_scope import NAMESPACE, ApplicationScope, open_scope_labels
from wharfinger.runtime.resources.resources import CONFIG_MAP, SECRET

ROLE = ResourceType("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
CRD = ResourceType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)

FAR = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: far, namespace: kube-system%s}\ndata: {a: b}\n"
ADMIN = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: admin-of-all}\nrules: []\n"
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: piers.wharf.example}
spec:
  group: wharf.example
  scope: Namespaced
  names: {kind: Pier, plural: piers, singular: pier, listKind: PierList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""
PIER = "apiVersion: wharf.example/v1\nkind: Pier\nmetadata: {name: a}\n"


def indented(text: str) -> str:
    first, *rest = text.splitlines()
    return "\n".join([f"- {first}", *(f"  {line}" for line in rest)]) + "\n"


def hook(event: str) -> str:
    return FAR % f', annotations: {{"helm.sh/hook": {event}}}'


FAR_KEY = ObjectKey(CONFIG_MAP, "kube-system", "far")
WAYS: dict[str, tuple[dict[str, str], ObjectKey, str]] = {
    "other-namespace": ({"templates/a.yaml": FAR % ""}, FAR_KEY, "ConfigMap kube-system/far"),
    "cluster-scoped": (
        {"templates/a.yaml": ADMIN},
        ObjectKey(ROLE, "", "admin-of-all"),
        "ClusterRole.rbac.authorization.k8s.io admin-of-all",
    ),
    "namespace-says-own": (
        {"templates/a.yaml": ADMIN.replace("admin-of-all}", "admin-of-all, namespace: prod}")},
        ObjectKey(ROLE, "", "admin-of-all"),
        "ClusterRole.rbac.authorization.k8s.io admin-of-all",
    ),
    "own-namespace-itself": (
        {"templates/a.yaml": 'apiVersion: v1\nkind: Namespace\nmetadata: {name: prod, labels: {taken: "1"}}\n'},
        ObjectKey(NAMESPACE, "", "taken"),
        "Namespace prod",
    ),
    "list": (
        {"templates/a.yaml": "apiVersion: v1\nkind: List\nitems:\n" + indented(FAR % "")},
        FAR_KEY,
        "ConfigMap kube-system/far",
    ),
    "typed-list": (
        {"templates/a.yaml": "apiVersion: v1\nkind: ConfigMapList\nitems:\n" + indented(FAR % "")},
        FAR_KEY,
        "ConfigMap kube-system/far",
    ),
    "list-in-list": (
        {
            "templates/a.yaml": "apiVersion: v1\nkind: List\nitems:\n"
            + indented("apiVersion: v1\nkind: ConfigMapList\nitems:\n" + indented(FAR % ""))
        },
        FAR_KEY,
        "ConfigMap kube-system/far",
    ),
    "pre-install": ({"templates/a.yaml": hook("pre-install")}, FAR_KEY, "ConfigMap kube-system/far"),
    "post-upgrade": ({"templates/a.yaml": hook("post-upgrade")}, FAR_KEY, "ConfigMap kube-system/far"),
    "pre-delete": ({"templates/a.yaml": hook("pre-delete")}, FAR_KEY, "ConfigMap kube-system/far"),
    "crds": (
        {"crds/a.yaml": DEFINITION},
        ObjectKey(CRD, "", "piers.wharf.example"),
        "CustomResourceDefinition.apiextensions.k8s.io piers.wharf.example",
    ),
    "definition-with-its-object": (
        {"templates/a.yaml": DEFINITION, "templates/b.yaml": PIER},
        ObjectKey(CRD, "", "piers.wharf.example"),
        "CustomResourceDefinition.apiextensions.k8s.io piers.wharf.example",
    ),
    "sub-chart": (
        {"charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n", "charts/db/templates/a.yaml": FAR % ""},
        FAR_KEY,
        "ConfigMap kube-system/far",
    ),
}


async def is_there(client: ClusterClient, key: ObjectKey) -> bool:
    try:
        await client.get(key)
    except NotFoundError:
        return False
    return True


def refused(obj: JsonObject, named: str) -> bool:
    """Return whether the status contains the reason, the given object's name, and the remedy."""
    stalled = World.condition(obj, "Stalled")
    message = find_str(obj, "status", "summary", "message")
    return (
        find(stalled, "status") == "True"
        and find(stalled, "reason") in ("OutsideNamespace", "Stalled")
        and named in message
        and f"kubectl label namespace prod {CLUSTER_SCOPE_LABEL}={ALLOWED}" in message
    )


@pytest.mark.slow
async def test_objects_outside_of_the_namespace_are_refused_before_any_write(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        for name, (files, _, _) in WAYS.items():
            chart(tmp_path / name, name, "1.0.0", files)
        await world.local_repository(tmp_path)
        for name in WAYS:
            await world.create("prod", name, package=name)
        for name, (_, key, named) in WAYS.items():
            await world.until("prod", name, partial(refused, named=named))
            assert not await is_there(world.client, key), name
            assert await world.config_map("prod", name) is None, f"{name}: its own ConfigMap was written"
        assert find(await world.client.get(ObjectKey(NAMESPACE, "", "prod")), "metadata", "labels", "taken") is None
        # A Module may contain the same objects.
        await world.create_module("roles", package="cluster-scoped")
        await world.until_state("", "roles", "Ready")
        assert await is_there(world.client, ObjectKey(ROLE, "", "admin-of-all"))


async def test_hooks_outside_of_the_namespace_are_ignored(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0", {"templates/test.yaml": hook("test")})
        await world.repository()
        await world.create("prod", "app")
        await world.until_state("prod", "app", "Ready")
        assert not await is_there(world.client, FAR_KEY)


async def test_no_object_outside_of_the_namespace_is_adopted(tmp_path: Path) -> None:
    mine: JsonObject = {RELEASE_NAME: "app", RELEASE_NAMESPACE: "prod"}
    theirs: JsonObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "far",
            "namespace": "kube-system",
            "annotations": mine,
            "labels": {MANAGED_BY: "Helm"},
        },
        "data": {"a": "theirs"},
    }
    async with open_world(tmp_path) as world:
        await world.client.create(theirs)
        await world.push("web", "1.0.0", {"templates/far.yaml": FAR % ""})
        await world.repository()
        await world.create("prod", "app")
        await world.until("prod", "app", lambda obj: refused(obj, "ConfigMap kube-system/far"))
        assert find((await world.client.get(FAR_KEY)), "data", "a") == "theirs"


@pytest.mark.slow
async def test_an_upgrade_with_foreign_objects_needs_the_label(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.push("web", "2.0.0", {"templates/role.yaml": ADMIN, "templates/far.yaml": FAR % ""})
        await world.repository()
        await world.create("prod", "app", settings={})
        await world.until_state("prod", "app", "Ready")
        await world.change("prod", "app", {"packageVersion": "2.0.0"})
        obj = await world.until("prod", "app", lambda obj: refused(obj, "ConfigMap kube-system/far"))
        assert find_str(obj, "status", "currentVersion", "version") == "1.0.0"
        assert await world.config_map("prod", "app") is not None
        await world.allow_cluster()
        await world.until_state("prod", "app", "Ready")
        role = ObjectKey(ROLE, "", "admin-of-all")
        assert await is_there(world.client, role)
        # When the label is removed, the objects are refused. Existing ones stay until the Application is deleted, but are not
        # corrected.
        await world.allow_cluster(allowed=False)
        await world.until("prod", "app", lambda obj: refused(obj, "ConfigMap kube-system/far"))
        theirs: JsonObject = {"name": "far", "namespace": "kube-system"}
        changed: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": theirs, "data": {"a": "changed"}}
        await world.client.apply(changed, field_manager="ann", force=True)
        await world.request("prod", "app")
        await world.until("prod", "app", lambda obj: refused(obj, "ConfigMap kube-system/far"))
        assert find(await world.client.get(FAR_KEY), "data", "a") == "changed"
        assert await is_there(world.client, role)
        await world.delete("prod", "app")
        await world.until_gone("prod", "app")
        assert not await is_there(world.client, role)
        assert not await is_there(world.client, FAR_KEY)


async def test_other_values_and_places_of_the_label_allow_nothing(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        for value in ("true", "Allowed", "denied"):
            labels: JsonObject = {"metadata": {"labels": {CLUSTER_SCOPE_LABEL: value}}}
            await world.client.merge_patch(ObjectKey(NAMESPACE, "", "prod"), labels)
        await world.push("web", "1.0.0", {"templates/role.yaml": ADMIN})
        await world.repository()
        await world.create("prod", "app")
        await world.annotate("prod", "app", CLUSTER_SCOPE_LABEL, ALLOWED)
        await world.until("prod", "app", lambda obj: refused(obj, "admin-of-all"))


async def test_a_hook_of_a_forged_record_is_not_run_at_removal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A user who may write Secrets in the namespace can forge the record of a release, and add hooks to it. Such hooks must not
    be run.
    """
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "app")
        await world.until_state("prod", "app", "Ready")
        key = ObjectKey(SECRET, "prod", "sh.helm.release.v1.app.v1")
        release = from_secret(await world.client.get(key))
        hooks: list[JsonValue] = [
            {
                "name": "far",
                "kind": "ConfigMap",
                "manifest": hook("pre-delete"),
                "events": ["pre-delete"],
                "weight": 0,
            }
        ]
        packed = pack_document({**release.document, "hooks": hooks})
        await world.client.merge_patch(key, {"data": {"release": base64.b64encode(packed).decode()}})
        with caplog.at_level(logging.WARNING):
            await world.delete("prod", "app")
            await world.until_gone("prod", "app")
        assert "hook ConfigMap far is outside of the namespace prod" in caplog.text
        assert not await is_there(world.client, FAR_KEY)


async def test_changes_of_namespace_labels_are_observed() -> None:
    async with memory_cluster() as client, open_scope_labels(client, ApplicationScope.NAMESPACE) as labels:
        assert not labels.allows("default")
        await labels.informer.wait_synced()
        with labels.informer.changes() as changes:
            patch: JsonObject = {"metadata": {"labels": {CLUSTER_SCOPE_LABEL: ALLOWED}}}
            await client.merge_patch(ObjectKey(NAMESPACE, "", "default"), patch)
            assert await changes.wait() == {ObjectKey(NAMESPACE, "", "default")}
            assert labels.allows("default")
            assert not labels.allows("kube-system")
            gone: JsonObject = {"metadata": {"labels": {CLUSTER_SCOPE_LABEL: None}}}
            await client.merge_patch(ObjectKey(NAMESPACE, "", "default"), gone)
            await changes.wait()
            assert not labels.allows("default")


async def test_cluster_scope_allows_every_namespace() -> None:
    async with memory_cluster() as client, open_scope_labels(client, ApplicationScope.CLUSTER) as labels:
        assert labels.allows("any")
