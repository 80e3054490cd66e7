"""The search for charts that may make nodes, that is, objects that have a controller. Blocking.

Nodes are objects of Flux and its operator, Applications of Argo CD, and packages.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from wharfinger.formats.json.value import JsonValue, canonical_json

_GROUPS: Final = (b".fluxcd.io/", b"fluxcd.controlplane.io/", b"argoproj.io/", b"wharfinger.dev/")
_TEMPLATES: Final = "templates"
_SUBCHARTS: Final = "charts"
MAX_TEMPLATE: Final = 4 * 1024 * 1024


def may_make_nodes(chart: Path) -> bool:
    """Return whether a chart, or one of its subcharts, may render objects that have a controller.

    The templates are searched for the API groups of these objects. The result is also True if a subchart is packed, or if a
    template is too large to search. Raises OSError.
    """
    return any(_has_group(path) for path in _searched(chart))


def names_nodes(value: JsonValue) -> bool:
    """Return whether values name an API group whose objects have a controller. A chart with such values may render nodes."""
    text = canonical_json(value)
    return any(group in text for group in _GROUPS)


def _searched(chart: Path) -> Iterator[Path]:
    """Yield the templates of a chart and of its subcharts, and its packed subcharts."""
    folder, subcharts = chart / _TEMPLATES, chart / _SUBCHARTS
    if folder.is_dir():
        yield from (path for path in sorted(folder.rglob("*")) if path.is_file())
    if not subcharts.is_dir():
        return
    for path in sorted(subcharts.iterdir()):
        if path.is_dir():
            yield from _searched(path)
        elif path.suffix == ".tgz":
            yield path


def _has_group(path: Path) -> bool:
    if path.suffix == ".tgz":
        return True
    with path.open("rb") as file:
        text = file.read(MAX_TEMPLATE + 1)
    return len(text) > MAX_TEMPLATE or any(group in text for group in _GROUPS)
