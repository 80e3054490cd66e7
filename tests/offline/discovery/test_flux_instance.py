"""The source and the Kustomization that the operator makes from ``spec.sync`` of a FluxInstance, and trees whose first object
is a FluxInstance.
"""

from pathlib import Path

import pytest

from tests.offline.support import built, config_map, failures, flux_id, kustomization, names, write_tree
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.offline.discovery.flux_instance import synced_objects
from wharfinger.offline.discovery.tree import BOOTSTRAP_SOURCE, discover

INSTANCE = (
    "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\n"
    "spec: {sync: {kind: OCIRepository, url: 'oci://registry.example.com/fleet', ref: latest, path: clusters/a}}\n"
)
SOURCE = flux_id("OCIRepository", "flux-system")
TENANTS = kustomization("tenants", "./tenants").replace("kind: GitRepository", "kind: OCIRepository")
FILES = {
    "clusters/a/flux-system/instance.yaml": INSTANCE,
    "clusters/a/flux-system/kustomization.yaml": "resources: [instance.yaml]\n",
    "clusters/a/tenants.yaml": TENANTS,
    "tenants/map.yaml": config_map("tenant"),
}


def made(**sync: str) -> list[JsonObject]:
    spec: JsonObject = {"sync": {**sync}}
    obj: JsonObject = {
        "apiVersion": "fluxcd.controlplane.io/v1",
        "kind": "FluxInstance",
        "metadata": {"name": "flux", "namespace": "flux-system"},
        "spec": spec,
    }
    return list(synced_objects(obj))


def test_an_instance_makes_a_source_and_a_kustomization() -> None:
    source, built_by = made(
        kind="GitRepository", url="https://git.example.com/a", ref="refs/heads/main", path="clusters/a"
    )
    assert find(source, "spec") == {"url": "https://git.example.com/a", "ref": {"name": "refs/heads/main"}}
    assert find(built_by, "spec", "path") == "clusters/a"
    assert find(built_by, "spec", "sourceRef") == {"kind": "GitRepository", "name": "flux-system"}
    assert find(made(kind="OCIRepository", url="oci://x", ref="1", name="own")[0], "metadata", "name") == "own"


@pytest.mark.parametrize("sync", [{}, {"kind": "OCIRepository"}, {"kind": "Other", "url": "x"}])
def test_an_instance_without_a_source_makes_no_objects(sync: dict[str, str]) -> None:
    assert made(**sync) == []


def test_other_groups_and_malformed_instances_make_no_objects() -> None:
    assert not list(
        synced_objects(
            {"apiVersion": "example.com/v1", "kind": "FluxInstance", "spec": {"sync": {"kind": "Bucket", "url": "x"}}}
        )
    )
    assert not list(synced_objects({"apiVersion": "fluxcd.controlplane.io/v1", "kind": "FluxInstance", "spec": "x"}))


def test_the_root_is_derived_from_the_sync_path(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    fleet = write_tree(tmp_path / "examples" / "fleet", FILES).resolve()
    tree = discover(fleet / "clusters" / "a")
    assert (tree.root, tree.local_sources) == (fleet, frozenset({SOURCE}))


async def test_a_tree_that_begins_with_an_instance_is_built(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", FILES)
    result = await built(tree / "clusters" / "a", tmp_path, root=tree)
    assert not result.failed, failures(result)
    assert names(result) == ["tenant"]
    kinds = [each.id.kind.partition(".")[0] for each in result.objects]
    assert sorted(kinds) == [
        "ConfigMap",
        "FluxInstance",
        "Kustomization",
    ]  # In the cluster, the operator makes the source and the first Kustomization.
    assert BOOTSTRAP_SOURCE not in result.depends_on
    assert SOURCE in result.depends_on[flux_id("Kustomization", "tenants")]


async def test_declared_objects_win_over_those_of_an_instance(tmp_path: Path) -> None:
    own = kustomization("flux-system", "./clusters/a").replace("kind: GitRepository", "kind: OCIRepository")
    tree = write_tree(tmp_path / "tree", {**FILES, "clusters/a/own.yaml": own})
    result = await built(tree / "clusters" / "a", tmp_path, root=tree)
    assert not result.failed, failures(result)
    assert names(result) == ["tenant"]
    assert names(result, "Kustomization.kustomize.toolkit.fluxcd.io") == ["flux-system", "tenants"]


async def test_an_instance_inside_of_its_own_tree_is_built(tmp_path: Path) -> None:
    """The instance builds the cluster's folder, which in turn builds the folder with the instance."""
    apps = TENANTS.replace("tenants", "apps")
    instance = INSTANCE.replace("OCIRepository", "GitRepository").replace(
        "oci://registry.example.com", "https://git.example.com"
    )
    for number, start in enumerate((".", "clusters/a", "apps")):
        files = {
            "clusters/a/apps.yaml": apps.replace("kind: OCIRepository", "kind: GitRepository"),
            "apps/instance.yaml": instance,
            "apps/map.yaml": config_map("app"),
        }
        tree = write_tree(tmp_path / str(number), files)
        result = await built(tree / start, tmp_path, root=tree)
        assert not result.failed, failures(result)
        assert (names(result), result.warnings) == (["app"], ())
        kinds = sorted(each.id.kind.partition(".")[0] for each in result.objects)
        assert kinds == ["ConfigMap", "FluxInstance", *([] if start == "apps" else ["Kustomization"])]


async def test_an_instance_of_another_tree_is_an_ordinary_manifest(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", {"instance.yaml": INSTANCE.replace("clusters/a", "clusters/none")})
    result = await built(tree, tmp_path)
    assert not result.failed, failures(result)
    assert [each.id.name for each in result.objects] == ["flux"]
