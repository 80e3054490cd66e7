"""The progress of builds: the number of nodes that are done, and the current work. No I/O."""

from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.listing import listed
from wharfinger.offline.store.identity import shown
from wharfinger.offline.store.kinds import ARGO_APPLICATION, HELM_RELEASE, PACKAGES, SOURCES
from wharfinger.runtime.fixpoint.model import Id

MOST_SHOWN: Final = 2
"""The largest number of nodes that are named; the other nodes are only counted."""


@dataclass(slots=True)
class RunProgress:
    """The progress of one tree. ``active`` are the running nodes, in the order in which they were started."""

    known: set[Id] = field(default_factory=set)
    done: set[Id] = field(default_factory=set)
    active: dict[Id, None] = field(default_factory=dict)

    def begin(self, who: Id) -> None:
        """Record that work on a node begins."""
        self.known.add(who)
        self.done.discard(who)
        self.active[who] = None

    def end(self, who: Id, *, done: bool) -> None:
        """Record that work on a node ends; ``done`` is False if the node waits for another node."""
        self.active.pop(who, None)
        if done:
            self.done.add(who)


@dataclass(slots=True)
class Progress:
    """The progress of a command, which may build several trees. ``step`` is the current step of the command."""

    step: str = ""
    runs: list[RunProgress] = field(default_factory=list)

    def run(self) -> RunProgress:
        """Add another tree, and return its progress."""
        run = RunProgress()
        self.runs.append(run)
        return run

    def text(self) -> str:
        """Return the progress in one line."""
        done = sum(len(each.done) for each in self.runs)
        known = sum(len(each.known) for each in self.runs)
        active = [who for each in self.runs for who in each.active]
        parts = [self.step] if self.step else []
        if known:
            parts.append(f"{done} of {known} done")
        if active:
            parts.append(listed((f"{_verb(who)} {shown(who)}" for who in active), MOST_SHOWN))
        return ": ".join(parts) or "reading the tree"


def _verb(who: Id) -> str:
    if who.kind in SOURCES:
        return "fetching"
    if who.kind in {HELM_RELEASE, ARGO_APPLICATION} | PACKAGES:
        return "rendering"
    return "building"
