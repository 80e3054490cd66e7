"""The journalled steps of one operation: steps that the operation completed before the daemon was killed are not repeated.

The journalled steps have effects outside of the process and are costly to repeat: downloads, unpacked trees, hook runs and
applied releases. A step is journalled as in flight before its first effect, and as complete after its last effect. So after a
kill, a step that has begun is either complete, or in flight and done again (at least once). If a step turns out to need no
effect, or has only effects that may be repeated, it is journalled only if later steps of the operation depend on its result.
After the restart, an operation of the same kind with the same *fingerprint* (a checksum of all inputs) resumes the killed
operation: it skips the steps that are complete. An operation with another fingerprint begins with its first step.

If an attempt fails, the next attempt of the same process does all steps again: for example, a beforeHelm hook may have to
react to the cause of a failed apply.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from wharfinger.formats.json.value import JsonObject, checksum
from wharfinger.packages.kustomizing.patches import patches_checksum
from wharfinger.packages.rendering.resource_overrides import overrides_checksum
from wharfinger.runtime.lifecycle.journal import Journal
from wharfinger.runtime.lifecycle.journal_machine import Operation
from wharfinger.runtime.resources.resources import Directives
from wharfinger.runtime.resources.settings import ResolvedSettings


@dataclass(slots=True)
class Taken:
    """A step that is being taken. If `start` was called, ``result`` is stored in the journal when the step completes."""

    _start: Callable[[], None]
    started: bool = False
    result: str = ""

    def start(self) -> None:
        """Record that the step is about to have its first effect. Raises JournalError."""
        self.started = True
        self._start()


@dataclass(slots=True)
class Steps:
    """One operation's steps in the journal; shared by its tasks, which run one after the other."""

    journal: Journal
    package: str
    operation: Operation
    begun: bool = False

    def begin(self, fingerprint: str) -> None:
        """Begin the operation with this fingerprint, or another attempt at it. Raises JournalError."""
        self.journal.begin(self.package, self.operation, fingerprint)

    def begin_once(self, fingerprint: str) -> None:
        """Begin the operation unless it was begun already; completed steps stay complete. Raises JournalError."""
        if not self.begun:
            self.begin(fingerprint)
            self.begun = True

    def done(self, step: str) -> str | None:
        """Return the result of a complete step; None if the step has to be done."""
        return self.journal.completed(self.package, self.operation, step)

    @contextmanager
    def taking(self, step: str) -> Iterator[Taken]:
        """Record the step as in flight before the body runs, and as complete when the body has succeeded. Raises JournalError."""
        with self.taking_if_started(step) as taken:
            taken.start()
            yield taken

    @contextmanager
    def taking_if_started(self, step: str) -> Iterator[Taken]:
        """Do the same as `taking`, but let the body call `Taken.start` before its first effect, if it has any. Raises
        JournalError.
        """
        taken = Taken(partial(self.journal.start, self.package, self.operation, step))
        yield taken
        if taken.started:
            self.journal.complete(self.package, self.operation, step, taken.result)

    def finish(self) -> None:
        """End the operation. Raises JournalError."""
        self.journal.finish(self.package, self.operation)


def fingerprint(digest: str, namespace: str, settings: ResolvedSettings, wanted: Directives) -> str:
    """Return the fingerprint of a reconciliation: a checksum of all its inputs, except the patches of hooks to the values."""
    # Fields that were added later are included only if they are set, so that the recorded fingerprints of packages without
    # them stay valid.
    scope: JsonObject = {"clusterScope": True} if wanted.cluster_scope else {}
    patches: JsonObject = {"patches": patches_checksum(wanted.patches)} if wanted.patches else {}
    account: JsonObject = {"account": wanted.account} if wanted.account else {}
    return checksum(
        {
            **scope,
            **patches,
            **account,
            "digest": digest,
            "namespace": namespace,
            "settings": settings.checksum,
            "settingsVersion": wanted.settings_version,
            "maintenance": wanted.maintenance,
            "overrides": overrides_checksum(wanted.overrides),
            "upkeep": wanted.release_policy.digest,
            "requested": [wanted.requested, wanted.forced, wanted.reset],
        }
    )
