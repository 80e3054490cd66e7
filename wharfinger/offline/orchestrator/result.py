"""The result of an offline run: manifests by producer, failures, orphans and warnings.

Their order depends only on the tree, not on the order in which nodes are built.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.store.identity import shown
from wharfinger.offline.store.store import Place
from wharfinger.runtime.fixpoint.model import Id

_T = TypeVar("_T")

FILES: Final = "Files"
"""The kind of a producer's id if the producer is a file, so that its objects are loaded without a build."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of the result, with the namespace in which it would be applied."""

    id: Id
    object: JsonObject = field(repr=False)


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed node. ``blockers`` are the failed nodes that caused it; a failure without blockers is a root cause."""

    id: Id
    message: str
    place: Place | None = None
    blockers: tuple[Id, ...] = ()

    @property
    def is_primary(self) -> bool:
        """True if no other failure has to be corrected first."""
        return not self.blockers

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place is not None else ""
        return f"{where}{shown(self.id)}: {self.message}"


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning: something that does not make a node fail. If ``id`` is None, it is about the whole tree."""

    message: str
    id: Id | None = None

    def __str__(self) -> str:
        return self.message if self.id is None else f"{shown(self.id)}: {self.message}"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one offline run: the objects that were built, and the failures and warnings."""

    manifests: Mapping[Id, tuple[Manifest, ...]]
    """The objects of each producer. A file whose objects are loaded without a build is a producer, too."""
    failed: Mapping[Id, Failure]
    """Every failure, primary and derived."""
    orphans: Mapping[Id, Place]
    """Nodes that no build reads, although their files lie below a folder that is built; each node with its place."""
    warnings: tuple[Notice, ...] = ()
    skipped: Mapping[Id, str] = field(default_factory=dict)
    """The nodes that were skipped, each with the reason."""
    depends_on: Mapping[Id, tuple[Id, ...]] = field(default_factory=dict)
    """The nodes and data that each node read."""
    places: Mapping[Id, Place] = field(default_factory=dict)
    """The file and line of each object that a file declares."""
    internal: Mapping[Id, Id] = field(default_factory=dict)
    """Objects that nodes make only for other nodes to read. They are not printed, because in a cluster a controller makes them.
    Each object is mapped to its producer, which usually is the node that made it.
    """
    runs: int = 0
    """The number of runs of all nodes together; a node may run several times."""

    @property
    def blocked(self) -> Mapping[Id, tuple[Id, ...]]:
        """Return the derived failures with the failed nodes that caused them."""
        return {who: each.blockers for who, each in self.failed.items() if each.blockers}

    @property
    def makers(self) -> Mapping[Id, Id]:
        """Return the node that makes each object; the first, if several make it. Objects that only files declare are left out."""
        found: dict[Id, Id] = {}
        for producer in sorted(self.manifests):
            if producer.kind != FILES:
                for manifest in self.manifests[producer]:
                    if manifest.id != producer:
                        found.setdefault(manifest.id, producer)
        return {**self.internal, **found}

    @property
    def objects(self) -> tuple[Manifest, ...]:
        """Return every object once, sorted by id. If several producers make an object, return that of the first producer."""
        found: dict[Id, Manifest] = {}
        for producer in sorted(self.manifests):
            for manifest in self.manifests[producer]:
                found.setdefault(manifest.id, manifest)
        return tuple(found[who] for who in sorted(found))


def merged(results: Sequence[Result]) -> Result:
    """Return several results as one. No producer may occur in two of them."""
    return Result(
        manifests=_merged_maps([each.manifests for each in results]),
        failed=_merged_maps([each.failed for each in results]),
        orphans=_merged_maps([each.orphans for each in results]),
        warnings=tuple(notice for each in results for notice in each.warnings),
        skipped=_merged_maps([each.skipped for each in results]),
        depends_on=_merged_maps([each.depends_on for each in results]),
        places=_merged_maps([each.places for each in results]),
        internal=_merged_maps([each.internal for each in results]),
        runs=sum(each.runs for each in results),
    )


def _merged_maps(maps: Sequence[Mapping[Id, _T]]) -> dict[Id, _T]:
    found = {who: value for each in maps for who, value in each.items()}
    return {who: found[who] for who in sorted(found)}
