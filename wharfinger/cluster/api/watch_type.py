"""What a watch event says of its object."""

from enum import StrEnum


class WatchType(StrEnum):
    """`type` of a watch event; ERROR never comes out of a client, it is raised."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
