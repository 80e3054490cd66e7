"""The builder that uses the resident chart engine, with a cache of its builds.

The engine has kustomize's own library, and returns the same as ``kubectl kustomize``, without starting a program. It is used
only if its library has the same version as the kustomize in ``kubectl``, or if there is no ``kubectl``, so both builders give
the same result. The engine has no access to the network, so ``kubectl`` builds a kustomization that names something remote.
"""

from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.kustomizing.build_cache import BuildCache, BuildKey
from wharfinger.packages.kustomizing.kustomization import Folder, Kustomization, Overlay
from wharfinger.packages.kustomizing.kustomize import (
    KubectlKustomize,
    KustomizeBuilder,
    KustomizeError,
    check_patches,
    read_built,
)
from wharfinger.packages.rendering.chart_engine import ChartEngine, FolderBuild
from wharfinger.packages.rendering.entry_cache import EntryCache
from wharfinger.packages.rendering.program_versions import ProgramVersions
from wharfinger.process.errors import ProcessError

_PLACE: Final = ".wharfinger-overlay"
"""The name of the folder of a generated kustomization. The folder exists only in the engine, not on the disk."""
FORBIDDEN: Final = "a package is built without a network"
"""The text that messages give as the reason if a build would access a place outside of its package."""
_REMOTE: Final = f"{FORBIDDEN}, but its kustomization names something outside of the package; copy it into the package"
_NO_BUILDER: Final = "a kustomization needs the chart engine, or kubectl on PATH; build the engine with `make engine`"


class EngineKustomize:
    """A builder that uses the chart engine if ``kubectl`` has the same version of kustomize, or does not exist; otherwise it
    uses ``kubectl``.
    """

    def __init__(
        self, engine: ChartEngine, kubectl: KubectlKustomize, versions: ProgramVersions, cache: BuildCache
    ) -> None:
        self._engine = engine
        self._kubectl = kubectl
        self._versions = versions
        self._cache = cache
        self._asking = trio.Lock()
        self._is_same: bool | None = None

    async def build(self, what: Kustomization) -> tuple[JsonObject, ...]:
        """Build a kustomization. Raises KustomizeError."""
        check_patches(what)
        if not await self._is_same_kustomize():
            return await self._kubectl.build(what)
        key, place = _asked(what, self._engine.versions.kustomize)
        async with self._cache.locks.held(key.digest):
            known = await self._cache.get(key)
            return await self._built(what, key, place) if known is None else known

    async def _built(self, what: Kustomization, key: BuildKey, place: Path) -> tuple[JsonObject, ...]:
        try:
            result = await self._engine.kustomize(FolderBuild(place, key.files))
        except ProcessError as error:
            raise KustomizeError(f"the chart engine: {error}", transient=True) from error
        if result.is_remote:
            return await self._kubectl.build(what)
        objects = await read_built(result.outcome, what, place, self._engine.limits.wall_s)
        if result.seen is not None:
            await self._cache.put(key, result.seen, objects)
        return objects

    async def _is_same_kustomize(self) -> bool:
        async with self._asking:
            if self._is_same is None:
                own = self._engine.versions.kustomize
                same = not self._kubectl.is_there or await self._kubectl.version(self._versions) == own
                self._is_same = bool(own) and same
            return self._is_same


def kustomize_builder(
    engine: ChartEngine | None, kubectl: Path | None, scratch: Path, entries: EntryCache
) -> KustomizeBuilder:
    """Return a builder for packages and patches that uses no network: the engine, or ``kubectl`` if there is no engine."""
    program = KubectlKustomize(
        kubectl if engine is None else None,
        scratch,
        network=False,
        forbidden=FORBIDDEN,
        missing=_NO_BUILDER if engine is None else _REMOTE,
    )
    if engine is None:
        return program
    return EngineKustomize(engine, program, ProgramVersions(entries), BuildCache(entries))


def _asked(what: Kustomization, version: str) -> tuple[BuildKey, Path]:
    """Return the key of a build, and the folder in which it runs. Blocking."""
    match what:
        case Folder():
            place = start = what.folder.resolve()
            return BuildKey(version, what.name, {}, start), place
        case Overlay():
            start = what.folder.resolve()
            place = start.parent / _PLACE
            return BuildKey(version, what.name, what.files(place), start), place
        case _:
            place = Path("/") / _PLACE
            return BuildKey(version, what.name, what.files(place), place), place
