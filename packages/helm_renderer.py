"""Rendering with the real ``helm template`` (helm 3 and 4): a child process that sees a chart, values, and nothing else.

A template must not depend on where it is rendered, so Helm gets an environment of its own: no plugins, no repositories, no
kubeconfig, home and caches in a folder of this run that is deleted afterwards, and a proxy that nobody listens on, so that
a JSON schema with a remote ``$ref`` fails at once instead of making a request on a chart's behalf. The chart's folder is only
read; of a package, Helm gets a folder of links to what is its chart (:mod:`wharfinger.packages.chart_folder`). Values travel in
a file of mode 0600, never on the command line, where every user of the machine could read them.

A chart decides how much memory its templates take, so the run has a limit: RLIMIT_DATA, which the kernel holds against the heap
that Go has really mapped (RLIMIT_AS would count what Go only reserves). A shell sets it, and becomes Helm.

Errors: what Helm says about chart or values is permanent; a run that was cut (time, a signal) is transient.
"""

import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonObject
from wharfinger.formats.yaml_writer import write_yaml
from wharfinger.packages.chart_folder import make_chart_folder
from wharfinger.packages.crd_files import read_crds
from wharfinger.packages.errors import RenderError
from wharfinger.packages.helm_output import clean_message, read_output
from wharfinger.packages.renderer import Rendered, RenderRequest
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Ending, Limits, Outcome
from wharfinger.process.errors import ProcessError
from wharfinger.process.ledger import ProcessLedger

MAX_API_VERSIONS: Final = 10_000
MAX_API_BYTES: Final = 512 * 1024
"""All ``--api-versions`` flags together; Linux takes 2 MiB of arguments and environment."""
REMOVE_S: Final = 0.5
"""How long a render, cancelled or not, waits for its folder to be gone."""
MAX_REMOVALS: Final = 8
MAX_VALUES: Final = 16 * 1024 * 1024

_RELEASE: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*\Z")
_NAMESPACE: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\Z")
_KUBE_VERSION: Final = re.compile(r"v?\d{1,4}(?:\.\d{1,4}){1,2}(?:[-+][0-9A-Za-z.+-]{1,100})?\Z")
_API_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9./-]{0,300}\Z")

