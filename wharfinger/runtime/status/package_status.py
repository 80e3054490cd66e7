"""What is known about how one package is: a condition for each stage of its pipeline, and what was last told outside.

A value, made by :mod:`~wharfinger.runtime.status.transitions` only: everything that may happen to it is a function there, and
what it means outside is in :mod:`~wharfinger.runtime.status.conditions` and :mod:`~wharfinger.runtime.status.summary`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum, StrEnum, auto
from typing import Final

from wharfinger.runtime.status.progress import Progress
from wharfinger.runtime.status.reasons import Reason, explanation


class Stage(StrEnum):
    """The stages in pipeline order; the value is the internal condition's type (spec/runtime §6)."""

    FETCHED = "ReadyOnFilesystem"
    LOADED = "Loaded"
    REQUIREMENTS = "RequirementsMet"
    CONFIGURED = "Configured"
    CRDS = "CustomResourcesApplied"
    WEBHOOKS = "WebhooksEnsured"
    HOOKS = "HooksProcessed"
    APPLIED = "ManifestsApplied"
    SCALED = "Scaled"


OPTIONAL: Final = frozenset({Stage.CRDS, Stage.WEBHOOKS})
"""Stages that a package may not have: they count as done until the task that does them says otherwise."""


class Truth(StrEnum):
    """A condition's status."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition; ``permanent`` marks a failure that only a changed input can mend."""

    truth: Truth
    reason: str
    message: str
    since: datetime
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """An external condition as last told: since when its status is that, and of which generation it was said."""

    truth: Truth
    reason: str
    message: str
    since: datetime
    generation: int


class Phase(Enum):
    """Where a package is in its life; what a failure means outside depends on it (spec/runtime §6.1)."""

    INSTALL = auto()
    """Never whole so far."""
    UPDATE = auto()
    """Installed, and another version is wanted than the one that is applied."""
    RECONCILE = auto()
    """The version that is wanted is the one that is applied."""


@dataclass(frozen=True, slots=True)
class PackageStatus:
    """All that is known about how one package is."""

    generation: int
    stages: Mapping[Stage, Condition]
    started: datetime
    version: str = ""
    digest: str = ""
    revision: int = 0
    namespace: str = ""
    """Where the release lives, from the moment something may be there; it stays there."""
    wanted: str = ""
    """The version that the update under way, or the last one, was for; empty: not said."""
    installed_since: datetime | None = None
    scale_checked: bool = False
    """What runs has been judged since it was last applied."""
    removal: Condition | None = None
    """Being removed: what that waits for, or what went wrong with it."""
    held: Condition | None = None
    """To be removed, and not yet: for whose sake. Nothing was begun, and it runs on."""
    blocked: Condition | None = None
    """Something before the pipeline is wrong: the spec cannot be read, the repository is missing."""
    suspended: bool = False
    """Somebody wants nothing to be done with it, for now."""
    maintenance: Condition | None = None
    """Somebody wants what is applied to be left alone."""
    progress: Progress | None = None
    warnings: tuple[str, ...] = ()
    urls: tuple[tuple[str, str], ...] = ()
    """Where it can be reached, each with what it is for."""
    told: Mapping[str, Told] = field(default_factory=dict)
    """The external conditions by type."""
    ready_kept: Told | None = None
    """`Ready` as it stays while it is suspended; else as an earlier process told it, until this one has judged for itself."""

    @property
    def is_being_verified(self) -> bool:
        """Whether it is Ready as an earlier process told it, and this one is still finding out.

        That a process which was started looks at what it finds is no news for anybody, unless it takes long.
        """
        aside = self.removal is not None or self.held is not None or self.blocked is not None
        problem = open_condition(self)
        return not aside and problem is not None and self.stays_ready(problem)

    @property
    def rollout(self) -> Condition | None:
        """What of it is being updated, scaled or replaced, while all of it was ready the last time that was judged."""
        scaled = self.stages[Stage.SCALED]
        return scaled if scaled.truth is Truth.TRUE and scaled.reason == Reason.ROLLING_OUT else None

    def stays_ready(self, problem: Condition) -> bool:
        """Whether it is Ready although a stage is open: an earlier process said so of this generation, and nothing failed."""
        kept = self.ready_kept
        told = kept is not None and kept.truth is Truth.TRUE and kept.generation == self.generation
        return told and not self.suspended and is_under_way(problem)

    reconciling_kept: Told | None = None
    """`Reconciling` as an earlier process told it: nothing has happened where this one finds all as it was."""

    @property
    def phase(self) -> Phase:
        """See :class:`Phase`."""
        if self.installed_since is None:
            return Phase.INSTALL
        return Phase.UPDATE if self.wanted not in ("", self.version) else Phase.RECONCILE


def is_under_way(condition: Condition) -> bool:
    """Whether a stage that is not done is at work, or waits for objects to be ready; else it failed."""
    return condition.truth is not Truth.FALSE or condition.reason == Reason.NOT_READY


_STAGES: Final = tuple(Stage)
"""Iterating over an enumeration costs more than all that is asked of its members here."""


def first_open(status: PackageStatus) -> tuple[Stage, Condition] | None:
    """The first stage that is not done, with a condition that is not True and says something; None when all are done."""
    for stage in _STAGES:
        condition = status.stages[stage]
        if condition.truth is not Truth.TRUE:
            if condition.message:
                return stage, condition
            message = explanation(condition.reason) or f"waiting for {stage.value}"
            return stage, replace(condition, message=message)
        if stage is Stage.SCALED and not status.scale_checked:
            return stage, Condition(Truth.UNKNOWN, Reason.PENDING, "looking at what was applied", condition.since)
    return None


def open_condition(status: PackageStatus) -> Condition | None:
    """As `first_open`, without the stage."""
    found = first_open(status)
    return found[1] if found is not None else None


def is_gated(status: PackageStatus) -> bool:
    """It could run, and what it requires is not there, or it is not wanted: others, not itself, have to change."""
    found = first_open(status)
    return found is not None and found[0] is Stage.REQUIREMENTS and found[1].truth is Truth.FALSE
