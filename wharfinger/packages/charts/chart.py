"""Helm charts as folders: reading ``Chart.yaml``, and packing the folder into an archive.

Packing is deterministic: the same files give the same bytes, and so the same digest, on every machine at any time. In the
archive, names are sorted, times are zero, modes are 0644 or 0755, and there are no owners. A link that leads out of the folder
is refused, because the archive would contain a file from elsewhere on the machine.
"""

import gzip
import io
import os
import re
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, as_object, find_list, find_str, need_str
from wharfinger.packages.charts.chart_metadata import read_metadata
from wharfinger.packages.charts.helmignore import FILE_NAME, MAX_BYTES, Rule, is_ignored, read_rules
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.files.package_files import follow_links

CHART_FILE: Final = "Chart.yaml"
MAX_CHART_FILE: Final = 1024 * 1024
MAX_FILES: Final = 10_000
MAX_TOTAL: Final = 100 * 1024 * 1024
"""The largest size of all files together, in bytes; Helm has the same limit for an archive."""
MAX_PATHS: Final = 50_000
"""The largest number of files and folders, with links followed: a few links to folders can lead to a huge number of paths."""
MAX_FOLDERS_DEEP: Final = 64
_ALWAYS_IN_CHARTS: Final = frozenset({CHART_FILE, "package.yaml", "module.yaml"})
"""The files that determine the layout of a package's folder; they are always packed."""
_ALWAYS_IN_PACKAGES: Final = _ALWAYS_IN_CHARTS | {
    "crds",
    "enabled",
    "hooks",
    "images_digests.json",
    "openapi",
    "values.yaml",
    "version.json",
}
"""The files that belong to a package even if ``.helmignore`` lists them, because ``.helmignore`` only hides them from Helm."""

