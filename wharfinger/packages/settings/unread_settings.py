"""Settings of a plain chart that no template reads: renamed or misspelt values, which Helm silently ignores.

The values that a chart reads are found in the text of its templates (:mod:`wharfinger.packages.rendering.chart_use`). If they
cannot be found, as for a chart that reads its values as a whole, no setting counts as unread. The values of sub-charts lie below
their names; a path below such a name counts as read if any chart reads the rest of the path. Values below ``global`` and ``tags``
are for all charts, and are never reported. Pure.
"""

import difflib
from collections.abc import Iterator
from typing import Final

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.schemas.problem import Problem
from wharfinger.packages.rendering.chart_use import ChartUse

FOR_ALL: Final = frozenset({"global", "tags"})
MAX_REPORTED: Final = 10
MAX_NAME: Final = 100

Path = tuple[str, ...]


def unread_settings(use: ChartUse, settings: JsonObject) -> tuple[Problem, ...]:
    """Return a problem for each setting that no template reads, at most MAX_REPORTED. If no template reads anything below
    an object, only the object is reported. Raises ShapeError.
    """
    use = use.with_values(settings)
    if use.values is None:
        return ()
    read = use.values
    begun = frozenset(path[:length] for path in read for length in range(1, len(path) + 1))
    found = sorted(_unread(settings, (), read, begun, use.charts))
    return tuple(Problem(".".join(path), _message(path, begun)) for path in found[:MAX_REPORTED])


def _unread(
    settings: JsonObject, above: Path, read: frozenset[Path], begun: frozenset[Path], charts: frozenset[str]
) -> Iterator[Path]:
    for key, value in settings.items():
        path = (*above, key)
        if not above and key in FOR_ALL:
            continue
        inner = _without_charts(path, charts)
        if any(_is_read(each, read) for each in inner):
            continue
        if isinstance(value, dict) and (any(each in begun or not each for each in inner)):
            yield from _unread(value, path, read, begun, charts)
        elif not any(each in begun or not each for each in inner):
            yield path


def _without_charts(path: Path, charts: frozenset[str]) -> list[Path]:
    """Return a path, and the same path relative to the values of each sub-chart that it may belong to."""
    found = [path]
    while path and path[0] in charts:
        path = path[1:]
        found.append(path)
    return found


def _is_read(path: Path, read: frozenset[Path]) -> bool:
    """Return whether a template reads this value, or an object that contains it."""
    return any(path[:length] in read for length in range(1, len(path) + 1))


def _message(path: Path, begun: frozenset[Path]) -> str:
    names = sorted({each[-1] for each in begun if len(each) == len(path) and each[:-1] == path[:-1]})
    close = difflib.get_close_matches(path[-1][:MAX_NAME], names, n=1, cutoff=0.6)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"no template of the chart reads this setting{hint}"
