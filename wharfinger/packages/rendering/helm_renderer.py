"""Rendering with the real ``helm template`` (helm 3 and 4): a child process that sees only a chart and values.

A template must not depend on the machine it is rendered on, so Helm gets a separate environment: no plugins, no repositories,
no kubeconfig, and its home and caches in a folder that is deleted after the run. The environment names a proxy on which nothing
listens, so a JSON schema with a remote ``$ref`` causes an error and no request. The chart's folder is only read: Helm gets a
folder of links to its files (:mod:`wharfinger.packages.definition.chart_folder` for a package,
:mod:`wharfinger.packages.rendering.added_templates` for a plain chart with templates). Values are passed in a file of mode
0600, never on the command line, where every user of the machine could read them.

The exception is a chart that reads from the cluster (:mod:`wharfinger.packages.rendering.chart_use`). It gets a kubeconfig for
that run, with which it can read only what the release may read. The result of such a render may differ each time. If a lookup
is refused, the render fails, even if the template ignores the refusal. Without access to a cluster everything is rendered
offline: then a lookup finds nothing, as with ``helm template`` on a command line.

Errors: Helm's errors about chart or values are permanent. The error of a run that was terminated (time limit, signal) is
transient. Helm's errors are transient, too, if the chart reads from a cluster, because the next render may find other objects;
but a refused lookup is permanent.
"""

import os
import re
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeAlias

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, ShapeError, encode_json
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.packages.charts.chart import read_chart
from wharfinger.packages.definition.chart_folder import make_chart_folder
from wharfinger.packages.definition.crd_files import read_crds
from wharfinger.packages.definition.module_folder import TEMPLATES_FOLDER
from wharfinger.packages.errors import ArtifactError, LookupRefusedError, RenderError
from wharfinger.packages.rendering.added_templates import add_templates, link_chart
from wharfinger.packages.rendering.chart_engine import ChartEngine
from wharfinger.packages.rendering.chart_use import ChartUse, chart_use
from wharfinger.packages.rendering.end_mark import END_FILE, END_TEMPLATE, block_end, read_written, stopped_at_end
from wharfinger.packages.rendering.helm_command import server_arguments, template_arguments
from wharfinger.packages.rendering.helm_output import clean_message, read_output
from wharfinger.packages.rendering.helm_program import NOT_RUN, HelmProgram
from wharfinger.packages.rendering.notes_template import TEMPLATE, TEMPLATE_FILE, has_notes
from wharfinger.packages.rendering.program_versions import ProgramVersions
from wharfinger.packages.rendering.renderer import Rendered, RenderRequest
from wharfinger.process.command import Ending, Limits, Outcome
from wharfinger.process.errors import ProcessError
from wharfinger.process.ledger import ProcessLedger

REMOVE_S: Final = 0.5
"""The time, in seconds, that a render waits for its folder to be deleted, even if it is cancelled."""
TERM_GRACE_S: Final = 0.3
MAX_REMOVALS: Final = 8
MAX_VALUES: Final = 16 * 1024 * 1024
MAX_KNOWN: Final = 4096
"""The largest number of charts for which the renderer remembers whether they may read from the cluster."""

_NO_THREAD: Final = b"failed to create new OS thread"
_OUT_OF_MEMORY: Final = re.compile(
    rb"^(?:fatal error: |runtime: )(?:runtime: )?(?:out of|cannot allocate) memory", re.MULTILINE
)
_FATAL: Final = re.compile(rb"^(?:fatal error|panic): ([^\n]{1,200})", re.MULTILINE)
_GOROUTINE: Final = re.compile(rb"^goroutine \d+ ", re.MULTILINE)
FATAL_CODE: Final = 2
"""The exit code of a Go program after a fatal error of its runtime, which prints the reason and the goroutines' stacks."""


class ClusterLook(Protocol):
    """A cluster that one run of Helm may read, as given by a kubeconfig, and the lookups that were refused."""

    kubeconfig: JsonObject
    """The kubeconfig; Helm uses the first cluster in it."""

    @property
    def refusal(self) -> str:
        """The refused lookups, with the remedy; "" if no lookup was refused."""
        ...