# The versions that Masterminds/semver's NewVersion accepts, as Helm does: with a leading v, leading zeros, or missing parts.
_PRERELEASE: Final = r"(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION: Final = re.compile(
    rf"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-{_PRERELEASE}(?:\.{_PRERELEASE})*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?\Z",
    re.ASCII,
)
_LARGEST_PART: Final = 2**64 - 1
_MAX_NAME: Final = 1000
_MAX_VERSION: Final = 200
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z", re.ASCII)
_ALIAS: Final = re.compile(r"[a-zA-Z0-9_-]+\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class ChartDependency:
    """A sub-chart named in ``Chart.yaml``."""

    name: str
    version: str
    repository: str
    alias: str
    condition: str


@dataclass(frozen=True, slots=True)
class Chart:
    """The content of ``Chart.yaml``. ``metadata`` has the fields that Helm knows, with the types that Helm gives them.

    ``warnings`` name oddities of the file, each with its line if it is known.
    """

    folder: Path
    api_version: str
    name: str
    version: str
    app_version: str
    type: str
    description: str
    dependencies: tuple[ChartDependency, ...]
    metadata: JsonObject = field(repr=False)
    warnings: tuple[str, ...] = ()


def read_chart(folder: Path) -> Chart:
    """Read a chart folder's ``Chart.yaml``. Raises ArtifactError naming file and line."""
    path = folder / CHART_FILE
    try:
        with path.open("rb") as file:
            data = file.read(MAX_CHART_FILE + 1)
    except FileNotFoundError as error:
        raise ArtifactError(f"{folder}: expected a chart's folder, found no {CHART_FILE}") from error
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read: {error.strerror}") from error
    return read_chart_file(data, folder)


def read_chart_file(data: bytes, folder: Path) -> Chart:
    """Read the bytes of a ``Chart.yaml``; ``folder`` is its folder. Raises ArtifactError naming file and line."""
    what = str(folder / CHART_FILE)
    if len(data) > MAX_CHART_FILE:
        raise ArtifactError(f"{what}: more than {MAX_CHART_FILE} bytes")
    try:
        metadata, odd = read_metadata(data, what)
        if not metadata.get("apiVersion"):
            metadata["apiVersion"] = "v1"
            odd += ("apiVersion: missing; read as v1, as Helm reads it",)
        chart = Chart(
            folder=folder,
            api_version=need_str(metadata, "apiVersion"),
            name=need_str(metadata, "name"),
            version=need_str(metadata, "version"),
            app_version=find_str(metadata, "appVersion"),
            type=find_str(metadata, "type") or "application",
            description=find_str(metadata, "description"),
            dependencies=tuple(_dependency(entry) for entry in find_list(metadata, "dependencies")),
            metadata=metadata,
        )
        _check(chart)
    except FormatError as error:
        message = str(error)
        if what in message:
            raise ArtifactError(message) from error
        raise ArtifactError(f"{what}{_line(data, message)}: {message}") from error
    return replace(chart, warnings=tuple(f"{what}{_line(data, each)}: {each}" for each in (*odd, *_oddities(chart))))


def synthetic_chart(folder: Path, name: str, app_version: str) -> Chart:
    """Return a chart for a package that has something to render but no ``Chart.yaml``.

    It has the package's name, and the version 0.2.0. Templates of module folders see the same name and version in addon-operator
    (spec hook-protocol §5.8). The release record, from which ``helm list`` reads the version, contains the package's version
    instead, unless that is not a semantic version (`Definition.recorded_chart`).
    """
    metadata: JsonObject = {"apiVersion": "v2", "name": name, "version": "0.2.0"}
    if app_version:
        metadata["appVersion"] = app_version
    return Chart(folder, "v2", name, "0.2.0", app_version, "application", "", (), metadata)


def pack_chart(folder: Path) -> bytes:
    """Pack the folder as a Helm chart archive (gzipped tar, everything below ``<chart name>/``).

    Raises ArtifactError if the folder is not a chart, contains something that cannot be packed, or is too big.
    """
    return pack_folder(folder, prefix=f"{read_chart(folder).name}/")


def pack_folder(folder: Path, *, prefix: str = "") -> bytes:
    """Pack the folder as a gzipped tar, with ``prefix`` before each name, and without the files that ``.helmignore`` lists.

    Without a prefix, the folder is packed as a package: its hooks, schemas and CRDs are included even if ``.helmignore`` lists
    them. Raises ArtifactError if the folder contains something that cannot be packed, or is too big.
    """
    root = folder.resolve()
    packed = io.BytesIO()
    always = _ALWAYS_IN_CHARTS if prefix else _ALWAYS_IN_PACKAGES
    total = 0
    try:
        # The name and time in a gzip header would make each archive different.
        with (
            gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=packed, mtime=0) as squeezed,
            tarfile.open(fileobj=squeezed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            files = list(islice(_files(root, _rules(root), always), MAX_FILES + 1))
            if len(files) > MAX_FILES:
                raise ArtifactError(f"{folder}: more than {MAX_FILES} files; exclude some of them with {FILE_NAME}")
            for name, path in sorted(files):
                name.encode()
                content, executable = _read_file(path, MAX_TOTAL - total)
                total += len(content)
                entry = tarfile.TarInfo(prefix + name)
                entry.size, entry.mode, entry.mtime = len(content), 0o755 if executable else 0o644, 0
                archive.addfile(entry, io.BytesIO(content))
    except OSError as error:
        raise ArtifactError(f"{error.filename or folder}: cannot be read: {error.strerror}") from error
    except UnicodeEncodeError as error:
        raise ArtifactError(f"{folder}: the name {error.object!r} is not UTF-8; rename the file") from error
    return packed.getvalue()


def _check(chart: Chart) -> None:
    """Raise ShapeError for a chart that Helm refuses."""
    # Helm 3 accepts "." and "..", too. They are refused here, because the archive has a folder with the chart's name.
    if "/" in chart.name or chart.name in {".", ".."} or len(chart.name) > _MAX_NAME:
        raise ShapeError(
            f"name: {chart.name[:100]!r} is not a valid chart name: expected letters, digits, '-', '_', '.'"
        )
    version = _VERSION.match(chart.version)
    fits = version is not None and all(int(part) <= _LARGEST_PART for part in version.groups() if part)
    if not fits or len(chart.version) > _MAX_VERSION:
        raise ShapeError(f"version: {chart.version[:100]!r} is not a valid semantic version, such as 1.2.3")
    if chart.type not in {"application", "library"}:
        raise ShapeError(f"type: {chart.type[:50]!r} is neither application nor library")
    seen: set[str] = set()
    for each in chart.dependencies:
        if each.alias and not _ALIAS.match(each.alias):
            raise ShapeError(
                f"dependencies: {each.name[:100]}: alias: {each.alias[:50]!r} has other characters than letters, digits, '-', '_'"
            )
        if (name := each.alias or each.name) in seen:
            raise ShapeError(f"dependencies: {name[:100]!r} is listed twice; give one of them an alias")
        seen.add(name)


def _oddities(chart: Chart) -> Iterator[str]:
    """Yield a warning for each field whose value is probably a mistake, although Helm accepts it."""
    if chart.api_version not in {"v1", "v2"}:
        yield f"apiVersion: {chart.api_version[:50]!r} is neither v1 nor v2: Helm 4 does not render it, Helm 3 does"
    if not _PLAIN_NAME.match(chart.name) or ".." in chart.name:
        yield f"name: {chart.name[:100]!r} has other characters than letters, digits, '-', '_', '.'"


def _dependency(value: JsonValue) -> ChartDependency:
    entry = as_object(value, "dependencies")
    return ChartDependency(
        name=find_str(entry, "name"),
        version=find_str(entry, "version"),
        repository=find_str(entry, "repository"),
        alias=find_str(entry, "alias"),
        condition=find_str(entry, "condition"),
    )


def _line(data: bytes, message: str) -> str:
    """Return a text such as `` line 4``: the line of the field with which ``message`` begins; "" if the file lacks it."""
    key = re.match(r"[A-Za-z]+", message)
    if key is None:
        return ""
    for number, line in enumerate(data.splitlines(), 1):
        if line.startswith(key[0].encode() + b":"):
            return f" line {number}"
    return ""


def _rules(root: Path) -> tuple[Rule, ...]:
    path = root / FILE_NAME
    if not path.is_file():
        return read_rules("")
    data, _ = _read_file(path, MAX_BYTES)
    try:
        return read_rules(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ArtifactError(f"{path}: not UTF-8 text") from error


def _files(root: Path, rules: tuple[Rule, ...], always: frozenset[str]) -> Iterator[tuple[str, Path]]:
    """Yield the name and the path of each file to pack. The name is relative to ``root``, with ``/`` between folders; links are
    followed.

    Files in ``always`` are never ignored.
    """
    pending: list[tuple[str, Path, tuple[Path, ...]]] = [("", root, (root,))]
    count = 0
    while pending:
        prefix, folder, chain = pending.pop()
        if len(chain) > MAX_FOLDERS_DEEP:
            raise ArtifactError(f"{folder}: more than {MAX_FOLDERS_DEEP} folders inside each other")
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            name = prefix + entry.name
            is_kept = name.partition("/")[0] in always
            if not is_kept and is_ignored(rules, name, is_folder=_is_folder(entry)):
                continue
            count += 1
            if count > MAX_PATHS:
                raise ArtifactError(
                    f"{root}: more than {MAX_PATHS} paths if links to folders are followed; "
                    f"include each folder only once, or list links in {FILE_NAME}"
                )
            path = _inside(Path(entry.path), root)
            mode = path.stat().st_mode
            if stat.S_ISDIR(mode):
                if path in chain:
                    raise ArtifactError(f"{entry.path}: a link to a folder that contains it; remove it")
                pending.append((name + "/", path, (*chain, path)))
            elif stat.S_ISREG(mode):
                yield name, path
            else:
                raise ArtifactError(f"{entry.path}: neither file nor folder; remove it or list it in {FILE_NAME}")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle; it is an error only if .helmignore does not list it
        return False


def _inside(path: Path, root: Path) -> Path:
    """Return the path with links followed. Raises ArtifactError if the path leaves the chart's folder."""
    real = follow_links(path, str(path))
    if not real.is_relative_to(root):
        raise ArtifactError(f"{path}: a link that leaves the chart's folder; copy its target into the chart")
    return real


def _read_file(path: Path, room: int) -> tuple[bytes, bool]:
    """Return the content of a file, and whether its owner may execute it.

    Links in the path must have been followed before; a file that has become a link since then is refused.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        content = file.read(room + 1)
        if len(content) > room:
            raise ArtifactError(
                f"{path}: too big, or the chart has more than {MAX_TOTAL} bytes; exclude it with {FILE_NAME}"
            )
        return content, bool(os.fstat(file.fileno()).st_mode & stat.S_IXUSR)
