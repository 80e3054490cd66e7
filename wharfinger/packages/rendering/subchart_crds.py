"""The CRDs in ``crds/`` of sub-charts, as ``helm install`` would apply them before it renders anything.

The CRDs of a disabled sub-chart are left out. As in Helm, the dependencies in ``Chart.yaml`` (or ``requirements.yaml``) decide
whether a sub-chart is enabled: by their conditions, or else by their tags, which are looked up in the values and all defaults. No
render is needed for that.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, find_str
from wharfinger.formats.yaml.reader import read_yaml, read_yaml_all
from wharfinger.packages.charts.chart import CHART_FILE
from wharfinger.packages.definition.chart_texts import CHARTS, ChartFile, TooMuchTextError, chart_files
from wharfinger.packages.definition.module_folder import CRDS_FOLDER, VALUES_FILE
from wharfinger.packages.errors import RenderError

REQUIREMENTS_FILE: Final = "requirements.yaml"
"""The file in which charts of ``apiVersion: v1`` name their dependencies."""

MAX_DEPTH: Final = 32
"""The largest number of levels of nested charts that are searched; public charts have three or four."""
_SUFFIXES: Final = (".yaml", ".yml", ".json")


@dataclass(slots=True)
class _Node:
    """One chart: its files that are needed here, and its sub-charts by folder."""

    files: dict[str, bytes] = field(default_factory=dict)
    charts: dict[str, "_Node"] = field(default_factory=dict)
    _objects: dict[str, JsonObject] = field(default_factory=dict)

    def object(self, name: str) -> JsonObject:
        """Return the object in a file, which is parsed once; {} if the file is missing, or if Helm could not read it either."""
        if name not in self._objects:
            self._objects[name] = _object(self.files.get(name, b""), name)
        return self._objects[name]

    @property
    def name(self) -> str:
        """The name of the chart in ``Chart.yaml``."""
        return _text(self.object(CHART_FILE), "name")

    @property
    def dependencies(self) -> list[JsonObject]:
        """The chart's entries for its dependencies, from ``Chart.yaml`` or, if it has none there, from
        ``requirements.yaml``.
        """
        listed = _list(self.object(CHART_FILE), "dependencies")
        listed = listed or _list(self.object(REQUIREMENTS_FILE), "dependencies")
        return [entry for entry in listed if isinstance(entry, dict)]


def has_subchart_crds(chart: Path) -> bool:
    """Return whether a chart has any sub-charts, which may have CRDs. Most charts have none, and need not be searched.
    Blocking.
    """
    charts = chart / CHARTS
    return charts.is_dir() and any(charts.iterdir())


def subchart_crds(chart: Path, values: JsonObject, *, is_package: bool) -> tuple[JsonObject, ...]:
    """Return the objects in ``crds/`` of all sub-charts that are enabled with these values.

    A chart's objects come before those of its sub-charts. With ``is_package``, the files of the package that are not
    part of its chart are ignored, except ``Chart.yaml``; ``values`` must contain the package's default values.
    Blocking. Raises RenderError naming the file.
    """
    if not has_subchart_crds(chart):
        return ()
    try:
        top = _tree(chart_files(chart, is_package=is_package))
    except TooMuchTextError:
        raise RenderError("the sub-charts are too large to be searched for CRDs") from None
    if is_package and (chart / CHART_FILE).is_file():
        top.files[CHART_FILE] = (chart / CHART_FILE).read_bytes()
    return tuple(obj for node in _enabled(top, values, "") for obj in _crds(node))


def _object(data: bytes, name: str) -> JsonObject:
    try:
        value = read_yaml(data, what=name)
    except FormatError:
        return {}
    return value if isinstance(value, dict) else {}


def _tree(files: Iterator[ChartFile]) -> _Node:
    """Return the chart and its sub-charts. Raises RenderError."""
    top = _Node()
    for file in files:
        node, path = top, file.path
        if _depth(path) > MAX_DEPTH:
            first = "/".join(path[:4])
            raise RenderError(f"{first}/…: charts are nested more than {MAX_DEPTH} deep; reduce the nesting")
        while len(path) > 2 and path[0] == CHARTS:
            node = node.charts.setdefault(path[1], _Node())
            path = path[2:]
        if path[0] == CRDS_FOLDER or path in {(CHART_FILE,), (VALUES_FILE,), (REQUIREMENTS_FILE,)}:
            node.files["/".join(path)] = file.data
    return top


def _depth(path: tuple[str, ...]) -> int:
    depth = 0
    while len(path) > 2 * depth + 2 and path[2 * depth] == CHARTS:
        depth += 1
    return depth


def _enabled(node: _Node, values: JsonObject, prefix: str) -> Iterator[_Node]:
    """Yield the enabled sub-charts of a chart, with their own enabled sub-charts.

    ``values`` are the values of the outermost chart; ``prefix`` is the path in them to the values of this chart.
    """
    dependencies = node.dependencies
    known = {chart.name: chart for _, chart in sorted(node.charts.items())}
    if not dependencies:
        # Then Helm does not check deeper levels: everything below is enabled.
        for chart in known.values():
            yield chart
            yield from _all(chart)
        return
    whole = _merged(values, _defaults(node))
    named = {_text(entry, "name") for entry in dependencies}
    chosen = [(name, chart) for name, chart in known.items() if name not in named]
    for entry in dependencies:
        name = _text(entry, "name")
        if name in known and _is_on(entry, whole, prefix):
            chosen.append((_text(entry, "alias") or name, known[name]))
    for name, chart in chosen:
        yield chart
        yield from _enabled(chart, whole, f"{prefix}{name}.")


def _all(node: _Node) -> Iterator[_Node]:
    for _, chart in sorted(node.charts.items()):
        yield chart
        yield from _all(chart)


def _is_on(entry: JsonObject, values: JsonObject, prefix: str) -> bool:
    """Return whether a sub-chart is enabled: by the first condition with a value, else by its tags (one enabled tag is
    enough).
    """
    tags = values.get("tags")
    told = [tags.get(tag) for tag in _list(entry, "tags") if isinstance(tag, str)] if isinstance(tags, dict) else []
    on = any(value is True for value in told) or not any(value is False for value in told)
    for condition in _text(entry, "condition").strip().split(","):
        value = _at(values, f"{prefix}{condition}".split(".")) if condition else None
        if isinstance(value, bool):
            return value
    return on


def _at(values: JsonObject, path: Sequence[str]) -> JsonValue:
    value: JsonValue = values
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _defaults(node: _Node) -> JsonObject:
    """Return the default values of a chart, with those of its sub-charts below their names."""
    found = node.object(VALUES_FILE)
    names = {_text(entry, "name"): _text(entry, "alias") for entry in node.dependencies}
    for chart in node.charts.values():
        name = names.get(chart.name) or chart.name
        own = found.get(name)
        found = {**found, name: _merged(own if isinstance(own, dict) else {}, _defaults(chart))}
    return found


def _merged(above: Mapping[str, JsonValue], below: Mapping[str, JsonValue]) -> JsonObject:
    """Return the values ``below``, overridden by those ``above``: objects are merged, a null removes a value, and every other
    value replaces the one below.
    """
    made = dict(below)
    for key, value in above.items():
        under = made.get(key)
        if value is None:
            made.pop(key, None)
        elif isinstance(value, dict) and isinstance(under, dict):
            made[key] = _merged(value, under)
        else:
            made[key] = value
    return made


def _crds(node: _Node) -> Iterator[JsonObject]:
    for name, data in sorted(node.files.items()):
        if not name.startswith(f"{CRDS_FOLDER}/") or not name.endswith(_SUFFIXES):
            continue
        what = f"{node.name}/{name}"
        try:
            for document in read_yaml_all(data, what=what):
                if isinstance(document, dict) and find_str(document, "apiVersion") and find_str(document, "kind"):
                    yield document
        except FormatError as error:
            message = str(error)
            raise RenderError(message if message.startswith(f"{what}:") else f"{what}: {message}") from error


def _text(entry: JsonObject, key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def _list(entry: JsonObject, key: str) -> list[JsonValue]:
    value = entry.get(key)
    return value if isinstance(value, list) else []
