"""Lists in messages, cut after the first items."""

from collections.abc import Iterable


def listed(items: Iterable[object], most: int, separator: str = ", ") -> str:
    """Return ``a, b and 3 more``: at most ``most`` items, and the number of the others.

    With another separator that one stands before the number, too: ``a; b; and 3 more``.
    """
    every = [str(item) for item in items]
    shown = separator.join(every[:most])
    if len(every) <= most:
        return shown
    return f"{shown}{' ' if separator == ', ' else separator}and {len(every) - most} more"
