"""Files of one volume that stand in each other's way: two at one path, or one where another needs a folder."""

from dataclasses import dataclass

from wharfinger.cluster.control_plane.validation.amounts import text
from wharfinger.cluster.control_plane.validation.field_errors import quoted
from wharfinger.cluster.control_plane.validation.parts import part, parts
from wharfinger.formats.json_value import JsonObject


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    source: str = ""

    def __str__(self) -> str:
        return f"{quoted(self.path)} ({self.source})" if self.source else quoted(self.path)

    def meets(self, other: "_File") -> bool:
        """Whether one of the two is the other, or inside it."""
        if not self.path or not other.path:
            return False
        here, there = f"{self.path}/", f"{other.path}/"
        return here.startswith(there) or there.startswith(here)


def path_warnings(volumes: list[JsonObject]) -> list[str]:
    """Of the volumes of a pod."""
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
    seen: list[_File] = []
    for file in files:
        plain = _File(file.path.rstrip("/"), file.source)
        met = [other for other in seen if plain.meets(other)]
        warnings += [f"volume {quoted(volume)} ({described}): overlapping paths: {plain} with {other}" for other in met]
        seen.append(plain)
    return warnings
