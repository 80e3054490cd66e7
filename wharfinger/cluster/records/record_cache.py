"""A cache of the last read or written records, so that an unchanged history is not read again.

The total size of the records is limited. If it is exceeded, the release that was unused for the longest time is forgotten.
"""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.records.release import Release, ReleaseStatus
from wharfinger.cluster.records.release_chunks import ChunkIndex
from wharfinger.formats.json.value import JsonObject, find_str

MAX_BYTES: Final = 64 * 1024 * 1024
RECORD_BYTES: Final = 4096
"""The bytes that a record is assumed to need in addition to its content."""
UNPACKED: Final = 6
"""The assumed ratio of the size of a record in memory to the size of its Secret."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A record, with the metadata of its Secret as it was read.

    ``cut``: the document in the Secret itself, if it differs from the document of ``release``. Usually it differs because parts
    of the record are in chunks, which ``index`` names.
    """

    release: Release
    metadata: JsonObject
    cut: JsonObject | None = None
    index: ChunkIndex | None = None
    packed_bytes: int = 0

    @property
    def state(self) -> tuple[str, str, str]:
        """Return the identity of the record's current state: the name, the UID and the resourceVersion of its Secret."""
        metadata = self.metadata
        return find_str(metadata, "name"), find_str(metadata, "uid"), find_str(metadata, "resourceVersion")

    @property
    def size(self) -> int:
        """The approximate number of bytes that the record takes in memory."""
        return RECORD_BYTES + (UNPACKED * self.packed_bytes if self.release.whole else 0)


class RecordCache:
    """The histories that were read or written last, by release. Each history begins with the oldest revision."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._histories: OrderedDict[Owner, tuple[Stored, ...]] = OrderedDict()
        self.held_bytes = 0

    @property
    def count(self) -> int:
        """The number of revisions in the cache, of all releases."""
        return sum(len(history) for history in self._histories.values())

    def get(self, owner: Owner) -> tuple[Stored, ...] | None:
        """Return the known history of a release; None if nothing is known."""
        history = self._histories.get(owner)
        if history is not None:
            self._histories.move_to_end(owner)
        return history

    def state(self, owner: Owner) -> Hashable:
        """Return the state that :class:`~wharfinger.cluster.records.release_heads.ReleaseHeads` would return for the known
        history; None if nothing is known.
        """
        history = self._histories.get(owner)
        return None if history is None else frozenset(stored.state for stored in history)

    def put(self, owner: Owner, history: Sequence[Stored]) -> None:
        """Record the whole history of a release; revisions before the last deployed one are kept as summaries.

        If the last deployed revision or a later one is only a summary, the release is forgotten instead.
        """
        self.drop(owner)
        if not all(stored.release.whole for stored in history[_first_needed(history) :]):
            return  # the last deployed revision was deleted, so earlier revisions are needed, which are only summaries
        slimmed = slim(history)
        self._histories[owner] = slimmed
        self.held_bytes += _size(slimmed)
        while self.held_bytes > self._max_bytes and self._histories:
            self.drop(next(iter(self._histories)))

    def put_one(self, owner: Owner, stored: Stored) -> None:
        """Record that a revision was written. Do nothing if the cache does not know its release."""
        known = self._histories.get(owner)
        if known is not None:
            others = [one for one in known if one.release.revision != stored.release.revision]
            self.put(owner, sorted([*others, stored], key=lambda one: one.release.revision))

    def drop_one(self, owner: Owner, revision: int) -> None:
        """Record that a revision was deleted."""
        known = self._histories.get(owner)
        if known is not None:
            self.put(owner, [one for one in known if one.release.revision != revision])

    def drop(self, owner: Owner) -> None:
        """Forget a release."""
        if owner in self._histories:
            self.held_bytes -= _size(self._histories.pop(owner))


def slim(history: Sequence[Stored]) -> tuple[Stored, ...]:
    """Return a history in which revisions before the last deployed one are summaries."""
    first = _first_needed(history)
    older = (stored if not stored.release.whole else _summary(stored) for stored in history[:first])
    return (*older, *history[first:])


def _first_needed(history: Sequence[Stored]) -> int:
    """Return the index of the last deployed revision, or of the first revision if none is deployed.

    The objects of this revision and of all later ones may be in the cluster.
    """
    deployed = [at for at, stored in enumerate(history) if stored.release.status is ReleaseStatus.DEPLOYED]
    return deployed[-1] if deployed else 0


def _summary(stored: Stored) -> Stored:
    return replace(stored, release=stored.release.summary(), cut=None)


def _size(history: Sequence[Stored]) -> int:
    return RECORD_BYTES + sum(stored.size for stored in history)