ClusterAccess: TypeAlias = Callable[[str | None, str], AbstractAsyncContextManager[ClusterLook]]
"""A function that opens access to the cluster. The first parameter is the namespace that can be read (None: all namespaces).
The second is the user with whose rights it is read ("": the daemon itself).

The errors of the function are raised to the caller of the render.
"""


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """Limits of one render, and of the number of renders at a time, because each render needs a process of 50 MiB, or 300 MiB for
    a large chart.
    """

    wall_s: float = 60.0
    output_bytes: int = 64 * 1024 * 1024
    memory_bytes: int = 2 * 1024 * 1024 * 1024
    at_once: int = 2


class HelmRenderer:
    """A renderer that implements :class:`~wharfinger.packages.rendering.renderer.KeyedRenderer`.

    ``scratch`` is the folder for the files of renders. ``access`` is the cluster that charts may read from; None renders
    offline. ``engine`` renders the charts that do not read from the cluster, provided that it contains the same version of Helm
    as ``helm``; all other charts are rendered by a run of ``helm``. ``versions`` caches the versions of programs.
    """

    def __init__(
        self,
        helm: Path,
        scratch: Path,
        ledger: ProcessLedger | None = None,
        limits: RenderLimits | None = None,
        access: ClusterAccess | None = None,
        engine: ChartEngine | None = None,
        versions: ProgramVersions | None = None,
    ) -> None:
        self._engine = engine
        self._scratch = scratch
        self._limits = limits or RenderLimits()
        self._helm = HelmProgram(helm, self._limits.memory_bytes, ledger, versions)
        self._access = access
        self._known: OrderedDict[tuple[str, bool], ChartUse] = OrderedDict()
        self._slots = trio.CapacityLimiter(self._limits.at_once)
        self._threads = trio.CapacityLimiter(self._limits.at_once)
        self._removals = trio.CapacityLimiter(MAX_REMOVALS)

    async def identity(self, request: RenderRequest) -> str | None:
        """Return a text that changes with the program: the version of the Helm that renders the chart. Return None if the chart
        reads from the cluster. Raises RenderError.
        """
        if await self._may_look_up(request):
            return None
        version = await self._helm.version(self._workspace)
        return f"helm {version}"

    async def render(self, request: RenderRequest) -> Rendered:
        """Render one chart. Raises RenderError, and the errors of ``access``."""
        arguments = template_arguments(request)
        access = self._access if await self._may_look_up(request) else None
        async with self._slots, self._workspace() as work, _looking(access, request) as look:
            kubeconfig = None if look is None else look.kubeconfig
            if kubeconfig is not None:
                arguments += server_arguments(work / "kubeconfig", work / "out")
            prepared = await trio.to_thread.run_sync(_prepare, work, request, kubeconfig, limiter=self._threads)
            values = work / "values.yaml"
            engine = self._engine if look is None else None
            if engine is not None and await self._is_same_helm(engine):
                outcome = await self._by_engine(engine, request, prepared.chart, values)
            else:
                arguments = ["template", *arguments, f"--values={values}", str(prepared.chart)]
                outcome = await self._run(arguments, work, request, kubeconfig)
            if look is not None and look.refusal:
                raise LookupRefusedError(f"release {request.release}: {look.refusal}")
            hide = {
                str(values): "values",
                str(prepared.chart): "chart",
                f"{work / 'out'}/": "",
                str(work): "scratch",
                str(request.chart): "chart",
            }
            try:
                read = partial(_read, outcome, request, self._limits, hide, prepared)
                rendered = await trio.to_thread.run_sync(read, limiter=self._threads)
            except RenderError as error:
                error.transient = error.transient or access is not None
                raise
            return replace(rendered, crds=(*prepared.crds, *rendered.crds), looked=access is not None)

    async def _may_look_up(self, request: RenderRequest) -> bool:
        """Return whether the chart may read from the cluster when it is rendered."""
        if self._access is None:
            return False
        is_package = request.chart_file is not None
        key = (request.chart_digest, is_package)
        use = self._known.get(key)
        if use is None:
            look = partial(chart_use, request.chart, is_package=is_package)
            use = await trio.to_thread.run_sync(look, limiter=self._threads)
            if request.chart_digest:
                self._known[key] = use
        if key in self._known:
            self._known.move_to_end(key)
        while len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        try:
            return use.may_look_up(request.values)
        except ShapeError:
            return False  # such values are refused when they are written for helm

    async def _is_same_helm(self, engine: ChartEngine) -> bool:
        """Return whether the engine renders the same as ``helm``: it has the same version, and its program was not replaced."""
        if not engine.is_unchanged:
            return False
        version = await self._helm.version(self._workspace)
        return version.partition("+")[0] == engine.versions.helm

    async def _by_engine(self, engine: ChartEngine, request: RenderRequest, chart: Path, values: Path) -> Outcome:
        try:
            outcome = await engine.template(request, chart, values)
        except ProcessError as error:
            raise RenderError(f"release {request.release}: {error}", transient=True) from error
        if outcome.returncode in NOT_RUN:
            said = clean_message(outcome.stderr.decode(errors="replace"), {})
            raise RenderError(
                f"release {request.release}: the chart engine cannot be run: {said}; check --engine",
                transient=True,
            )
        return outcome

    async def _run(
        self, arguments: list[str], work: Path, request: RenderRequest, kubeconfig: JsonObject | None
    ) -> Outcome:
        # The time until SIGKILL is short, because Helm has nothing to clean up, and ignores SIGTERM while it waits for a
        # cluster.
        limits = Limits(wall_s=self._limits.wall_s, stdout_bytes=self._limits.output_bytes, term_grace_s=TERM_GRACE_S)
        try:
            return await self._helm.run(arguments, work, limits, kubeconfig)
        except ProcessError as error:
            raise RenderError(
                f"release {request.release}: {error}", transient=True
            ) from error  # transient: the chart is not at fault

    @asynccontextmanager
    async def _workspace(self) -> AsyncIterator[Path]:
        """Yield a folder of mode 0700 for one run, which is deleted afterwards."""
        try:
            self._scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
            work = Path(tempfile.mkdtemp(prefix="render-", dir=self._scratch.absolute()))
        except OSError as error:
            raise RenderError(
                f"{self._scratch}: a folder to render in cannot be made: {error.strerror}; check the disk and the owner of the "
                f"folder",
                transient=True,
            ) from error
        try:
            yield work
        finally:
            with trio.move_on_after(REMOVE_S, shield=True):
                # If the removal takes longer (a full disk, say), the next start of the daemon empties the scratch folder.
                remove = partial(shutil.rmtree, work, ignore_errors=True)
                await trio.to_thread.run_sync(remove, limiter=self._removals, abandon_on_cancel=True)


