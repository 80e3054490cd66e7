"""Applications and Modules: an offline build makes the same objects as the daemon applies."""

import json
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.corpus.charts import NAMES, unpack
from tests.offline.support import built, failures, kustomization, write_tree
from tests.packages.support.charts import chart, tool
from tests.packages.support.git_server import commit, make_repository
from tests.programs import ROOT
from tests.runtime.support.world import World, open_world
from wharfinger.cluster.objects.scope import ALLOWED, CLUSTER_SCOPE_LABEL
from wharfinger.cluster.records.release import Release
from wharfinger.formats.json.value import JsonObject, find, find_object, find_str
from wharfinger.formats.yaml.reader import read_yaml_all
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.offline.controllers.controller import RunOptions
from wharfinger.offline.discovery.documents import flattened
from wharfinger.offline.store.kinds import APPLICATION, MODULE
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.registry.pusher import load_package, push_package
from wharfinger.packages.rendering.renderer import is_test
from wharfinger.runtime.fixpoint.model import Id
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE

EXAMPLES = ROOT / "examples"
PATIENCE_S = 300


@dataclass(frozen=True)
class Case:
    """An example package in ``examples/``, or a chart, and the resource that requests it."""

    package: str
    version: str
    settings: JsonObject = field(default_factory=dict)
    more: JsonObject = field(default_factory=dict)
    is_module: bool = False


CASES = (
    Case("web-service", "1.0.0", {"replicas": 2, "message": "Hello"}),
    Case(
        "web-service",
        "1.0.0",
        {},
        {
            "maintenance": "NoResourceReconciliation",
            "resourceRequests": [{"kind": "Deployment", "name": "shop-web-service", "replicas": 3}],
        },
    ),
    Case(
        "web-service",
        "1.0.0",
        {},
        {"patches": [{"patch": "metadata: {labels: {team: blue}}", "target": {"kind": "Deployment|Service"}}]},
    ),
    Case("todo-api", "2.1.0"),
    Case("reloader", "1.0.0"),
    Case("namespace-defaults", "1.0.0", is_module=True),
)


def resource(case: Case) -> JsonObject:
    """Return the Application or the Module that requests the case's package."""
    name = case.package if case.is_module else "shop"
    metadata: JsonObject = {"name": name} if case.is_module else {"name": name, "namespace": "prod"}
    spec: JsonObject = {"packageVersion": case.version, "settings": case.settings, **case.more}
    if not case.is_module:
        spec["packageName"] = case.package
    kind = "Module" if case.is_module else "Application"
    return {"apiVersion": "wharfinger.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


async def first_release(world: World, name: str, namespace: str) -> Release:
    """Return the first revision of a release, once it is recorded."""
    with trio.fail_after(PATIENCE_S):
        while True:
            history = await world.runtime.tools.releases.history(name, namespace)
            if history and (found := await world.runtime.tools.releases.whole(history[0])) is not None:
                return found
            await trio.testing.wait_all_tasks_blocked(0.005)


def comparable(objects: list[JsonObject]) -> list[str]:
    """Return the objects as sorted texts. Their namespaces are left out, because a release record may omit them, and the server
    adds them.
    """
    found = []
    for obj in objects:
        metadata = {key: value for key, value in find_object(obj, "metadata").items() if key != "namespace"}
        found.append(json.dumps({**obj, "metadata": metadata}, sort_keys=True))
    return sorted(found)


async def applied(world: World, case: Case) -> list[JsonObject]:
    """Create the resource of the case, and return the objects that the daemon recorded in the first revision of the release."""
    await world.client.create(resource(case))
    name, namespace = (case.package, SYSTEM_NAMESPACE) if case.is_module else ("shop", "prod")
    release = await first_release(world, name, namespace)
    documents = [each for each in read_yaml_all(release.manifest, what="manifest") if isinstance(each, dict)]
    hooks = [
        each
        for hook in release.hooks
        for each in read_yaml_all(find_str(hook, "manifest"), what="hook")
        if isinstance(each, dict)
    ]
    made = [*documents, *(each for each in hooks if not is_test(each))]
    return [item for each in made for item in flattened(each) if isinstance(item, dict)]


async def platform_of(world: World) -> RunOptions:
    """Return the version and the APIs of the cluster, which templates see. Call it before a release is installed, because the
    release's CRDs add APIs.
    """
    return RunOptions(await world.client.server_version(), await world.client.api_versions())


async def built_offline(case: Case, packages: Path, platform: RunOptions, scratch: Path) -> list[JsonObject]:
    """Return the objects that an offline build makes for a cluster with this version and these APIs."""
    files = {
        "app.yaml": write_yaml(resource(case)),
        "repository.yaml": "apiVersion: wharfinger.dev/v1alpha1\nkind: PackageRepository\nmetadata: {name: default}\n"
        f"spec: {{folder: {{path: {json.dumps(str(packages))}}}}}\n",
    }
    labelled: JsonObject = {"name": "prod", "labels": {CLUSTER_SCOPE_LABEL: ALLOWED}}
    files["namespace.yaml"] = write_yaml({"apiVersion": "v1", "kind": "Namespace", "metadata": labelled})
    result = await built(write_tree(scratch / "tree", files), scratch, options=platform)
    assert not result.failed, failures(result)
    who = Id(MODULE, "", case.package) if case.is_module else Id(APPLICATION, "prod", "shop")
    objects = [each.object for each in result.manifests.get(who, ())]
    separate = definitions_of(packages / case.package)
    # A release does not record CustomResourceDefinitions; test_single.py compares them with the output of Helm.
    return [each for each in objects if each not in separate]


def definitions_of(chart: Path) -> list[JsonObject]:
    """Return the CustomResourceDefinitions in the ``crds/`` folders of a chart and of all its subcharts."""
    if not (chart / "Chart.yaml").is_file():
        return []
    done = subprocess.run([tool("helm"), "show", "crds", chart], check=True, capture_output=True)
    return [each for each in read_yaml_all(done.stdout, what="helm show crds") if isinstance(each, dict)]


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.package}{'-changed' if case.more else ''}")
async def test_an_example_is_built_as_the_daemon_applies_it(case: Case, tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    for name in {each.package for each in CASES}:
        shutil.copytree(EXAMPLES / name, packages / name)
    async with open_world(tmp_path) as world:
        if case.is_module:
            namespace: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}}
            await world.client.create(namespace)
        await world.local_repository(packages)
        platform = await platform_of(world)
        theirs = await applied(world, case)
        ours = await built_offline(case, packages, platform, tmp_path / "offline")
    assert comparable(ours) == comparable(theirs)
    assert ours or case.is_module


