"""The resident chart engine: Helm's own library in worker processes, which render one chart after the other.

Starting Helm takes 30 to 50 ms of processor time, but rendering a small chart takes only 3 ms. So a worker (the program of
``engine/``) keeps running, and its output is that of ``helm template``, byte for byte. The worker also contains kustomize's
library, and gives the results of ``kubectl kustomize``, but never fetches anything. It also executes the templates of
ResourceSets, which are resources of the Flux Operator.

Each slot of the pool is a task with at most one worker. The worker is started on demand, and ends when it has been idle for
IDLE_S. It is replaced after MAX_RENDERS requests, or when its heap has grown beyond MAX_HEAP. A request goes to an idle worker,
if any worker is idle. If a chart takes too long, has too much output or kills its worker, or if the caller is cancelled, at
most the worker of this render is lost, and other renders continue.

A worker has the same environment, memory limit and folder as a run of Helm. It exits when its standard input ends, even while
it renders, so it does not outlive the daemon.
"""

import base64
import binascii
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
import trio

from wharfinger.formats.frames import FrameError, FrameReader, framed
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.packages.errors import RenderError
from wharfinger.packages.rendering.helm_command import helm_environment
from wharfinger.packages.rendering.program_versions import ProgramVersions
from wharfinger.packages.rendering.renderer import RenderRequest
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Ending, Limits, Outcome, Usage
from wharfinger.process.errors import ProcessError
from wharfinger.process.job_handover import JobHandover
from wharfinger.process.ledger import ProcessLedger
from wharfinger.process.worker import Worker, open_worker
from wharfinger.process.worker_slot import serve_jobs

IDLE_S: Final = 60.0
MAX_RENDERS: Final = 500
MAX_HEAP: Final = 128 * 1024 * 1024
TERM_GRACE_S: Final = 0.1
"""The time limit, in seconds, for the exit of a worker; short, because a worker has nothing to clean up."""
MAX_REQUEST: Final = 64 * 1024 * 1024
"""The largest size of a request, in bytes. The engine has the same limit. The request of a post-renderer contains all manifests
of a chart.
"""
CHUNK_BYTES: Final = 64 * 1024
TEMPLATES: Final = "1"
"""The version of the protocol in which the engine renders templates of ResourceSets. An engine with another version is not used
for them.
"""
VERSION_LIMITS: Final = Limits(wall_s=10, stdout_bytes=4096)
STDERR_BYTES: Final = VERSION_LIMITS.stderr_bytes
"""The number of bytes at the end of stderr that are kept, the same as for a run of Helm."""
_LIMITED: Final = 'ulimit -d "$0" 2>/dev/null; exec "$@"'
"""A shell script that runs a program with a memory limit; it keeps a stricter limit that is set already."""
_FRAME_PARTS: Final = 2
"""The largest answer, as a multiple of the largest output: an answer has the output and the messages, both in base64."""
_NO_USAGE: Final = Usage(0.0, 0.0, 0)
"""The resource usage in the outcome of every render: zero, because a worker's usage for a single render is not known."""


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """The limits of one render, and the largest number of workers."""

    wall_s: float
    output_bytes: int
    memory_bytes: int
    workers: int


@dataclass(frozen=True, slots=True)
class EngineVersions:
    """The versions of the libraries in a chart engine, such as ``v4.3.1`` of Helm and ``v5.8.1`` of kustomize.

    ``kustomize`` is "" for an older engine, which lacks kustomize. ``has_templates`` is True if the engine executes the
    templates of ResourceSets, too.
    """

    helm: str
    kustomize: str = ""
    has_templates: bool = False


@dataclass(slots=True)
class ChartEngineStatistics:
    """The number of live workers, and two counters since the start: of requests, and of workers that failed during a request."""

    workers: int = 0
    requests: int = 0
    replaced: int = 0


@dataclass(frozen=True, slots=True)
class FolderBuild:
    """A build of a kustomization folder. With ``files``, the folder consists of these files, and need not exist."""

    folder: Path
    files: Mapping[str, str] = field(default_factory=dict)
    unrestricted: bool = True
    """True if the kustomization may load files outside of ``folder``."""


@dataclass(frozen=True, slots=True)
class EngineResult:
    """The result of a request. ``outcome`` has the output, exit code and stderr that Helm or kubectl would have had.

    ``seen`` is everything that a build depends on in addition to its request, by path: the sha256 of a file, "folder" or
    "absent"; None if it is not known. ``is_remote`` is True if the build failed because it needs a network.
    """

    outcome: Outcome
    seen: Mapping[str, str] | None = None
    is_remote: bool = False


class _Answer(msgspec.Struct):
    output: str | None
    errors: str | None
    code: int
    heap: int
    files: dict[str, str] | None = None
    remote: bool = False


