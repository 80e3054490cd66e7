"""The findings of ``wharfinger check``, including those of the build that precedes the checks."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from wharfinger.offline.orchestrator.result import Result
from wharfinger.offline.store.identity import shown
from wharfinger.offline.store.store import Place
from wharfinger.runtime.fixpoint.model import Id


class Severity(StrEnum):
    """The severity of a finding: an error prevents an object from being applied, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


class Rule(StrEnum):
    """The check that reported a finding."""

    BUILD = "build"
    """The object cannot be built."""
    BLOCKED = "blocked"
    """The object cannot be built because another object that it needs cannot be built."""
    SERVER = "server"
    """An API server would refuse the object."""
    UNDEFINED = "undefined-kind"
    """No definition of the object's kind is known, so the object was not checked."""
    REFERENCE = "dangling-reference"
    """The object names another object that is not in the tree."""
    ORPHAN = "orphan"
    """A file declares the object, but nothing builds the file."""
    NOTICE = "notice"
    """A warning of the build."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem; ``place`` is the file and line of the object, or of its producer."""

    rule: Rule
    severity: Severity
    message: str
    id: Id | None = None
    place: Place | None = None

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place is not None else ""
        who = f"{shown(self.id)}: " if self.id is not None else ""
        return f"{where}{self.severity}: {who}{self.message}"


def build_findings(result: Result) -> Iterator[Finding]:
    """Yield a finding for each failure, orphan and warning of a build."""
    for who, failure in result.failed.items():
        rule = Rule.BUILD if failure.is_primary else Rule.BLOCKED
        yield Finding(rule, Severity.ERROR, failure.message, who, failure.place)
    for who, place in result.orphans.items():
        yield Finding(Rule.ORPHAN, Severity.WARNING, "nothing builds the file that declares it", who, place)
    for notice in result.warnings:
        yield Finding(Rule.NOTICE, Severity.WARNING, notice.message, notice.id)


def places_of(result: Result) -> dict[Id, Place]:
    """Return the place of each object: its own file, or the file of the producer that rendered it."""
    found: dict[Id, Place] = {}
    for producer in sorted(result.manifests):
        place = result.places.get(producer)
        for manifest in result.manifests[producer]:
            own = result.places.get(manifest.id) or place
            if own is not None:
                found.setdefault(manifest.id, own)
    return found