_LIMITED: Final = 'ulimit -d "$0" 2>/dev/null; exec "$@"'
"""Where a stricter limit is set already, that one stays."""
_NOT_RUN: Final = frozenset({126, 127})
"""What the shell exits with where it cannot become Helm."""
_OUT_OF_MEMORY: Final = re.compile(
    rb"^(?:fatal error: |runtime: )(?:runtime: )?(?:out of|cannot allocate) memory", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class RenderLimits:
    """Bounds of one render, and how many run at a time (a render costs a process of 50 MiB; large charts take 300)."""

    wall_s: float = 60.0
    output_bytes: int = 64 * 1024 * 1024
    memory_bytes: int = 2 * 1024 * 1024 * 1024
    at_once: int = 2


class HelmRenderer:
    """Implements :class:`~wharfinger.packages.renderer.Renderer`. ``scratch`` is a folder for what a run needs while it runs."""

    def __init__(
        self, helm: Path, scratch: Path, ledger: ProcessLedger | None = None, limits: RenderLimits | None = None
    ) -> None:
        self._helm = helm
        self._scratch = scratch
        self._ledger = ledger
        self._limits = limits or RenderLimits()
        self._slots = trio.CapacityLimiter(self._limits.at_once)
        self._threads = trio.CapacityLimiter(self._limits.at_once)
        self._removals = trio.CapacityLimiter(MAX_REMOVALS)

    async def render(self, request: RenderRequest) -> Rendered:
        """Render one chart. Raises RenderError."""
        arguments = _arguments(request)
        async with self._slots, self._workspace() as work:
            values, made = work / "values.yaml", work / "chart"
            crds = await trio.to_thread.run_sync(_prepare, values, made, request, limiter=self._threads)
            chart = request.chart.absolute() if request.chart_file is None else made
            outcome = await self._helm_template([*arguments, f"--values={values}", str(chart)], work, request)
            hide = {str(values): "values", str(made): "chart", str(work): "scratch", str(request.chart): "chart"}
            text = _text(outcome, request, self._limits, hide)
            rendered = await trio.to_thread.run_sync(read_output, text, limiter=self._threads)
            return replace(rendered, crds=(*crds, *rendered.crds))

    async def _helm_template(self, arguments: list[str], work: Path, request: RenderRequest) -> Outcome:
        limit = str(self._limits.memory_bytes // 1024)
        run = ("/bin/sh", "-c", _LIMITED, limit, str(self._helm), "template", *arguments)
        command = Command(run, work, _environment(work))
        limits = Limits(wall_s=self._limits.wall_s, stdout_bytes=self._limits.output_bytes)
        try:
            return await run_child(command, limits, ledger=self._ledger)
        except ProcessError as error:
            raise RenderError(
                f"release {request.release}: {error}", transient=True
            ) from error  # helm is ours, not the chart's

    @asynccontextmanager
    async def _workspace(self) -> AsyncIterator[Path]:
        """A folder of mode 0700 for one run, gone afterwards."""
        try:
            self._scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
            work = Path(tempfile.mkdtemp(prefix="render-", dir=self._scratch))
        except OSError as error:
            raise RenderError(
                f"{self._scratch}: no folder to render in: {error.strerror}; look at the disk and at the owner of the folder",
                transient=True,
            ) from error
        try:
            yield work
        finally:
            with trio.move_on_after(REMOVE_S, shield=True):
                # What takes longer, a full disk say, is emptied with the scratch folder when the daemon starts.
                remove = partial(shutil.rmtree, work, ignore_errors=True)
                await trio.to_thread.run_sync(remove, limiter=self._removals, abandon_on_cancel=True)


def _arguments(request: RenderRequest) -> list[str]:
    """Everything after ``helm template`` but the values and the chart. What could pass for another flag is refused."""
    if not _RELEASE.match(request.release) or len(request.release) > 53:
        raise RenderError(
            f"{request.release[:100]!r} cannot be a release name: lower-case, digits, '-', at most 53 characters"
        )
    if not _NAMESPACE.match(request.namespace):
        raise RenderError(f"{request.namespace[:100]!r} cannot be a namespace")
    if not _KUBE_VERSION.match(request.kube_version):
        raise RenderError(f"{request.kube_version[:100]!r} is no version of Kubernetes, such as v1.37.0")
    arguments = [
        request.release,
        f"--namespace={request.namespace}",
        f"--kube-version={request.kube_version}",
    ]
    arguments += ["--include-crds", *(["--is-upgrade"] if request.is_upgrade else [])]
    versions = sorted(set(request.api_versions))
    for version in versions:
        if not _API_VERSION.match(version):
            raise RenderError(f"{version[:100]!r} is no API version, such as apps/v1 or apps/v1/Deployment")
    flags = [f"--api-versions={version}" for version in versions]
    if len(flags) > MAX_API_VERSIONS or sum(map(len, flags)) > MAX_API_BYTES:
        raise RenderError(f"{len(flags)} API versions are more than helm can be given; leave out those of unused CRDs")
    return arguments + flags


def _environment(work: Path) -> dict[str, str]:
    nowhere = "http://127.0.0.1:9"
    return {
        "PATH": os.defpath,
        "HOME": str(work),
        "TMPDIR": str(work),
        "HELM_CACHE_HOME": str(work / "cache"),
        "HELM_CONFIG_HOME": str(work / "config"),
        "HELM_DATA_HOME": str(work / "data"),
        "HELM_PLUGINS": str(work / "plugins"),
        "KUBECONFIG": os.devnull,
        "HTTP_PROXY": nowhere,
        "HTTPS_PROXY": nowhere,
        "LC_ALL": "C.UTF-8",
        "GOTRACEBACK": "none",  # the reason is the first line; a megabyte of stacks would push it out
    }


def _prepare(values: Path, chart: Path, request: RenderRequest) -> tuple[JsonObject, ...]:
    """Write what Helm reads: the values, and for a package its chart. Returns the CRDs that Helm does not see."""
    _write_values(values, request)
    if request.chart_file is None:
        return ()
    make_chart_folder(request.chart, request.chart_file, chart)
    return read_crds(request.chart)


def _write_values(path: Path, request: RenderRequest) -> None:
    try:
        data = write_yaml(request.values).encode()
    except FormatError as error:
        raise RenderError(f"release {request.release}: the values cannot be given to helm: {error}") from error
    if len(data) > MAX_VALUES:
        raise RenderError(f"release {request.release}: {len(data)} bytes of values is over the limit of {MAX_VALUES}")
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:  # noqa: PTH123
            file.write(data)
    except OSError as error:
        raise RenderError(
            f"release {request.release}: the values cannot be written: {error.strerror}; look at the disk",
            transient=True,
        ) from error


def _text(outcome: Outcome, request: RenderRequest, limits: RenderLimits, hide: dict[str, str]) -> str:
    """What helm printed, or the RenderError that says why it did not."""
    release = f"release {request.release}"
    if outcome.ending is Ending.DEADLINE:
        raise RenderError(
            f"{release}: helm template took longer than {limits.wall_s:g} s and was ended", transient=True
        )
    if outcome.ending is Ending.OUTPUT_LIMIT:
        raise RenderError(f"{release}: the chart renders to more than {limits.output_bytes} bytes; make it render less")
    if outcome.returncode in _NOT_RUN:
        said = clean_message(outcome.stderr.decode(errors="replace"), hide)
        raise RenderError(f"{release}: helm cannot be run: {said}; look at --helm", transient=True)
    if not outcome.ok and _OUT_OF_MEMORY.search(outcome.stderr):
        most = limits.memory_bytes // 1024**2
        raise RenderError(f"{release}: the chart takes more than {most} MiB of memory to render; make it smaller")
    if not outcome.ok:
        killed = outcome.returncode < 0
        said = clean_message(outcome.stderr.decode(errors="replace"), hide)
        why = f"helm template: {outcome.describe()}" if killed or not said else said
        raise RenderError(f"{release}: {why}", transient=killed)
    try:
        return outcome.stdout.decode()
    except UnicodeDecodeError as error:
        raise RenderError(f"{release}: the chart renders to what is not UTF-8 (byte {error.start})") from error
