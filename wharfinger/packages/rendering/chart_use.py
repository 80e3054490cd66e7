"""The inputs that a chart's templates use, found in the text of the chart's files.

Helm does not report which values, versions or objects of the cluster a render used, so the templates are searched for such uses.
The search also finds uses in code that is never executed, such as in a helper that no template includes. A use that is found by
mistake costs a render; a missed use would leave outdated data in a release.

If a template asks for an API version with a name that is not a literal, the name may come from the values, so the names in the
values count, too. A name that a template joins from parts, or reads from a file or from Chart.yaml, is not found.

``tpl`` renders texts from elsewhere: values, literals, and files of the chart if a template reads ``.Files``. If a chart calls
``tpl``, these texts are searched, too.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json, find_list, find_str
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.definition.chart_texts import ChartFile, TooMuchTextError, chart_files
from wharfinger.packages.definition.module_folder import CRDS_FOLDER, TEMPLATES_FOLDER, VALUES_FILE
from wharfinger.packages.rendering.template_actions import CAPABILITIES, VALUES, TemplateUse

MAX_NAMES: Final = 50_000
"""The largest number of dotted names, such as ``monitoring.coreos.com``, that are stored for one chart."""

_DOTTED: Final = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+")
_DECLARING: Final = (("Chart.yaml",), ("requirements.yaml",))
_CONTEXTS: Final = frozenset({"Values", "global", "Platform"})


@dataclass(frozen=True, slots=True)
class ChartUse:
    """The inputs that one chart can use.

    ``names`` are the dotted names in its templates, among them the groups of API versions; None means any. ``builds``, ``asked``
    and ``asks_more`` have the same meaning as in :class:`~wharfinger.packages.rendering.template_actions.TemplateUse`.
    """

    lookup: bool = False
    tpl: bool = False
    builds: bool = False
    kube_version: bool = False
    api_versions: bool = False
    asked: frozenset[str] = frozenset()
    asks_more: bool = False
    names: frozenset[str] | None = field(default=frozenset(), repr=False)
    words: frozenset[str] | None = field(default=frozenset(), repr=False)
    """The names in the fields that templates read, such as ``Chart`` and ``Name`` in ``.Chart.Name``; None if they may read any
    field.
    """
    values: frozenset[tuple[str, ...]] | None = field(default=frozenset(), repr=False)
    """The paths of values that templates and the conditions of sub-charts read; None means any."""
    charts: frozenset[str] = field(default=frozenset(), repr=False)
    """The names and aliases of all charts in the chart. They are the keys under which the values of these charts are found."""

    def may_look_up(self, values: JsonObject) -> bool:
        """Return whether the chart may read from the cluster when it is rendered with these values. Raises ShapeError."""
        return self.with_values(values).lookup

    def with_values(self, values: JsonObject) -> "ChartUse":
        """Return this use, extended by the inputs that the chart can use because of texts in the values. Raises ShapeError.

        ``tpl`` may render such a text as a template, and a template may build the name of an API version from it.
        """
        if not (self.tpl or self.asks_more):
            return self
        encode_json(values)
        found = TemplateUse()
        names = set(self.names or ())
        for text in _strings(values):
            if self.tpl:
                _read(found, text, builds=self.builds)
            names.update(_DOTTED.findall(text))
        return self._joined(found, names)

    def versions(self, api_versions: tuple[str, ...]) -> list[JsonValue]:
        """Return the API versions of a cluster that the render can depend on, sorted."""
        if self.api_versions:
            return [*sorted(set(api_versions))]
        names = self.names
        return [
            version
            for version in sorted(set(api_versions))
            if version in self.asked or (self.asks_more and (names is None or _may_be_named(version, names)))
        ]

    def reads(self, word: str) -> bool:
        """Return whether a template may read a field of this name."""
        return self.words is None or word in self.words

    def _joined(self, found: TemplateUse, names: set[str]) -> "ChartUse":
        if found.overflowed:
            return EVERYTHING
        too_many = self.names is None or len(names) > MAX_NAMES
        words = None if self.words is None or _reads_all(found) else self.words | found.words
        any_value = self.values is None or found.all_values or found.builds or VALUES in found.literals
        values = None if any_value or too_many or self.values is None else self.values | found.values
        return ChartUse(
            lookup=self.lookup or "lookup" in found.functions,
            tpl=self.tpl or "tpl" in found.functions,
            builds=self.builds or found.builds,
            kube_version=self.kube_version or found.kube or _speaks_of_capabilities(found),
            api_versions=self.api_versions or found.versions or _speaks_of_capabilities(found),
            asked=self.asked | found.asked,
            asks_more=self.asks_more or found.asks_more,
            names=None if too_many else frozenset(names),
            words=words,
            values=values,
            charts=self.charts,
        )


EVERYTHING: Final = ChartUse(
    lookup=True,
    tpl=True,
    builds=True,
    kube_version=True,
    api_versions=True,
    asks_more=True,
    names=None,
    words=None,
    values=None,
)
"""The assumption for a chart that is too large to be searched: its templates may use every input."""


def chart_use(chart: Path, *, is_package: bool) -> ChartUse:
    """Return the inputs that the templates of a chart, and of all charts in it, can use. Blocking.

    With ``is_package``, files outside of the package's chart are left out.
    """
    found = TemplateUse()
    names: set[str] = set()
    others: list[ChartFile] = []
    charts = _Charts()
    try:
        for file in chart_files(chart, is_package=is_package):
            if file.inside in _DECLARING:
                charts.read(found, file)
            if TEMPLATES_FOLDER in file.inside[:1]:
                text = file.text
                found.read(text)
                names.update(_DOTTED.findall(text))
            elif CRDS_FOLDER not in file.inside[:1]:
                others.append(file)
        if "tpl" in found.functions:
            _read_elsewhere(found, names, others)
        elif found.asks_more:
            for file in others:
                if file.inside == (VALUES_FILE,):
                    names.update(name for text in _default_texts(file) for name in _DOTTED.findall(text))
    except TooMuchTextError:
        return EVERYTHING
    found.values.update((key,) for key in charts.absent)
    return replace(ChartUse(), charts=frozenset(charts.keys))._joined(found, names)  # noqa: SLF001 - its own class


@dataclass(slots=True)
class _Charts:
    """The charts in a chart, read from the files that declare charts. ``own`` are the names of its sub-charts; ``declared`` are
    the names of dependencies, each with the key of its values.
    """

    own: set[str] = field(default_factory=set)
    declared: set[tuple[str, str]] = field(default_factory=set)

    @property
    def keys(self) -> set[str]:
        """Return the keys of the sections of ``values.yaml`` that have the values of sub-charts and dependencies."""
        return self.own | {key for _, key in self.declared}

    @property
    def absent(self) -> set[str]:
        """Return the keys of the values of missing dependencies. Because their files are missing, it is not known which of
        these values they read.
        """
        return {key for name, key in self.declared if name not in self.own}

    def read(self, found: TemplateUse, file: ChartFile) -> None:
        """Record the charts that a file declares. The values that the conditions of its dependencies name count as read. If the
        file cannot be parsed, all values count as read.
        """
        try:
            document = read_yaml(file.data, what=file.inside[0])
            if file.path != file.inside and (name := find_str(document, "name")):
                self.own.add(name)
            for entry in find_list(document, "dependencies"):
                name = find_str(entry, "name")
                self.declared.add((name, find_str(entry, "alias") or name))
                conditions = find_str(entry, "condition").split(",")
                found.values.update(tuple(each.strip().split(".")) for each in conditions if each.strip())
        except FormatError:
            found.all_values = True


def _read_elsewhere(found: TemplateUse, names: set[str], others: list[ChartFile]) -> None:
    """Read the texts of the chart that ``tpl`` can reach: literals, default values, and files if a template reads files."""
    builds = found.builds
    reads_files = "Files" in found.words or "Files" in found.literals
    for literal in tuple(found.literals):
        found.read(literal)
    for file in others:
        if file.inside == (VALUES_FILE,):
            texts = list(_default_texts(file))
        elif reads_files:
            texts = [file.text]
        else:
            continue
        for text in texts:
            _read(found, text, builds=builds)
            names.update(_DOTTED.findall(text))


def _default_texts(file: ChartFile) -> Iterator[str]:
    try:
        yield from _strings(read_yaml(file.data, what=VALUES_FILE))
    except FormatError:
        yield file.text  # Helm will report the error


def _read(found: TemplateUse, text: str, *, builds: bool) -> None:
    """Read a text that ``tpl`` may render. If ``builds`` is true, or if the braces in the text do not match, the text may also
    be a part of an action, which a template puts together.
    """
    if builds or text.count("{{") != text.count("}}"):
        found.read_part(text)
    else:
        found.read(text)


def _strings(value: JsonValue) -> Iterator[str]:
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            pending += [*one, *one.values()]
        elif isinstance(one, list):
            pending += one


def _speaks_of_capabilities(found: TemplateUse) -> bool:
    """Return whether a template may access the capabilities by their name, as in ``index . "Capabilities"``."""
    return CAPABILITIES in found.literals


def _reads_all(found: TemplateUse) -> bool:
    """Return whether a template reads the values as a whole, as in ``toYaml .Values``."""
    return not _CONTEXTS.isdisjoint(found.ends) or not _CONTEXTS.isdisjoint(found.literals)


def _may_be_named(version: str, names: frozenset[str]) -> bool:
    """Return whether the group of a version is a single word, as the built-in group ``apps`` is, or is in ``names``.

    The version is ``group/version`` or ``group/version/Kind``.
    """
    group = version.partition("/")[0]
    return "." not in group or group in names
