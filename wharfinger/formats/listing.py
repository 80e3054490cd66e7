"""Lists in messages, cut after the first items, and nouns with their number or article."""

from collections.abc import Iterable


def listed(items: Iterable[object], most: int, separator: str = ", ") -> str:
    """Return ``a, b and 3 more``: at most ``most`` items, and the number of the others.

    A separator other than the comma also precedes the number: ``a; b; and 3 more``.
    """
    every = [str(item) for item in items]
    shown = separator.join(every[:most])
    if len(every) <= most:
        return shown
    return f"{shown}{' ' if separator == ', ' else separator}and {len(every) - most} more"


def counted(number: int, noun: str, *, none: str = "0") -> str:
    """Return ``1 object`` or ``3 objects``; ``none`` is written in place of the number 0."""
    return f"{number or none} {noun}{'' if number == 1 else 's'}"


def with_article(noun: str) -> str:
    """Return ``an Application`` or ``a Module``: the noun with its indefinite article, by its first letter."""
    return f"{'an' if noun[:1].lower() in tuple('aeiou') else 'a'} {noun}"
