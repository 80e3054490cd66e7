"""The errors of using a table.

::

    TableError                     base
    ├── RowNotFoundError           compare_and_swap: there is no such row (any more)
    ├── RevisionChangedError       compare_and_…: the row has changed: .entry
    ├── DuplicateKeyError          another row has this value of a unique index already
    ├── TrackerExpiredError        a change stream fell too far behind; open another one
    └── TableUseError              a mistake of the caller: the program must be corrected
        ├── TableNameError         a name of a table, an index or an initializer that is not allowed
        ├── TableLockedError       two transactions write to a table at the same time
        ├── TableNotLockedError    a transaction writes to a table for which it was not opened
        ├── TransactionOverError   a transaction was used after its end
        ├── StreamClosedError      a change stream was used after its block
        ├── SameRowError           the same Python object that is in the table was inserted again
        └── KeyChangedError        a merge gave the row another key
"""

from wharfinger.cluster.tables.entry import Entry


class TableError(Exception):
    """The base of all errors of tables."""


class RowNotFoundError(TableError):
    """There is no row with this key."""


class RevisionChangedError(TableError):
    """The row does not have the expected revision; ``entry`` is the present row."""

    def __init__(self, message: str, entry: Entry[object]) -> None:
        super().__init__(message)
        self.entry = entry


class DuplicateKeyError(TableError):
    """Another row already has this value of a unique index; ``key`` is the key of that row."""

    def __init__(self, message: str, key: object) -> None:
        super().__init__(message)
        self.key = key


class TrackerExpiredError(TableError):
    """A reader fell so far behind that deletions which it had not read yet were discarded.

    The reader has to open another change stream, and to compare its knowledge with the rows with which the stream begins.
    """


class TableUseError(TableError):
    """A table was used in a way that is not allowed, because of a bug in the calling code."""


class TableNameError(TableUseError):
    """The name of a table, an index or an initializer is not allowed."""


class TableLockedError(TableUseError):
    """Another transaction has locked the table: a write was begun inside another write, or a write contains an ``await``."""


class TableNotLockedError(TableUseError):
    """The transaction does not include this table, because it was not named when the transaction was opened."""


class TransactionOverError(TableUseError):
    """The transaction was committed or aborted."""


class StreamClosedError(TableUseError):
    """The change stream is closed: its block was left."""


class SameRowError(TableUseError):
    """The same Python object that is in the table was inserted again. It was probably changed in place, which changes all
    snapshots, too.
    """


class KeyChangedError(TableUseError):
    """A merge returned a row whose key differs from the key of the merged rows."""