@pytest.mark.sampled
@pytest.mark.parametrize("name", NAMES)
async def test_a_chart_of_the_corpus_is_built_as_the_daemon_applies_it(name: str, tmp_path: Path) -> None:
    version, _ = unpack(name, tmp_path / "unpacked")
    packages = tmp_path / "packages"
    shutil.copytree(version.folder, packages / name)
    chart = read_yaml_all((version.folder / "Chart.yaml").read_bytes(), what="chart")[0]
    case = Case(name, str(find(chart, "version")), version.values)
    async with open_world(tmp_path) as world:
        metadata: JsonObject = {"name": "prod", "labels": {CLUSTER_SCOPE_LABEL: ALLOWED}}
        namespace: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        await world.client.apply(namespace, field_manager="test", force=True)
        await world.local_repository(packages)
        platform = await platform_of(world)
        theirs = await applied(world, case)
        ours = await built_offline(case, packages, platform, tmp_path / "offline")
    assert ours
    assert comparable(ours) == comparable(theirs)


async def test_a_package_can_come_from_a_repository_built_by_a_kustomization(tmp_path: Path) -> None:
    case = next(each for each in CASES if not each.is_module)
    shutil.copytree(EXAMPLES / case.package, tmp_path / "packages" / case.package)
    files = {
        "c/app.yaml": write_yaml(resource(case)),
        "c/infrastructure.yaml": kustomization("infrastructure", "./infrastructure"),
        "infrastructure/repository.yaml": "apiVersion: wharfinger.dev/v1alpha1\nkind: PackageRepository\n"
        f"metadata: {{name: default}}\nspec: {{folder: {{path: {json.dumps(str(tmp_path / 'packages'))}}}}}\n",
    }
    result = await built(write_tree(tmp_path / "tree", files), tmp_path)
    assert failures(result) == {}
    assert result.manifests[Id(APPLICATION, "prod", "shop")]


async def test_a_version_range_is_built_with_the_newest_matching_version(tmp_path: Path) -> None:
    layout = OciLayout(tmp_path / "packages")
    for version in ("1.0.0", "1.2.0", "2.0.0"):
        named = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: version-{{ .Chart.Version }}}\n"
        folder = chart(tmp_path / version, "web", version, {"templates/version.yaml": named})
        await push_package(await load_package(folder, "web"), layout, "web", version)
    follows: JsonObject = {"packageName": "web", "versionRange": "^1"}
    obj: JsonObject = {**resource(Case("web", "1.0.0")), "spec": follows}
    files = {
        "app.yaml": write_yaml(obj),
        "repository.yaml": "apiVersion: wharfinger.dev/v1alpha1\nkind: PackageRepository\nmetadata: {name: default}\n"
        f"spec: {{layout: {{path: {json.dumps(str(tmp_path / 'packages'))}}}}}\n",
    }
    result = await built(write_tree(tmp_path / "tree", files), tmp_path, options=RunOptions("1.32.0", ("v1",)))
    assert not result.failed, failures(result)
    made = result.manifests[Id(APPLICATION, "prod", "shop")]
    assert "version-1.2.0" in {find_str(each.object, "metadata", "name") for each in made}


async def test_a_digest_can_be_pinned_for_a_package_from_git(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "packages")
    chart(folder / "web", "web", "1.0.0")
    commit(folder, {}, "v1.0.0")
    digest = (await load_package(folder / "web", "web")).manifest.descriptor.digest.text
    git = json.dumps({"url": f"file://{folder}", "tags": "v{version}"})
    repository = (
        "apiVersion: wharfinger.dev/v1alpha1\nkind: PackageRepository\nmetadata: {name: default}\n"
        f"spec: {{git: {git}}}\n"
    )
    for pinned, failed in ((digest, ""), (f"sha256:{'1' * 64}", f"the source now has the digest {digest}")):
        app = resource(Case("web", "1.0.0", more={"packageDigest": pinned}))
        files = {"app.yaml": write_yaml(app), "repository.yaml": repository}
        result = await built(write_tree(tmp_path / "tree", files), tmp_path)
        assert bool(result.failed) == bool(failed), failures(result)
        assert failed in str(failures(result))
