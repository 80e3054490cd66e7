"""The types of watch events."""

from enum import StrEnum


class WatchType(StrEnum):
    """The `type` of a watch event. A client never returns an ERROR event; it raises the error."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
