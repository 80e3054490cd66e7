"""The widths of the columns of a table on a terminal that may be too narrow for them. Pure."""

from collections.abc import Sequence


def fitted_widths(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Return widths that together take at most ``room``: the widest columns shrink first, and none becomes narrower than its
    ``least``.

    If even these least widths do not fit, the result is wider than ``room``. A column that is narrower than its ``least`` from
    the beginning keeps its width.
    """
    widths = [min(width, room) for width in natural]
    floors = [min(pair) for pair in zip(widths, least, strict=True)]
    for _ in range(sum(widths) - room):
        able = [at for at, width in enumerate(widths) if width > floors[at]]
        if not able:
            break
        widths[max(able, key=lambda at: (widths[at], at))] -= 1
    return widths
