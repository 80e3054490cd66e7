"""The programs, pools and folders that offline commands work with, opened once for each command.

All commands of a user can share the cache folder, because its renders, git commits and charts are content-addressed, and each is
complete or absent. The store of packages belongs to one process at a time; a second process works with a temporary store.
"""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wharfinger.formats.proxies import Proxies
from wharfinger.hooks.watching.jq_pool import open_jq_pool
from wharfinger.offline.building.chart_makers import ChartMakers
from wharfinger.offline.building.charts import FolderDigests
from wharfinger.offline.building.resource_templates import EngineTemplates
from wharfinger.offline.controllers.package import PackageTools
from wharfinger.offline.orchestrator.orchestrator import Tools
from wharfinger.offline.orchestrator.tree_packs import TreePacks
from wharfinger.offline.sources.cache_folder import PACKAGES, RESULTS
from wharfinger.offline.sources.git import GitFetcher
from wharfinger.offline.sources.helm_repository import HelmRepositories
from wharfinger.offline.sources.oci import OciFetcher
from wharfinger.offline.store.kinds import GIT_REPOSITORY, OCI_REPOSITORY
from wharfinger.packages.errors import RegistryError, StoreError
from wharfinger.packages.kustomizing.build_cache import BuildCache
from wharfinger.packages.kustomizing.engine_kustomize import EngineKustomize
from wharfinger.packages.kustomizing.kustomize import KubectlKustomize, KustomizeBuilder
from wharfinger.packages.kustomizing.manifest_renderer import ManifestRenderer
from wharfinger.packages.network.proxies import read_proxies
from wharfinger.packages.registry.docker_logins import DockerLogins
from wharfinger.packages.rendering.entry_cache import EntryCache
from wharfinger.packages.rendering.helm_renderer import HelmRenderer, RenderLimits
from wharfinger.packages.rendering.program_versions import ProgramVersions
from wharfinger.packages.rendering.render_cache import CachingRenderer
from wharfinger.packages.settings.cel_pool import open_cel_pool
from wharfinger.packages.sources.source import Network
from wharfinger.packages.store.disk_store import open_store
from wharfinger.packages.store.store import Store
from wharfinger.runtime.daemon.engine import open_engine

_SCRATCH: Final = "wharfinger-build-"


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """The programs to use, and where files are cached.

    If ``engine``, the path of the chart engine, is None, ``helm`` alone renders charts. If ``kubectl`` is None, only the chart
    engine builds kustomizations.
    """

    helm: Path
    kubectl: Path | None
    cache: Path
    engine: Path | None = None
    packages: Path | None = None
    docker_config: Path | None = None
    network: bool = True
    at_once: int = 2


@asynccontextmanager
async def open_tools(options: ToolOptions) -> AsyncIterator[Tools]:
    """Open everything that an orchestrator needs. Raises StoreError, for example if a folder cannot be created."""
    try:
        options.cache.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(prefix=_SCRATCH, ignore_cleanup_errors=True)
    except OSError as error:
        raise StoreError(
            f"{error.filename}: cannot create the folder: {error.strerror}; check --cache-dir and TMPDIR"
        ) from error
    with scratch as place:
        folder = Path(place)
        limits = RenderLimits(at_once=options.at_once)
        async with AsyncExitStack() as stack:
            store = await _store(stack, options.cache, folder)
            entries = EntryCache(options.cache / RESULTS, short_lived=True)
            versions, digests = ProgramVersions(entries), FolderDigests()
            engine = await stack.enter_async_context(open_engine(options.engine, folder, None, limits, versions))
            jq = await stack.enter_async_context(open_jq_pool(None, workers=1))
            rules = await stack.enter_async_context(open_cel_pool(None, workers=1))
            helm = HelmRenderer(options.helm, folder / "renders", limits=limits, engine=engine, versions=versions)
            kubectl = KubectlKustomize(options.kubectl, folder, network=options.network, at_once=options.at_once)
            git = GitFetcher(options.cache, network=options.network)
            logins = DockerLogins(options.docker_config) if options.docker_config is not None else None
            sources = Network(_proxies(), logins=logins)
            oci = OciFetcher(store, network=options.network, sources=sources)
            building: KustomizeBuilder = kubectl
            if engine is not None:
                building = EngineKustomize(engine, kubectl, versions, BuildCache(entries))
            yield Tools(
                scratch=folder,
                renderer=CachingRenderer(ManifestRenderer(helm, building), entries, digests.is_current),
                digests=digests,
                kustomize=building,
                templates=EngineTemplates(engine),
                packages=PackageTools(
                    store, jq.of("build"), rules, options.packages, options.network, sources, building
                ),
                oci=oci,
                helm_repositories=HelmRepositories(options.cache, network=options.network, sources=sources),
                fetchers={GIT_REPOSITORY: git, OCI_REPOSITORY: oci},
                makers=ChartMakers(entries),
                packs=TreePacks(entries),
            )


def _proxies() -> Proxies:
    """Return the proxies of the environment. Raises StoreError for a proxy that cannot be used, because callers of this module
    expect no other error.
    """
    try:
        return read_proxies(os.environ)
    except RegistryError as error:
        raise StoreError(str(error), transient=False) from error


async def _store(stack: AsyncExitStack, cache: Path, scratch: Path) -> Store:
    try:
        return await stack.enter_async_context(open_store(cache / PACKAGES))
    except StoreError:  # usually because another process has opened it
        return await stack.enter_async_context(open_store(scratch / "packages"))


def find_program(name: str) -> Path | None:
    """Return the absolute path of a program, or None if it does not exist; ``name`` is a path, or a name that is searched on
    PATH.
    """
    found = shutil.which(name)
    return None if found is None else Path(found).absolute()  # absolute, because the program is run in other folders
