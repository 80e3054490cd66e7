"""The warnings about conflicting files of one volume: two files at one path, or a file where another one needs a folder."""

from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import part, parts
from wharfinger.control_plane.wire.field_errors import quoted
from wharfinger.formats.json.value import JsonObject

MOST_WARNINGS: Final = 4096
"""The number of warnings about a volume after which the search ends.

A response contains at most 4096 characters of warnings (:mod:`~wharfinger.control_plane.http.handler`), so further warnings
would not be shown.
"""
_DEEPEST: Final = 64


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    source: str = ""

    def __str__(self) -> str:
        return f"{quoted(self.path)} ({self.source})" if self.source else quoted(self.path)

    @property
    def folders(self) -> list[str]:
        """Return the folders that contain the file; an empty list if there are more than ``_DEEPEST`` of them."""
        ends = [index for index, char in enumerate(self.path) if char == "/" and index]
        return [self.path[:end] for end in ends] if len(ends) <= _DEEPEST else []


def path_warnings(volumes: list[JsonObject]) -> list[str]:
    """Return the warnings about the volumes of a pod."""
    warnings: list[str] = []
    for volume in volumes:
        name = text(volume, "name")
        for kind, called, member in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
            if (source := part(volume, kind)) is not None:
                described = f"{called} {quoted(text(source, member))}"
                warnings += _overlaps(name, described, [_File(text(item, "path")) for item in parts(source, "items")])
        if (source := part(volume, "downwardAPI")) is not None:
            files = [_File(text(item, "path")) for item in parts(source, "items")]
            warnings += _overlaps(name, "DownwardAPI", files)
        if (source := part(volume, "projected")) is not None:
            projections = parts(source, "sources")
            warnings += [f"volume {quoted(name)} (Projected) has no sources provided"] * projections.count({})
            warnings += _overlaps(name, "Projected", [file for item in projections for file in _projected(item)])
    return warnings


def _projected(projection: JsonObject) -> list[_File]:
    for kind, called in (("configMap", "ConfigMap"), ("secret", "Secret")):
        source = part(projection, kind)
        if source is not None and parts(source, "items"):
            described = f"{called} {quoted(text(source, 'name'))}"
            return [_File(text(item, "path"), described) for item in parts(source, "items")]
    if parts(projection, "downwardAPI", "items"):
        return [_File(text(item, "path"), "DownwardAPI") for item in parts(projection, "downwardAPI", "items")]
    token = part(projection, "serviceAccountToken")
    return [] if token is None else [_File(text(token, "path"), "ServiceAccountToken")]


def _overlaps(volume: str, described: str, files: list[_File]) -> list[str]:
    warnings: list[str] = []
    plain = [_File(file.path.rstrip("/"), file.source) for file in files]
    at: dict[str, list[int]] = {}
    inside: dict[str, list[int]] = {}
    for index, file in enumerate(plain):
        if not file.path or len(warnings) >= MOST_WARNINGS:
            continue
        folders = file.folders
        met = [*inside.get(file.path, ()), *(other for path in (file.path, *folders) for other in at.get(path, ()))]
        warnings += [
            f"volume {quoted(volume)} ({described}): overlapping paths: {file} with {plain[other]}"
            for other in sorted(met)
        ]
        at.setdefault(file.path, []).append(index)
        for folder in folders:
            inside.setdefault(folder, []).append(index)
    return warnings
