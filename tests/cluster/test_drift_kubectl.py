"""Changes that a real kubectl makes over loopback. Each is found as drift, under the manager name that kubectl uses."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.cluster.support.clusters import loopback_cluster
from tests.cluster.support.drift_bench import DEPLOYMENT, MANAGER, yaml_object
from wharfinger.cluster.drift.comparison import find_drift
from wharfinger.cluster.drift.ignored import BUILT_IN
from wharfinger.cluster.objects.applied_objects import applied_of
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.kube.resource import ObjectKey

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on the PATH")

WEB: Final = "/spec/template/spec/containers/0"
FORCED: Final = ("apply", "--server-side", "--force-conflicts", "--field-manager=ops", "-f", "other.yaml")
OTHER: Final = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: prod}, spec: {replicas: 4}}"
EDIT: Final = "sed -i 's/shop.web:1/shop\\/web:2/; s/disk: ssd/disk: hdd/'"

COMMANDS: Final[dict[str, tuple[tuple[str, ...], set[tuple[str, str]]]]] = {
    "scale": (("scale", "deployment/web", "--replicas=5"), {("/spec/replicas", "kubectl")}),
    "edit": (
        ("edit", "deployment/web"),
        {(f"{WEB}/image", "kubectl-edit"), ("/spec/template/spec/nodeSelector", "kubectl-edit")},
    ),
    "set image": (("set", "image", "deployment/web", "web=shop/web:3"), {(f"{WEB}/image", "kubectl-set")}),
    "patch": (("patch", "deployment/web", "-p", '{"spec":{"replicas":3}}'), {("/spec/replicas", "kubectl-patch")}),
    "annotate": (
        ("annotate", "deployment/web", "--overwrite", "note=theirs", "more=1"),
        {("/metadata/annotations/note", "kubectl-annotate")},
    ),
    "annotate, removing": (("annotate", "deployment/web", "note-"), {("/metadata/annotations/note", "")}),
    "label": (("label", "deployment/web", "--overwrite", "app=x"), {("/metadata/labels/app", "kubectl-label")}),
    "rollout restart": (("rollout", "restart", "deployment/web"), set()),
    "pause": (("rollout", "pause", "deployment/web"), set()),
    "apply over it, by force": (FORCED, {("/spec/replicas", "ops")}),
    "a status": (
        ("patch", "deployment/web", "--subresource=status", "--type=merge", "-p", '{"status":{"replicas":1}}'),
        set(),
    ),
    "nothing": (("get", "deployment/web"), set()),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", COMMANDS)
async def test_changes_by_kubectl_are_found(name: str, tmp_path: Path) -> None:
    arguments, expected = COMMANDS[name]
    desired = yaml_object(DEPLOYMENT)
    (tmp_path / "other.yaml").write_text(OTHER)
    async with loopback_cluster(tmp_path) as client:
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}})
        applied = applied_of(await client.apply(desired, field_manager=MANAGER), MANAGER)

        await kubectl(tmp_path, *arguments)

        live = await client.get(ObjectKey(await client.resource_type("apps/v1", "Deployment"), "prod", "web"))
        for baseline in (applied, None):
            drift = find_drift(desired, baseline, live, MANAGER, BUILT_IN)
            assert {(field.pointer, field.by) for field in (drift.fields if drift else ())} == expected


async def test_a_client_side_apply_of_the_same_manifest_is_not_drift(tmp_path: Path) -> None:
    """A user applies the same manifest as the chart. The values are equal, so we still own our fields."""
    desired = yaml_object(DEPLOYMENT)
    (tmp_path / "same.yaml").write_bytes(write_yaml(desired).encode())
    async with loopback_cluster(tmp_path) as client:
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}})
        applied = applied_of(await client.apply(desired, field_manager=MANAGER), MANAGER)

        await kubectl(tmp_path, "apply", "-f", "same.yaml")

        live = await client.get(ObjectKey(await client.resource_type("apps/v1", "Deployment"), "prod", "web"))
        assert [find_drift(desired, baseline, live, MANAGER, BUILT_IN) for baseline in (applied, None)] == [None, None]


async def kubectl(folder: Path, *arguments: str) -> None:
    environ = {**os.environ, "KUBECONFIG": str(folder / "kubeconfig"), "KUBE_EDITOR": EDIT, "HOME": str(folder)}
    command = ["kubectl", "-n", "prod", *arguments]
    done = await trio.run_process(
        command, cwd=folder, env=environ, capture_stdout=True, stderr=subprocess.STDOUT, check=False
    )
    assert done.returncode == 0, done.stdout.decode()
