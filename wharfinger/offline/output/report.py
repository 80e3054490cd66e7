"""The report of a build for people: root causes with the nodes that they block, then nodes that nothing builds, and warnings."""

from collections.abc import Iterator
from typing import Final

from wharfinger.formats.listing import counted, listed
from wharfinger.offline.orchestrator.result import Failure, Result
from wharfinger.offline.store.identity import shown
from wharfinger.runtime.fixpoint.model import Id

MOST_BLOCKED: Final = 10
"""The largest number of blocked nodes that the report names for one cause."""


def report_text(result: Result) -> str:
    """Return the report; "" if there is nothing to report."""
    return "".join(f"{line}\n" for line in _lines(result))


def causes_of(result: Result) -> dict[Id, tuple[Id, ...]]:
    """Return the primary failures, sorted, each with all nodes that it blocks, directly or through others."""
    found: dict[Id, set[Id]] = {who: set() for who, each in result.failed.items() if each.is_primary}
    for who, failure in result.failed.items():
        for root in _roots(failure, result) or {who}:  # a cycle has no root, so each member is reported
            found.setdefault(root, set()).add(who)
    return {who: tuple(sorted(found[who] - {who})) for who in sorted(found)}


def summary(result: Result) -> str:
    """Return one line with the number of built objects and, if there are any, of failed and blocked nodes."""
    primary = sum(each.is_primary for each in result.failed.values())
    derived = len(result.failed) - primary
    text = f"{counted(len(result.objects), 'object')} built"
    if result.failed:
        text += f"; {primary} failed, and {derived} blocked by them" if derived else f"; {primary} failed"
    return text


def _roots(failure: Failure, result: Result) -> set[Id]:
    """Return the primary failures that caused this failure, directly or through other failures."""
    roots: set[Id] = set()
    seen = {failure.id}
    pending = list(failure.blockers)
    while pending:
        who = pending.pop()
        if who in seen:
            continue
        seen.add(who)
        cause = result.failed.get(who)
        if cause is None or cause.is_primary:
            roots.add(who)
        else:
            pending += cause.blockers
    return roots


def _lines(result: Result) -> Iterator[str]:
    for who, blocked in causes_of(result).items():
        failure = result.failed.get(who)
        yield f"error: {failure}" if failure is not None else f"error: {shown(who)}: failed"
        if blocked:
            yield f"  blocks {listed(map(shown, blocked), MOST_BLOCKED)}"
    for who, place in result.orphans.items():
        yield f"warning: {place}: {shown(who)}: nothing builds it; add the file to a kustomization.yaml, or delete it"
    for warning in result.warnings:
        yield f"warning: {warning}"