def _looking(access: ClusterAccess | None, request: RenderRequest) -> AbstractAsyncContextManager[ClusterLook | None]:
    if access is None:
        return nullcontext()
    return access(request.namespace if request.confined else None, request.reader)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The chart that Helm gets, and the CRDs that are not passed to Helm."""

    chart: Path
    crds: tuple[JsonObject, ...]
    out: Path | None = None
    """The folder into which Helm writes its output if the chart may read from the cluster; None otherwise. Such a run of Helm
    stops with an error when it tries to write the end mark; ``end`` is the path of this mark.
    """
    end: Path = Path()


def _prepare(work: Path, request: RenderRequest, kubeconfig: JsonObject | None) -> _Prepared:
    """Write Helm's input into ``work``: the values, a kubeconfig, and the chart if it needs a separate folder."""
    try:
        values = write_yaml(request.values).encode()
    except FormatError as error:
        raise RenderError(f"release {request.release}: the values cannot be passed to helm: {error}") from error
    if len(values) > MAX_VALUES:
        raise RenderError(f"release {request.release}: {len(values)} bytes of values is over the limit of {MAX_VALUES}")
    try:
        _write(work / "values.yaml", values)
        if kubeconfig is not None:
            _write(work / "kubeconfig", encode_json(kubeconfig))
    except OSError as error:
        raise RenderError(
            f"release {request.release}: the values cannot be written: {error.strerror}; check the disk",
            transient=True,
        ) from error
    prepared = _prepare_chart(work / "chart", request)
    if kubeconfig is None:
        return prepared
    try:
        return replace(prepared, out=work / "out", end=block_end(work / "out", read_chart(prepared.chart).name))
    except ArtifactError as error:
        raise RenderError(f"release {request.release}: {error}") from error
    except OSError as error:
        raise _no_room(error) from error


