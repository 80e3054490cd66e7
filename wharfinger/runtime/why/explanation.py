"""The explanation of a package: the chain of causes from the package to the root cause, and the remedy for the root cause.
`wharfinger why` prints it.

Each package has causes (:mod:`~wharfinger.runtime.why.causes`): roots, and causes that come through other packages. The
reported chain is the shortest one to a root that a user can act on. Among equally short chains, the first in the order of
causes is reported. The causes of a package have this order: states that take precedence over all stages, a failed attempt to
stop the package or to run its enabled script, a refused change, the votes of the gates in the order of the rules, the packages
that it waits for, and its stages in the order of the pipeline. The packages through which a cause comes are ordered by name. If
users can act on no root, the shortest chain to work in progress is reported. Other causes of the packages in the chain are
reported beside it.

For example, if a package waits for ten packages of a lower order, of which nine are being downloaded and one has a failing
hook, the chain leads to the failing hook. While a new version is being loaded, the votes of the gates about the previous
version are ignored. A package that is ready may have to run again, because a package to which it subscribes has changed. If
this new run has to wait, the wait is reported like any other wait.

Each package is visited once, so packages that wait for each other in a circle end the search, too: the circle is then the
root. At most MAX_LOOKED_AT packages are visited.

Pure: the explanation is made from snapshots. Secrets are not masked here, but when the explanation is shown
(:mod:`wharfinger.debug.printing.redacting`).
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from wharfinger.runtime.inspector import PackageSnapshot
from wharfinger.runtime.scheduler_details import CauseSnapshot, ExplanationSnapshot, NodeSnapshot
from wharfinger.runtime.status.reasons import Reason, explanation
from wharfinger.runtime.status.summary import State
from wharfinger.runtime.why.causes import Cause, Known, one_line
from wharfinger.runtime.why.gate_causes import absence_cause, again_causes, lack_causes, refusal_cause, vote_causes
from wharfinger.runtime.why.remedies import WAIT, of_circle, of_more, of_reason
from wharfinger.runtime.why.stage_causes import aside_cause, gate_failure, is_being_brought, open_stages, stage_causes

MAX_LOOKED_AT: Final = 1_000
MAX_ALSO: Final = 5


class Link(NamedTuple):
    """One link in the chain of an explanation: a package, the cause that leads to the next link, and the package's other
    causes.
    """

    name: str
    cause: Cause
    others: tuple[Cause, ...]


Path = tuple[Link, ...]


def explain(name: str, known: Known) -> ExplanationSnapshot | None:
    """Explain why the package of this name is not in its wanted state; None if there is no such package."""
    package = known.package(name)
    if package is None:
        return None
    if not (first := _causes(known, name, package, None)):
        return _nothing(package)
    path = _search(known, name, first)
    also = [f"{link.name} {cause.line}" for link in path for cause in link.others]
    also += [*_failing(package), *_warnings(package), *_update(package)]
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
    """Return the explanation of a package that waits for nothing and has no problem. If the package is in maintenance, the
    explanation says so.
    """
    failing = _first(dict.fromkeys([*_failing(package), *_warnings(package), *_update(package)]))
    if not package.maintenance:
        return ExplanationSnapshot(package.name, ready=True, causes=(), remedy="", also=failing)
    text = explanation(package.maintenance) or package.maintenance
    also = (one_line(f"{package.name} is {text}; {of_reason(package.name, package.maintenance)}"),)
    return ExplanationSnapshot(package.name, ready=True, causes=(), remedy="", also=also + failing)


def _failing(package: PackageSnapshot) -> list[str]:
    """Return the lines about objects of a package that the daemon fails to apply or delete, during an upgrade or later. If the
    daemon corrects drift of an object, the line names the fields, and the managers that have set them.
    """
    fields = {subject: changed for subject, _, changed in (text.partition(": ") for text in package.drift)}
    found = (text.partition(": ") for text in package.failing)
    return [
        one_line(f"{package.name}: {subject}{f' ({fields[subject]})' if fields.get(subject) else ''}{colon}{why}")
        for subject, colon, why in found
    ]


def _warnings(package: PackageSnapshot) -> list[str]:
    """Return the warnings in a package's status, which may name the cause of a failure, such as a helm uninstall by a user.

    If objects fail, no warnings are returned, because the lines about the failing objects describe the same problem, and only
    these lines have the time of the next attempt.
    """
    return [one_line(f"{package.name}: warning: {text}") for text in package.warnings if not package.failing]


def _update(package: PackageSnapshot) -> list[str]:
    """Return the lines about a rollback, and about a version that waits or a tag that has moved."""
    rollback = "" if package.state == State.ROLLED_BACK else package.rollback
    return [one_line(f"{package.name}: {text}") for text in (rollback, package.update) if text]


def _search(known: Known, name: str, first: tuple[Cause, ...]) -> Path:
    """Search breadth first for the root cause. So the first root cause that a user can act on is the nearest one."""
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
                waiting.append((other, found or (_notification_due(known, other),), path))
    return at_work or further or _circle(known, name, first)


def _causes(
    known: Known, name: str, package: PackageSnapshot | None, needed_by: NodeSnapshot | None
) -> tuple[Cause, ...]:
    """Return all causes of one package, in their order; () if the package is ready and no further run of it has to wait."""
    if package is None:
        return (absence_cause(known, name, needed_by),)
    if (aside := aside_cause(known, package)) is not None:
        return (aside,)
    node = known.node(name)
    if package.state == State.ROLLED_BACK:
        return (Cause("is rolled back", package.rollback, remedy=of_reason(name, Reason.ROLLED_BACK, permanent=True)),)
    if package.state == State.READY and not open_stages(
        package
    ):  # if stages are open, it is Ready only because an earlier process reported it
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
    # If a package waits or cannot be on, its work in progress is not reported, but its failures are.
    told = first.message if first is not None else None
    return found + tuple(cause for cause in staged if (cause.by_hand and cause.message != told) or not found)


def _notification_due(known: Known, name: str) -> Cause:
    """Return the cause to show if a package is ready, and another package still waits for it.

    It says that the daemon only has to notify the waiting package.
    """
    package = known.package(name)
    message = package.message if package is not None else ""
    return Cause("is ready", message, remedy=WAIT, by_hand=False)


def _circle(known: Known, name: str, first: tuple[Cause, ...]) -> Path:
    """Return the path of packages that wait only for each other, from ``name`` until a package repeats.

    The last link of the path is the root: its package waits for a package that is already in the path.
    """
    path: list[Link] = []
    passed = [name]
    causes = first
    while True:
        cause = causes[0]
        following = cause.through[0]
        if following in passed:
            circle = " → ".join([*passed[passed.index(following) :], following])
            root = Cause(
                cause.state, f"these packages wait for each other: {circle}", cause.since, remedy=of_circle(circle)
            )
            return (*path, Link(passed[-1], root, causes[1:]))
        path.append(Link(passed[-1], cause, causes[1:]))
        passed.append(following)
        causes = _causes(known, following, known.package(following), known.node(passed[-2]))


def _first(texts: dict[str, None]) -> tuple[str, ...]:
    every = list(texts)
    more = len(every) - MAX_ALSO
    return tuple(every[:MAX_ALSO]) + ((f"{more} more",) if more > 0 else ())
