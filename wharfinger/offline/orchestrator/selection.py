"""The part of a result that filters choose.

=========  =================================================================================================================
chosen     the objects that match, and everything that a matching node makes, directly or not
needed     the nodes that make the chosen objects, and everything that chosen objects and these nodes read, directly or not
=========  =================================================================================================================

Both are built, and their failures count. Only the chosen objects are returned. They are the same as in a build of the whole
tree, although :mod:`wharfinger.offline.orchestrator.narrowing` may render only a part of the tree.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.discovery.walk import TreeError
from wharfinger.offline.orchestrator.filter import Candidate, Filter, unmatched
from wharfinger.offline.orchestrator.result import FILES, Result
from wharfinger.offline.store.kinds import FOLDER
from wharfinger.offline.store.store import Place
from wharfinger.runtime.fixpoint.model import Id


class SelectionError(TreeError):
    """A filter chooses nothing in the tree."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects and nodes that the filters chose, and the nodes that are needed to build them."""

    chosen: frozenset[Id]
    needed: frozenset[Id]

    def __contains__(self, who: Id) -> bool:
        return who in self.chosen or who in self.needed


def check_filters(filters: Sequence[Filter], *results: Result) -> None:
    """Raise SelectionError if there is a filter that selects nothing in any of the results."""
    candidates = [each for result in results for each in candidates_of(result)]
    if lost := unmatched(filters, candidates):
        failed = [each for result in results for each in result.failed.values() if each.is_primary]
        why = (
            f"; one of the failed nodes might have made a matching object; the first failure: {failed[0]}"
            if failed
            else ""
        )
        raise SelectionError(f"filter {lost[0].text!r} selects nothing: {lost[0].nearest(candidates)}{why}")


def selection_of(result: Result, filters: Sequence[Filter]) -> Selection:
    """Return the selection: the objects that the filters match, everything that these objects make, and the nodes that any of
    these objects need.
    """
    candidates = candidates_of(result)
    matching = {each.id for each in candidates if any(one.matches(each) for one in filters)}
    made = {who: tuple(each.id for each in several) for who, several in result.manifests.items()}
    chosen = reachable_from(matching, made)
    makers = {who: (maker,) for who, maker in _makers_of(result).items()}
    return Selection(frozenset(chosen), frozenset(needs_of(chosen, result.depends_on, makers)))


def selected(result: Result, selection: Selection) -> Result:
    """Return the chosen objects of a result, and the failures and warnings of all nodes in the selection."""
    manifests = {
        producer: kept
        for producer, several in result.manifests.items()
        if (kept := tuple(each for each in several if each.id in selection.chosen))
    }
    return replace(
        result,
        manifests=manifests,
        failed={who: each for who, each in result.failed.items() if who in selection},
        orphans={who: place for who, place in result.orphans.items() if who in selection},
        warnings=tuple(each for each in result.warnings if each.id is None or each.id in selection),
        skipped={who: why for who, why in result.skipped.items() if who in selection},
        depends_on={who: reads for who, reads in result.depends_on.items() if who in selection},
    )


def reachable_from(start: AbstractSet[Id], edges: Mapping[Id, Iterable[Id]]) -> set[Id]:
    """Return everything that can be reached along edges, including the start."""
    found, pending = set(start), list(start)
    while pending:
        for each in edges.get(pending.pop(), ()):
            if each not in found:
                found.add(each)
                pending.append(each)
    return found


def needs_of(chosen: AbstractSet[Id], reads: Mapping[Id, Iterable[Id]], makers: Mapping[Id, Iterable[Id]]) -> set[Id]:
    """Return all nodes and objects on which the chosen objects depend, directly or not. A node depends on the objects that it
    reads, and an object depends on the node that makes it. The chosen objects themselves are left out.
    """
    edges = {who: (*reads.get(who, ()), *makers.get(who, ())) for who in {*reads, *makers}}
    return reachable_from(chosen, edges) - chosen


def candidates_of(result: Result) -> list[Candidate]:
    """Return everything that a filter may choose: objects, nodes, and objects in files that nothing builds."""
    files = _Files(result.places)
    makers = _makers_of(result)
    found: dict[Id, Candidate] = {}
    for producer in sorted(result.manifests):
        for each in result.manifests[producer]:
            if each.id not in found:
                found[each.id] = Candidate(each.id, labels_of(each.object), files.above(each.id, makers))
    for who in {*result.failed, *result.orphans, *result.skipped, *result.depends_on, *result.places} - found.keys():
        failure = result.failed.get(who)
        place = failure.place if failure is not None else None
        found[who] = Candidate(who, {}, files.of(who) or (place.file if place is not None else ""))
    return [found[who] for who in sorted(found)]


def labels_of(obj: JsonObject) -> dict[str, str]:
    """Return the labels of an object."""
    metadata = obj.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return {key: value for key, value in labels.items() if isinstance(value, str)} if isinstance(labels, dict) else {}


class _Files:
    """The files that declare objects. A build may change an object's namespace, so an object is also found by its kind and
    name.
    """

    def __init__(self, places: Mapping[Id, Place]) -> None:
        self._places = places
        self._named: dict[tuple[str, str], set[str]] = {}
        for who, place in places.items():
            self._named.setdefault((who.kind, who.name), set()).add(place.file)

    def of(self, who: Id) -> str:
        """Return the file that declares an object; "" if that is not known."""
        if who.kind in {FILES, FOLDER}:
            return who.name
        if who in self._places:
            return self._places[who].file
        named = self._named.get((who.kind, who.name), set())
        return next(iter(named)) if len(named) == 1 else ""

    def above(self, who: Id, makers: Mapping[Id, Id]) -> str:
        """Return the file of an object, or else that of the nearest node that makes it, directly or not; "" if there is none."""
        seen: set[Id] = set()
        above: Id | None = who
        while above is not None and above not in seen:
            if file := self.of(above):
                return file
            seen.add(above)
            above = makers.get(above)
        return ""


def _makers_of(result: Result) -> dict[Id, Id]:
    """Return the producer of each object, or the first of several producers. Files count as producers here, which is not so in
    `Result.makers`.
    """
    found = dict(result.makers)
    for producer in sorted(result.manifests):
        for each in result.manifests[producer]:
            if each.id != producer:
                found.setdefault(each.id, producer)
    return found