def _prepare_chart(made: Path, request: RenderRequest) -> _Prepared:
    chart = request.chart.absolute()
    crds: tuple[JsonObject, ...] = ()
    if request.chart_file is not None:
        make_chart_folder(request.chart, request.chart_file, made)
        chart, crds = made, read_crds(request.chart)
    added = {TEMPLATE_FILE: TEMPLATE} if has_notes(chart) else {}
    if (chart / TEMPLATES_FOLDER).is_dir():
        added[END_FILE] = END_TEMPLATE
        try:
            if chart != made:
                link_chart(chart, made)
            add_templates(made, added)
        except OSError as error:
            raise _no_room(error) from error
        chart = made
    return _Prepared(chart, crds)


def _no_room(error: OSError) -> RenderError:
    return RenderError(f"the chart's folder for helm cannot be made: {error.strerror}; check the disk", transient=True)


def _write(path: Path, data: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:  # noqa: PTH123
        file.write(data)


def _read(
    outcome: Outcome, request: RenderRequest, limits: RenderLimits, hide: dict[str, str], prepared: _Prepared
) -> Rendered:
    """Read what helm rendered. Blocking. Raises RenderError."""
    if prepared.out is None:
        return read_output(_text(outcome, request, limits, hide, prepared.chart))
    if stopped_at_end(outcome.stderr.decode(errors="replace"), prepared.end):
        outcome = replace(outcome, returncode=0)
    said = _text(outcome, request, limits, hide, prepared.chart)
    try:
        return read_output(read_written(prepared.out, said, limits.output_bytes))
    except OSError as error:
        raise _no_room(error) from error
    except UnicodeDecodeError as error:
        raise _no_text(request, error) from error


def _no_text(request: RenderRequest, error: UnicodeDecodeError) -> RenderError:
    return RenderError(f"release {request.release}: the rendered chart is not UTF-8 (byte {error.start})")


def _text(outcome: Outcome, request: RenderRequest, limits: RenderLimits, hide: dict[str, str], chart: Path) -> str:
    """Return the output of helm. Raises RenderError with the reason if helm failed."""
    release = f"release {request.release}"
    if outcome.ending is Ending.DEADLINE:
        raise RenderError(
            f"{release}: helm template took longer than {limits.wall_s:g} s and was ended", transient=True
        )
    if outcome.ending is Ending.OUTPUT_LIMIT:
        raise RenderError(f"{release}: the chart renders to more than {limits.output_bytes} bytes; make it render less")
    if outcome.returncode in NOT_RUN:
        said = clean_message(outcome.stderr.decode(errors="replace"), hide)
        raise RenderError(f"{release}: helm cannot be run: {said}; check --helm", transient=True)
    if not outcome.ok and _OUT_OF_MEMORY.search(outcome.stderr):
        most = limits.memory_bytes // 1024**2
        raise RenderError(f"{release}: the chart takes more than {most} MiB of memory to render; make it smaller")
    if (fatal := _fatal_error(outcome)) is not None:
        if _NO_THREAD in outcome.stderr:
            raise RenderError(
                f"{release}: helm cannot start a thread; raise the limit of processes (ulimit -u, TasksMax, pids.max)",
                transient=True,
            )
        raise RenderError(
            f"{release}: {_chart_text(chart)} ends the program that renders it: {fatal}; look for a template that calls itself, "
            "or for a value that contains itself (`set`, `merge`), and correct the chart"
        )
    if not outcome.ok:
        killed = outcome.returncode < 0
        said = clean_message(outcome.stderr.decode(errors="replace"), hide)
        why = f"helm template: {outcome.describe()}" if killed or not said else said
        raise RenderError(f"{release}: {why}", transient=killed)
    try:
        return outcome.stdout.decode()
    except UnicodeDecodeError as error:
        raise _no_text(request, error) from error


def _fatal_error(outcome: Outcome) -> str | None:
    """Return the reason if the runtime of a Go program ended it with a fatal error, such as ``stack overflow``; otherwise
    None.
    """
    found = _FATAL.search(outcome.stderr)
    if outcome.returncode != FATAL_CODE or found is None or not _GOROUTINE.search(outcome.stderr):
        return None
    return "".join(character for character in found[1].decode(errors="replace") if character.isprintable())


def _chart_text(chart: Path) -> str:
    try:
        return f"the chart {read_chart(chart).name}"
    except ArtifactError:
        return "the chart"