class _Job:
    """One request to the chart engine, and its result."""

    def __init__(self, message: bytes) -> None:
        self.message = message
        self.done = trio.Event()
        self.abandoned = trio.Event()
        """Set when the caller no longer waits."""
        self.result: EngineResult | ProcessError | None = None

    def finish(self, result: EngineResult | Outcome | ProcessError) -> None:
        """Pass the result to the caller; later results are ignored."""
        if self.result is None:
            self.result = EngineResult(result) if isinstance(result, Outcome) else result
            self.done.set()

    def shut_down(self) -> None:
        """Report to the caller of this request that the engine was shut down, unless the request has a result already."""
        self.finish(_ended(Ending.EXITED, -15, b"the chart engine was shut down"))


class ChartEngine:
    """A pool of workers that render. Made by :func:`open_chart_engine`."""

    def __init__(
        self, program: Path, versions: EngineVersions, folder: Path, ledger: ProcessLedger | None, limits: EngineLimits
    ) -> None:
        self.versions = versions
        self.statistics = ChartEngineStatistics()
        self._program = program
        self._stamp = _stamp(program)
        self._folder = folder
        self._ledger = ledger
        self.limits = limits
        self._jobs: JobHandover[_Job] = JobHandover()

    @property
    def is_unchanged(self) -> bool:
        """Return whether the program's file is unchanged since its versions were read. If the file has changed, workers may
        have other versions.
        """
        return self._stamp is not None and _stamp(self._program) == self._stamp

    async def template(self, request: RenderRequest, chart: Path, values: Path) -> Outcome:
        """Render the chart in a folder; return the outcome that ``helm template`` would have had. Raises ProcessError."""
        fields = {
            "release": request.release,
            "namespace": request.namespace,
            "chart": str(chart),
            "values": str(values),
            "kube_version": request.kube_version,
            "api_versions": sorted(set(request.api_versions)),
            "is_upgrade": request.is_upgrade,
        }
        return (await self._asked(fields)).outcome

    async def kustomize(self, build: FolderBuild) -> EngineResult:
        """Build a kustomization as ``kubectl kustomize`` would. Raises ProcessError."""
        asked = {"folder": str(build.folder), "files": build.files, "unrestricted": build.unrestricted}
        return await self._asked({"kustomization": asked})

    async def execute(self, templates: Sequence[Mapping[str, JsonValue]], inputs: Sequence[JsonObject]) -> EngineResult:
        """Execute the templates of a ResourceSet for each of the inputs. Raises ProcessError.

        A template has a ``field``, which is its name in errors, and an ``object`` or a ``text``. The output is a JSON list with
        an entry for each execution: the positions ``template`` and ``input``, and the resulting ``text``.
        """
        return await self._asked({"template_set": {"templates": templates, "inputs": inputs}})

    async def _asked(self, fields: Mapping[str, object]) -> EngineResult:
        text = msgspec.json.encode(fields)
        if len(text) > MAX_REQUEST:
            return EngineResult(_ended(Ending.EXITED, 1, f"a request of {len(text)} bytes is too large".encode()))
        job = _Job(framed(text))
        try:
            await self._jobs.send(job)
            await job.done.wait()
        finally:
            job.abandoned.set()
        if isinstance(job.result, ProcessError):
            raise job.result
        if job.result is None:
            raise AssertionError("the job finished without a result")
        return job.result

    async def serve_slot(self) -> None:
        """Perform renders one after the other, with at most one worker process. Runs in a task of :func:`open_chart_engine`."""
        while True:
            job = await self._jobs.receive()
            try:
                await self._serve_from(job)
            except ProcessError as error:  # the worker could not be started, or did not end
                job.finish(error)
            finally:
                job.shut_down()

    def close(self) -> None:
        """Accept no more renders."""
        self._jobs.close()

    async def _serve_from(self, first: _Job) -> None:
        """Start a worker for ``first``, and serve renders until the worker has to be replaced."""
        limited = ("/bin/sh", "-c", _LIMITED, str(self.limits.memory_bytes // 1024), str(self._program))
        command = Command(limited, self._folder, helm_environment(self._folder, self.limits.memory_bytes))
        renders = 0

        async def exchange(worker: Worker, job: _Job) -> bool:
            nonlocal renders
            renders += 1
            self.statistics.requests += 1
            return await self._exchange(worker, job) and renders < MAX_RENDERS

        async with open_worker(command, ledger=self._ledger, term_grace_s=TERM_GRACE_S) as worker:
            self.statistics.workers += 1
            try:
                await serve_jobs(worker, first, exchange, self._jobs.warm, idle_s=IDLE_S)
            finally:
                self.statistics.workers -= 1

    async def _exchange(self, worker: Worker, job: _Job) -> bool:
        """Send one request and read its answer; return False if the worker must not be used again."""
        payload = None
        with trio.move_on_after(self.limits.wall_s):
            try:
                payload = await self._talk_until_abandoned(worker, job)
            except FrameError:
                self.statistics.replaced += 1
                job.finish(_ended(Ending.OUTPUT_LIMIT, 1, b""))
                return False
            except trio.BrokenResourceError:
                self.statistics.replaced += 1
                code = await worker.wait()
                job.finish(_ended(Ending.EXITED, code or 1, worker.stderr_tail() or b"the chart engine ended"))
                return False
        if payload is None:
            self.statistics.replaced += 1
            job.finish(_ended(Ending.DEADLINE, -15, b""))
            return False
        try:
            answer = msgspec.json.decode(payload, type=_Answer)
            output, errors = (base64.b64decode(text or "") for text in (answer.output, answer.errors))
        except (msgspec.DecodeError, binascii.Error) as error:
            self.statistics.replaced += 1
            job.finish(_ended(Ending.EXITED, 1, f"the chart engine's answer cannot be read: {error}".encode()))
            return False
        if len(output) > self.limits.output_bytes:
            job.finish(_ended(Ending.OUTPUT_LIMIT, 1, b""))
        else:
            outcome = Outcome(Ending.EXITED, answer.code, output, errors[-STDERR_BYTES:], _NO_USAGE)
            job.finish(EngineResult(outcome, answer.files, answer.remote))
        return answer.heap <= MAX_HEAP

    async def _talk_until_abandoned(self, worker: Worker, job: _Job) -> bytes | None:
        """Return the answer; None if the caller was cancelled. In that case, the worker is terminated, to free its slot."""
        payload: bytes | None = None
        failure: FrameError | trio.BrokenResourceError | None = None

        async def leave(scope: trio.CancelScope) -> None:
            await job.abandoned.wait()
            scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(leave, nursery.cancel_scope)
            try:
                payload = await self._talk(worker, job.message)
            except (FrameError, trio.BrokenResourceError) as error:
                failure = error
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return payload

    async def _talk(self, worker: Worker, message: bytes) -> bytes:
        """Send a message and return the answer.

        Raises FrameError if the answer is too large, trio.BrokenResourceError if the worker ends.
        """
        await worker.send(message)
        reader = FrameReader(_FRAME_PARTS * self.limits.output_bytes)
        while (payload := reader.take()) is None:
            chunk = await worker.receive_some(CHUNK_BYTES)
            if not chunk:
                raise trio.BrokenResourceError
            reader.feed(chunk)
        return payload


def _stamp(program: Path) -> tuple[int, ...] | None:
    """Return values that change when the file of a program is replaced; None if there is no such file. Blocking."""
    try:
        found = program.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _ended(ending: Ending, code: int, said: bytes) -> Outcome:
    return Outcome(ending, code, b"", said, _NO_USAGE)


@asynccontextmanager
async def open_chart_engine(
    program: Path,
    folder: Path,
    ledger: ProcessLedger | None,
    limits: EngineLimits,
    versions: ProgramVersions | None = None,
) -> AsyncGenerator[ChartEngine, None]:
    """Serve renders with the engine ``program`` while the block runs; ``folder`` (mode 0700) is the workers' home
    and the place of their temporary files.

    With ``versions``, a known version of the program is not determined again. Raises ProcessError, and RenderError if the program
    cannot be run.
    """

    async def ask() -> str:
        return await _ask_version(program, folder, ledger)

    told = await (ask() if versions is None else versions.version_of(program, ask))
    engine = ChartEngine(program, _read_versions(told), folder, ledger, limits)
    try:
        async with trio.open_nursery() as slots:
            for number in range(limits.workers):
                slots.start_soon(engine.serve_slot, name=f"chart engine {number}")
            yield engine
            slots.cancel_scope.cancel()
    finally:
        engine.close()


async def _ask_version(program: Path, folder: Path, ledger: ProcessLedger | None) -> str:
    """Ask an engine for its versions. Raises RenderError."""
    try:
        command = Command((str(program), "--version"), folder, helm_environment(folder, 512 * 1024 * 1024))
        outcome = await run_child(command, VERSION_LIMITS, ledger=ledger)
    except ProcessError as error:
        raise RenderError(f"the chart engine {program} cannot be run: {error}; build it with `make engine`") from error
    said = outcome.stdout.decode(errors="replace").strip()
    if not outcome.ok or not said.startswith("v"):
        raise RenderError(
            f"the chart engine {program} does not report its version ({outcome.describe()}); build it again"
        )
    return said


def _read_versions(said: str) -> EngineVersions:
    helm, *rest = said.splitlines()
    named = dict(line.partition(" ")[::2] for line in rest)
    kustomize = named.get("kustomize", "")
    return EngineVersions(
        helm, kustomize if kustomize.startswith("v") else "", has_templates=named.get("templates") == TEMPLATES
    )
