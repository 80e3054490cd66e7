"""Why a package is as it is: the chain of causes to its root, and what to do about that. For `wharfinger why`.

Each package has causes (:mod:`~wharfinger.runtime.why.causes`): roots, and such as come through other packages. The chain that is
told is the shortest one to a root that a person can act on; among equally short ones, the causes of a package count in their
order (what stands over everything, what fails to put it to rest, what was refused, the votes of the gates in the order of the
rules, what it is parked on, its stages in the order of the pipeline), and the packages that one comes through by name. Where
nobody can act on anything, it is the shortest chain to what is at work. What else keeps the packages of the chain is told beside
it.

While a version is being brought, what the gates said of the one before it keeps nobody. And a package that is ready may have to
be run again, because one that it subscribes to was: what that run waits for is told like any other wait.

So of ten packages that a tier waits for, of which nine are being downloaded and one has a hook that fails, the one is named.

Each package is looked at once, so a circle of packages that wait for each other ends the search as well: it is its own root. At
most MAX_LOOKED_AT packages are looked at.

Pure: snapshots in, an explanation out. Nothing is redacted here (:mod:`wharfinger.debug.printing.redacting`).
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from wharfinger.runtime.inspector import CauseSnapshot, ExplanationSnapshot, NodeSnapshot, PackageSnapshot
from wharfinger.runtime.status.reasons import explanation
from wharfinger.runtime.status.summary import State
from wharfinger.runtime.why.causes import Cause, Known, one_line
from wharfinger.runtime.why.gate_causes import absence_cause, again_causes, lack_causes, refusal_cause, vote_causes
from wharfinger.runtime.why.remedies import WAIT, of_circle, of_more, of_reason
from wharfinger.runtime.why.stage_causes import aside_cause, gate_failure, is_being_brought, open_stages, stage_causes

MAX_LOOKED_AT: Final = 1_000
MAX_ALSO: Final = 5


class Link(NamedTuple):
    """A package, the cause that the chain takes, and the others that it has."""

    name: str
    cause: Cause
    others: tuple[Cause, ...]


Path = tuple[Link, ...]


def explain(name: str, known: Known) -> ExplanationSnapshot | None:
    """Why the package of this name is as it is; None where there is no such package."""
    package = known.package(name)
    if package is None:
        return None
    if not (first := _causes(known, name, package, None)):
        return _nothing(package)
    path = _search(known, name, first)
    also = [f"{link.name} {cause.line}" for link in path for cause in link.others]
    also += [*_failing(package), *_warnings(package)]
    return ExplanationSnapshot(
        name,
        ready=False,
        causes=tuple(
            CauseSnapshot(link.name, one_line(link.cause.state), one_line(link.cause.message), link.cause.since)
            for link in path
        ),
        remedy=one_line(path[-1].cause.remedy),
        also=_first(dict.fromkeys(one_line(text) for text in also)),
    )


def _nothing(package: PackageSnapshot) -> ExplanationSnapshot:
    """Nothing keeps it; that somebody has left it to people is told all the same."""
    failing = _first(dict.fromkeys([*_failing(package), *_warnings(package)]))
    if not package.maintenance:
        return ExplanationSnapshot(package.name, ready=True, causes=(), remedy="", also=failing)
    text = explanation(package.maintenance) or package.maintenance
    also = (one_line(f"{package.name} is {text}; {of_reason(package.name, package.maintenance)}"),)
    return ExplanationSnapshot(package.name, ready=True, causes=(), remedy="", also=also + failing)


def _failing(package: PackageSnapshot) -> list[str]:
    """Its objects that fail: those of an upgrade under way, and those that are corrected or deleted without being asked for."""
    return [one_line(f"{package.name}: {text}") for text in package.failing]


def _warnings(package: PackageSnapshot) -> list[str]:
    """Return the warnings in its status; they may name the cause of what fails, a helm uninstall by a person say.

    Where objects fail the warnings are about the same, and the objects say when they are tried again.
    """
    return [one_line(f"{package.name}: warning: {text}") for text in package.warnings if not package.failing]


def _search(known: Known, name: str, first: tuple[Cause, ...]) -> Path:
    """Breadth first, so the first root that somebody can act on is the nearest."""
    seen, waiting = {name}, deque([(name, first, Path())])
    at_work: Path = ()
    further: Path = ()
    while waiting:
        subject, causes, before = waiting.popleft()
        for cause in causes:
            path = (*before, Link(subject, cause, tuple(each for each in causes if each is not cause)))
            if not cause.through:
                if cause.by_hand:
                    return path
                at_work = at_work or path
            for other in cause.through:
                if other in seen:
                    continue
                if len(seen) >= MAX_LOOKED_AT:
                    further = further or (*before, path[-1]._replace(cause=replace(cause, remedy=of_more(other))))
                    continue
                seen.add(other)
                found = _causes(known, other, known.package(other), known.node(subject))
                waiting.append((other, found or (_gone_on(known, other),), path))
    return at_work or further or _circle(known, name, first)


def _causes(
    known: Known, name: str, package: PackageSnapshot | None, needed_by: NodeSnapshot | None
) -> tuple[Cause, ...]:
    """All causes of one package, in their order; none where nothing keeps it, nor its next run."""
    if package is None:
        return (absence_cause(known, name, needed_by),)
    if (aside := aside_cause(known, package)) is not None:
        return (aside,)
    node = known.node(name)
    if package.state == State.READY and not open_stages(package):  # else it is Ready as an earlier process said
        return tuple(again_causes(known, node)) if node is not None else ()
    if is_being_brought(package):
        return tuple(stage_causes(known, package))
    first = gate_failure(known, package) or refusal_cause(known, package, node)
    found = (
        *((first,) if first is not None else ()),
        *vote_causes(known, package, node),
        *(lack_causes(known, node) if node is not None else ()),
    )
    staged: Iterator[Cause] = stage_causes(known, package)
    # What waits for its turn is not at work, and what may not be on has no work to speak of; but what failed is said.
    told = first.message if first is not None else None
    return found + tuple(cause for cause in staged if (cause.by_hand and cause.message != told) or not found)


def _gone_on(known: Known, name: str) -> Cause:
    """Of a package that somebody waits for and nothing keeps: who waits has only to hear of it."""
    package = known.package(name)
    message = package.message if package is not None else ""
    return Cause("is as it should be", message, remedy=WAIT, by_hand=False)


def _circle(known: Known, name: str, first: tuple[Cause, ...]) -> Path:
    """Packages that wait for nothing but each other, from ``name`` until one comes again; that one's link is the root."""
    path: list[Link] = []
    passed = [name]
    causes = first
    while True:
        cause = causes[0]
        following = cause.through[0]
        if following in passed:
            circle = " → ".join([*passed[passed.index(following) :], following])
            root = Cause(cause.state, f"they wait for each other: {circle}", cause.since, remedy=of_circle(circle))
            return (*path, Link(passed[-1], root, causes[1:]))
        path.append(Link(passed[-1], cause, causes[1:]))
        passed.append(following)
        causes = _causes(known, following, known.package(following), known.node(passed[-2]))


def _first(texts: dict[str, None]) -> tuple[str, ...]:
    every = list(texts)
    more = len(every) - MAX_ALSO
    return tuple(every[:MAX_ALSO]) + ((f"{more} more",) if more > 0 else ())
