"""The protocol of hook execution. :mod:`wharfinger.hooks.running.process_runner` implements it with child processes.

The files and variables are those of the hook contract (spec hook-protocol §1.6, §2, §3). The binding context is passed as a
JSON file, and results come back in files that the hook may write. The content of these files is foreign data until a reader has
checked it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.hooks.config.bindings import HookPool
from wharfinger.hooks.watching.context_file import Context
from wharfinger.kube.service_account import ServiceAccount

TRACEPARENT: Final = "TRACEPARENT"

Level = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A log record of a hook: a line of text, or a JSON object (spec hook-protocol §1.3).

    For an object, ``level`` and ``message`` are its ``level`` and ``msg``. ``fields`` contains its other keys, each renamed to
    ``hook_<key>``, and also ``proxyJsonLog``. A line of text has level info and no fields.
    """

    stream: Literal["stdout", "stderr"]
    level: Level
    message: str
    fields: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HookRun:
    """One run of one hook.

    ``argv`` are the arguments after the executable. Most hooks have no arguments; if the executable is an interpreter, the
    argument is the hook's file. ``environment`` is added to the variables of all hooks; the variables of the contract override
    it. ``answers`` are names of environment variables: each names a further file that the run may write, and whose content is
    returned unchanged. ``wall_s`` is a time limit in addition to the runner's; the shorter one applies. With ``credentials``,
    the hook may act on the daemon's cluster with the daemon's rights. ``pool`` is the kind of process that the hook asks for;
    ``owner`` is its package, for which a persistent process is kept. If ``worker_pool`` names a WorkerPool of ``namespace``,
    the hook runs in one of its pods.
    """

    name: str
    executable: Path
    cwd: Path
    contexts: tuple[Context, ...]
    values: JsonObject
    config_values: JsonObject
    argv: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    answers: tuple[str, ...] = ()
    wall_s: float | None = None
    credentials: bool = False
    account: ServiceAccount | None = None
    """The service account that the hook acts as on the daemon's cluster; None if it acts as the daemon itself."""
    pool: HookPool = HookPool.WARM
    owner: str = ""
    worker_pool: str = ""
    namespace: str = ""
    traceparent: str = ""
    """The span of this run for the hook's own traces (W3C Trace Context); "" if there are no traces."""
    on_line: Callable[[str], None] | None = field(default=None, compare=False, repr=False)
    """A callback that gets each complete line of the run's output, including the indentation; it must not block."""
    on_record: Callable[[LogRecord], None] | None = field(default=None, compare=False, repr=False)
    """A callback that gets each record of the output: a line, or the lines that form one JSON object; it must not block."""


@dataclass(frozen=True, slots=True)
class HookOutcome:
    """The results of a run; ``succeeded`` is false if the hook failed. In that case, the values patches must be dropped.

    ``answers`` has the content of each answer file of a run that succeeded. ``wall_s`` is the time that the process ran,
    including its start and its end.
    """

    succeeded: bool
    exit_description: str
    log_lines: tuple[str, ...]
    values_patch: tuple[JsonValue, ...]
    config_values_patch: tuple[JsonValue, ...]
    object_patches: tuple[JsonValue, ...]
    metrics: tuple[JsonValue, ...]
    user_s: float
    system_s: float
    max_rss_bytes: int
    answers: Mapping[str, bytes] = field(default_factory=dict)
    wall_s: float = 0.0
    ending: str = ""
    """A description of how the hook ended; ``exit_description`` adds the last output on stderr after a failure."""


def trace_variables(run: HookRun) -> dict[str, str]:
    """Return the environment variables that make the hook's own spans children of the run's span; empty if tracing is off."""
    return {TRACEPARENT: run.traceparent} if run.traceparent else {}


class HookRunner(Protocol):
    """A runner of hooks. Raises HookError if the hook could not be started or its result files cannot be read."""

    async def run(self, run: HookRun) -> HookOutcome:
        """Run one hook to its end; a cancellation ends all processes of the hook before this returns."""
        ...
