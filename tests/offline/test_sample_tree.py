"""The staging cluster of the sample tree. All its sources are in a registry that the tests start, and in git repositories that
they make.

The folder ``charts`` is left out of the copy of the tree, so the tree's own chart comes from the registry.
"""

import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.offline.sources.test_git import git
from tests.offline.support import FLEET, OPTIONS, config_map, failures, flux_id, tool_options, write_tree
from tests.packages.rendering.test_chart_engine import engine_program
from tests.packages.support.charts import chart
from tests.programs import ROOT
from tests.registry_server import open_registry_server
from wharfinger.formats.json.value import JsonValue, find
from wharfinger.offline.orchestrator.orchestrator import Config, open_orchestrator
from wharfinger.offline.orchestrator.result import Result
from wharfinger.offline.orchestrator.toolbox import open_tools
from wharfinger.offline.output.documents import yaml_documents
from wharfinger.offline.store.kinds import (
    APPLICATION,
    ARGO_APPLICATION,
    GIT_REPOSITORY,
    HELM_RELEASE,
    HELM_REPOSITORY,
    KUSTOMIZATION,
    OCI_REPOSITORY,
    RESOURCE_SET,
)
from wharfinger.packages.registry.address import RegistryAddress
from wharfinger.packages.registry.oci_registry import open_registry
from wharfinger.packages.registry.pusher import load_package, push_package
from wharfinger.runtime.fixpoint.model import Id

RELEASES = ("accounts", "billing", "catalog", "checkout", "search", "shipping")
TENANTS = Id(RESOURCE_SET, "flux-system", "tenants")


@dataclass(frozen=True)
class Landscape:
    """A copy of the sample tree. Its sources have the addresses of a local registry, and of a folder with git repositories."""

    tree: Path
    repositories: Path
    cache: Path

    async def built(self, *, workers: int = 4, cache: str = "cache") -> Result:
        """Build the staging cluster. The build uses no network beyond this machine, and gets the package from the registry."""
        options = replace(tool_options(self.cache / cache), engine=engine_program())
        config = Config(self.tree / "clusters" / "staging", OPTIONS, root=self.tree, concurrency=workers)
        async with open_tools(options) as tools, open_orchestrator(config, tools) as orchestrator:
            return await orchestrator.render()


def repository(folder: Path, files: Mapping[str, str], tag: str) -> None:
    """Make a git repository with one tagged commit on ``main``."""
    write_tree(folder, files)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    git(folder, "tag", tag)


async def push(registry: RegistryAddress) -> None:
    """Push the chart and the package of the tree into a registry."""
    async with open_registry(registry, scheme="http") as opened:
        web = await load_package(FLEET / "charts" / "web", "web")
        await push_package(web, opened, "charts/web", "0.3.0")
        package = await load_package(ROOT / "examples" / "web-service", "web-service")
        await push_package(package, opened, "packages/web-service", "1.0.0")


@asynccontextmanager
async def open_landscape(folder: Path) -> AsyncIterator[Landscape]:
    """Start a registry, make the repositories, and copy the tree with the addresses of the registry and the repositories."""
    repositories = folder / "repositories"
    repository(
        repositories / "dashboards", {"dashboards/nodes.yaml": config_map("nodes", "", cluster="${cluster}")}, "1.2.0"
    )
    page = chart(
        folder / "page", "page", files={"templates/config.yaml": config_map("page", "", host="{{ .Values.host }}")}
    )
    shutil.copytree(page, repositories / "status-page" / "chart")
    repository(repositories / "status-page", {}, "1.0.0")
    tree = shutil.copytree(FLEET, folder / "fleet", ignore=shutil.ignore_patterns("charts"))
    async with open_registry_server(folder / "registry") as registry:
        await push(registry)
        settings = tree / "clusters" / "staging" / "settings.yaml"
        text = settings.read_text()
        for old, new in (
            ("registry: registry.example.com", f"registry: {registry}"),
            ("registry_scheme: HTTPS", "registry_scheme: HTTP"),
            ("repositories: https://git.example.com", f"repositories: file://{repositories}"),
        ):
            assert old in text
            text = text.replace(old, new)
        settings.write_text(text)
        yield Landscape(tree, repositories, folder)


def value(result: Result, who: Id, *path: str | int) -> JsonValue:
    """Return a field of an object in the result."""
    return find(next(each.object for each in result.objects if each.id == who), *path)


def reads(result: Result, who: Id) -> set[str]:
    """Return the kinds of the objects that a node has read."""
    return {each.kind for each in result.depends_on[who]}


