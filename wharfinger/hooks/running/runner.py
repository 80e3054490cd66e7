"""The seam to hook execution. Implementation: :mod:`wharfinger.hooks.running.process_runner` (a real child process per run).

The files and variables are those of the hook contract (spec hook-protocol §1.6, §2, §3): the binding context is handed over
as a JSON file, results come back as files the hook may write, and what they hold is foreign data until a reader has let it
through.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.hooks.watching.context_file import Context

Level = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class LogRecord:
    """What a hook says at a time: a line of text, or a JSON object (spec hook-protocol §1.3).

    Of an object ``level`` and ``message`` are its ``level`` and ``msg``, and ``fields`` the others, each named ``hook_<key>``,
    and ``proxyJsonLog``. A line of text is at level info and has no fields.
    """

    stream: Literal["stdout", "stderr"]
    level: Level
    message: str
    fields: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HookRun:
    """One run of one hook.

    ``argv`` are the arguments after the executable: none for most hooks, the hook's file where the executable is its
    interpreter. ``environment`` is added to what hooks inherit; the variables of the contract win over it. ``answers`` are
    further variables that name a file the run may write, handed back as they are. ``wall_s`` is a time limit below the runner's.
    With ``credentials`` the hook may act on the daemon's cluster as the daemon does.
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
    on_line: Callable[[str], None] | None = field(default=None, compare=False, repr=False)
    """Told each line that this run prints, as it comes, its indentation kept; must not block."""
    on_record: Callable[[LogRecord], None] | None = field(default=None, compare=False, repr=False)
    """Told the same as records: a line, or the lines that are one JSON object; must not block."""


@dataclass(frozen=True, slots=True)
class HookOutcome:
    """What a run left behind; ``succeeded`` is the exit status, and a failed run's value patches must be dropped.

    ``answers`` has what a run that succeeded wrote into each file it was asked to answer in. ``wall_s`` is how long the
    process ran, its start and its end with it.
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
    """How it ended; ``exit_description`` is that and, after a failure, the last that it wrote to stderr."""


class HookRunner(Protocol):
    """Runs hooks. Raises HookError where the hook could not be started or its result files cannot be read."""

    async def run(self, run: HookRun) -> HookOutcome:
        """Run one hook to its end; cancelling kills its whole process group before this returns."""
        ...
