"""The sources of an Argo CD Application: ``spec.source``, or ``spec.sources``.

Source: the reference of Argo CD's Application, https://argo-cd.readthedocs.io/en/stable/user-guide/application-specification/
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from wharfinger.formats.json.value import JsonObject, as_object, find, find_list, find_object, find_str


@dataclass(frozen=True, slots=True)
class ArgoSource:
    """One source of an Argo CD Application. ``field`` is its path in the Application, such as ``spec.sources[1]``."""

    repository: str
    revision: str
    path: str
    chart: str
    ref: str
    spec: JsonObject = field(repr=False)
    field: str = "spec.source"

    @property
    def is_values_only(self) -> bool:
        """True if the source makes no objects, and only has values files for other sources."""
        return bool(self.ref) and not self.path and not self.chart


def argo_sources(obj: JsonObject) -> tuple[ArgoSource, ...]:
    """Return the sources of an Application; ``spec.sources`` win over ``spec.source``. Raises FormatError."""
    several = find_list(obj, "spec", "sources")
    if several:
        entries = [
            (as_object(each, f"spec.sources[{number}]"), f"spec.sources[{number}]")
            for number, each in enumerate(several)
        ]
    else:
        one = find_object(obj, "spec", "source")
        entries = [(one, "spec.source")] if one else []
    return tuple(_source(entry, where) for entry, where in entries)


def argo_folders(obj: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the address of the repository and the path for each source of files. Raises FormatError."""
    for each in argo_sources(obj):
        if each.path and not each.chart:
            yield each.repository, each.path


def _source(entry: JsonObject, where: str) -> ArgoSource:
    revision = find(entry, "targetRevision")
    return ArgoSource(
        repository=find_str(entry, "repoURL").strip(),
        revision=revision if isinstance(revision, str) else "",
        path=find_str(entry, "path"),
        chart=find_str(entry, "chart"),
        ref=find_str(entry, "ref"),
        spec=entry,
        field=where,
    )
