"""The errors of using a table.

::

    TableError                     base
    ├── RowNotFoundError           compare_and_swap: there is no such row (any more)
    ├── RevisionChangedError       compare_and_…: the row has changed: .entry
    ├── DuplicateKeyError          another row has this value of a unique index already
    ├── TrackerExpiredError        a change stream fell too far behind: begin anew
    └── TableUseError              a mistake of the caller, which only a change of the program ends
        ├── TableNameError         a name of a table, an index or an initializer that is not allowed
        ├── TableLockedError       written to by two transactions at once
        ├── TableNotLockedError    written to by a transaction that was not opened for it
        ├── TransactionOverError   a transaction was used after its end
        ├── StreamClosedError      a change stream was used after its block
        ├── SameRowError           the very object that is in the table was inserted again
        └── KeyChangedError        a merge gave the row another key
"""

from wharfinger.cluster.tables.entry import Entry


class TableError(Exception):
    """Base of all errors of tables."""


class RowNotFoundError(TableError):
    """There is no such row (any more)."""


class RevisionChangedError(TableError):
    """The row is not of the revision that was expected; ``entry`` is what it is now."""

    def __init__(self, message: str, entry: Entry[object]) -> None:
        super().__init__(message)
        self.entry = entry


class DuplicateKeyError(TableError):
    """Another row has this value of a unique index already; ``key`` is its key."""

    def __init__(self, message: str, key: object) -> None:
        super().__init__(message)
        self.key = key


class TrackerExpiredError(TableError):
    """A change stream was so far behind that deletions which it had not reported yet had to be forgotten.

    Its reader opens another one, and compares what it knows with all the rows with which that begins.
    """


class TableUseError(TableError):
    """A mistake of the caller."""


class TableNameError(TableUseError):
    """A name that a table, an index or an initializer may not have."""


class TableLockedError(TableUseError):
    """Another transaction has the table: a write within a write, or an await inside of one."""


class TableNotLockedError(TableUseError):
    """The transaction was not opened for this table."""


class TransactionOverError(TableUseError):
    """The transaction was committed or aborted."""


class StreamClosedError(TableUseError):
    """The block of the change stream was left."""


class SameRowError(TableUseError):
    """The object that is in the table was inserted again, so it was changed in place, which all snapshots would show."""


class KeyChangedError(TableUseError):
    """A merge gave a row another key than the one that it was called for."""
