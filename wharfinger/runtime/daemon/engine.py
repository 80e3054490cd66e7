"""The chart engine of a daemon, which is started if its program exists, and the renderer of packages, which uses it."""

import logging
import shutil
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from wharfinger.packages.errors import RenderError
from wharfinger.packages.kustomizing.kustomize import KustomizeBuilder
from wharfinger.packages.kustomizing.manifest_renderer import ManifestRenderer
from wharfinger.packages.rendering.chart_engine import ChartEngine, EngineLimits, open_chart_engine
from wharfinger.packages.rendering.entry_cache import EntryCache
from wharfinger.packages.rendering.helm_renderer import RenderLimits
from wharfinger.packages.rendering.program_versions import ProgramVersions
from wharfinger.packages.rendering.render_cache import CachingRenderer
from wharfinger.packages.rendering.renderer import KeyedRenderer
from wharfinger.process.ledger import ProcessLedger

log = logging.getLogger(__name__)

ENGINE: Final = "wharfinger-engine"
NO_ENGINE: Final = "none"


def package_renderer(charts: KeyedRenderer, builder: KustomizeBuilder, entries: EntryCache) -> CachingRenderer:
    """Return the renderer of all packages: it uses ``charts`` for packages with a chart, and ``builder`` for all others."""
    return CachingRenderer(ManifestRenderer(charts, builder), entries)


def find_kubectl() -> Path | None:
    """Return the path of ``kubectl`` on PATH; None if there is none. If the daemon has no chart engine,
    ``kubectl`` builds kustomizations.
    """
    found = shutil.which("kubectl")
    return None if found is None else Path(found).absolute()


@asynccontextmanager
async def open_engine(
    program: Path | None,
    scratch: Path,
    ledger: ProcessLedger | None,
    limits: RenderLimits,
    versions: ProgramVersions | None = None,
) -> AsyncGenerator[ChartEngine | None, None]:
    """Run ``program`` as the chart engine while the block runs, and yield the engine.

    If the program is missing or cannot be run, log why, and yield None. ``versions`` has the versions of programs that were
    run before, so that the program is not run only to learn its version.
    """
    if program is None:
        log.info("charts are rendered by helm template; `make engine` builds the chart engine, which is faster")
        yield None
        return
    folder = scratch / "engine"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    bounds = EngineLimits(limits.wall_s, limits.output_bytes, limits.memory_bytes, limits.at_once)
    async with AsyncExitStack() as stack:
        engine = None
        try:
            engine = await stack.enter_async_context(open_chart_engine(program, folder, ledger, bounds, versions))
        except RenderError as error:
            log.warning("charts are rendered by helm template: %s", error)
        else:
            log.info(
                "charts that do not call lookup are rendered by the chart engine (built with the library of helm %s)",
                engine.versions.helm,
            )
        yield engine