@pytest.mark.slow
async def test_the_sample_tree_is_built_from_a_local_registry_and_repositories(tmp_path: Path) -> None:
    async with open_landscape(tmp_path) as landscape:
        result = await landscape.built()
    assert not result.failed, failures(result)
    assert (result.warnings, dict(result.orphans), dict(result.skipped)) == ((), {}, {})
    assert len(result.objects) >= 60
    assert "${" not in yaml_documents(result.objects)
    _check_the_shape(result)
    _check_the_releases(result)
    _check_the_applications(result)


def _check_the_shape(result: Result) -> None:
    """Check that the Kustomizations of infrastructure and apps are made, that variables are substituted, and that a
    Kustomization from a repository outside of the tree is built.
    """
    bootstrap = flux_id("Kustomization", "flux-system")
    built = {each.id.name for each in result.manifests[bootstrap] if each.id.kind == KUSTOMIZATION}
    assert built == {
        *("namespaces", "policies", "monitoring", "sources"),
        *("apps", "dashboards", "packages", "pages", "tenants"),
        "flux-system",
    }
    assert value(result, Id("ConfigMap", "apps", "web-defaults"), "data", "values.yaml") == (
        "replicas: 1\nresources:\n  requests:\n    cpu: 100m\n"
    )
    dashboards = flux_id("Kustomization", "dashboards")
    assert Id(GIT_REPOSITORY, "flux-system", "dashboards") in result.depends_on[dashboards]
    assert value(result, Id("ConfigMap", "monitoring", "nodes"), "data") == {"cluster": "staging"}


def _check_the_releases(result: Result) -> None:
    """Check that the HelmReleases, whose chart is in the registry, are rendered, and that a ResourceSet depends on objects of
    two other kinds.
    """
    made = {each.id.name for each in result.manifests[flux_id("Kustomization", "apps")] if each.id.kind == HELM_RELEASE}
    assert made == {*RELEASES}
    for name in RELEASES:
        who = Id(HELM_RELEASE, "apps", name)
        assert (OCI_REPOSITORY if name == "accounts" else HELM_REPOSITORY) in reads(result, who)
        assert len(result.manifests[who]) == 6
        assert value(result, Id("ConfigMap", "apps", name), "data", "HOST") == f"{name}.staging.example.com"
        assert value(result, Id("Deployment.apps", "apps", name), "spec", "replicas") == 1
    assert Id(HELM_RELEASE, "apps", "accounts") in result.depends_on[Id(HELM_RELEASE, "apps", "checkout")]
    assert {HELM_RELEASE, KUSTOMIZATION} <= reads(result, TENANTS)
    assert {each.id.name for each in result.manifests[TENANTS] if each.id.kind == "Namespace"} == {
        "tenant-red",
        "tenant-blue",
    }


def _check_the_applications(result: Result) -> None:
    """Check the one Application of Wharfinger and the one of Argo CD."""
    (ours,) = (each.id for each in result.objects if each.id.kind == APPLICATION)
    assert ours == Id(APPLICATION, "packages", "shop-window")
    assert "PackageRepository.wharfinger.dev" in reads(result, ours)
    assert "Deployment.apps" in {each.id.kind for each in result.manifests[ours]}
    (argo,) = (each.id for each in result.objects if each.id.kind == ARGO_APPLICATION)
    assert [each.id for each in result.manifests[argo]] == [Id("ConfigMap", "apps", "page")]
    assert value(result, Id("ConfigMap", "apps", "page"), "data", "host") == "status.staging.example.com"


@pytest.mark.slow
async def test_repeated_builds_have_the_same_bytes(tmp_path: Path) -> None:
    """The tree is built with 1, 2 and 4 workers, three times with each number. The cache is empty at the first build with each
    number.
    """
    async with open_landscape(tmp_path) as landscape:
        results = [
            await landscape.built(workers=workers, cache=f"cache-{workers}") for workers in (1, 2, 4) for _ in range(3)
        ]
    assert not any(result.failed for result in results)
    assert len({yaml_documents(result.objects) for result in results}) == 1


@pytest.mark.slow
async def test_only_dependents_of_an_unreachable_registry_fail(tmp_path: Path) -> None:
    """The registry is stopped before the build. The ResourceSet ``tenants`` is blocked, because the HelmRelease ``accounts``,
    on which it depends, is blocked.
    """
    async with open_landscape(tmp_path) as landscape:
        pass
    result = await landscape.built()
    broken = {who.name for who, each in result.failed.items() if each.is_primary}
    assert broken == {"web", "shop-window"}
    blocked = {who.name: {each.name for each in blockers} for who, blockers in result.blocked.items()}
    assert set(blocked) == {*RELEASES, "tenants"}
    assert (blocked["accounts"], blocked["tenants"]) == ({"web"}, {"accounts"})
    names = {each.id.name for each in result.objects}
    assert {"page", "nodes", "agent", "default-deny", "web-defaults"} <= names
    assert "tenant-red" not in names
