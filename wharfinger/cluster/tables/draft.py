"""The draft of one table in a transaction: only reads through the same transaction see it, and an abort drops it.

A draft keeps its changes beside the snapshot that it began with, so nothing has to be undone. Code that can fail (functions of
the caller that return keys and index values, and comparisons of these) is only called while the draft is written, not in the
commit.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Generic, TypeAlias

from wharfinger.cluster.tables.entry import GRAVE, PRESENT, K, R, Version
from wharfinger.cluster.tables.errors import DuplicateKeyError, SameRowError
from wharfinger.cluster.tables.snapshot import Index, Snapshot

Values: TypeAlias = tuple[tuple[Hashable, ...], ...]
"""For each index of the table, in the order of the indexes, the values under which the index lists a row."""


class Draft(Generic[K, R]):
    """The uncommitted changes of one table.

    ``own``: the last version of each key that this transaction wrote, sorted by revision; the version of a deleted key has
    ended. ``values``: the index values of the rows in ``own``. ``ended``: the versions in the snapshot whose rows the
    transaction replaces or deletes, with their index values.
    """

    __slots__ = ("_found", "_indexes", "_name", "base", "ended", "key", "own", "revision", "values")

    def __init__(self, name: str, base: Snapshot[K, R], key: Callable[[R], K], indexes: Mapping[str, Index[R]]) -> None:
        self._name = name
        self._indexes = indexes
        self._found: dict[str, dict[Hashable, dict[K, Version[K, R]]]] = {index: {} for index in indexes}
        self.base = base
        self.key = key
        self.revision = base.revision
        self.own: dict[K, Version[K, R]] = {}
        self.ended: list[tuple[Version[K, R], Values]] = []
        self.values: dict[K, Values] = {}

    def get(self, key: K) -> Version[K, R] | None:
        """Return the row with this key, including uncommitted changes; None if there is none."""
        own = self.own.get(key)
        if own is None:
            return self.base.version(key)
        return own if own.ended == PRESENT else None

    def find(self, index: str, value: Hashable) -> tuple[Version[K, R], ...]:
        """Return the rows with this value of an index, sorted by revision."""
        found = [version for version in self.base.versions(index, value) if version.key not in self.own]
        mine = self._found[index].get(value, {})
        return (*found, *sorted(mine.values(), key=lambda version: version.revision))

    def entries(self) -> Iterator[Version[K, R]]:
        """Return all rows as the transaction sees them, sorted by revision."""
        own = self.own
        yield from [version for version in self.base.all_versions() if version.key not in own]
        yield from [version for version in own.values() if version.ended == PRESENT]

    def put(self, row: R) -> Version[K, R] | None:
        """Insert the row; return the replaced row with the same key, if there was one."""
        key = self.key(row)
        old = self.get(key)
        if old is not None and old.row is row:
            raise SameRowError(
                f"{self._name}: the object of the row {key!r} is in the table already; do not change it: insert a changed copy"
            )
        values = self._values(row)
        if self._indexes:
            self._check_unique(key, values)
        self._supersede(key, old)
        self.revision += 1
        created = self.revision if old is None else old.created
        version = self.own[key] = Version(key, row, self.revision, created, PRESENT)
        if self._indexes:
            self._place(version, values)
        return old

    def remove(self, old: Version[K, R]) -> None:
        """Delete an existing row."""
        key = old.key
        self._supersede(key, old)
        self.revision += 1
        self.own[key] = Version(key, old.row, self.revision, old.created, GRAVE)

    def _values(self, row: R) -> Values:
        if not self._indexes:
            return ()
        return tuple(tuple(dict.fromkeys(index.of(row))) for index in self._indexes.values())

    def _check_unique(self, key: K, values: Values) -> None:
        for (name, index), mine in zip(self._indexes.items(), values, strict=False):
            for value in mine if index.unique else ():
                for other in self._holders(name, value):
                    if other != key:
                        raise DuplicateKeyError(
                            f"{self._name}: the row {key!r} has {value!r} for {name}, as has {other!r};"
                            " the values of different rows must differ",
                            other,
                        )

    def _holders(self, index: str, value: Hashable) -> Iterator[K]:
        yield from self._found[index].get(value, ())
        for version in self.base.versions(index, value):
            if version.key not in self.own:
                yield version.key

    def _supersede(self, key: K, old: Version[K, R] | None) -> None:
        """Remove the entry of this key from ``own``, the entries that the transaction has written so far, so that the key's
        next entry is added at their end.
        """
        if self.own.pop(key, None) is None:
            if old is not None:
                self.ended.append((old, self._values(old.row)))
            return
        for by_value, values in zip(self._found.values(), self.values.pop(key, ()), strict=False):
            for value in values:
                del by_value[value][key]

    def _place(self, version: Version[K, R], values: Values) -> None:
        self.values[version.key] = values
        for by_value, mine in zip(self._found.values(), values, strict=True):
            for value in mine:
                by_value.setdefault(value, {})[version.key] = version
