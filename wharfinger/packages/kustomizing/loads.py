"""The check of the files that a build loads, before the build: they must lie in the source, and not be too large.

Flux builds each source in a file system of its own, so a kustomization cannot load files outside of the source. Builders here can
read the whole disk, and their output goes into logs and reviews. So every text of a ``kustomization.yaml`` that may be a path is
checked, and so are the targets of links, and the files of generators and transformers. Kustomize resolves ``..`` in a path
before it follows links, but the operating system resolves it afterwards. If the two ways lead to two files, both files are
checked.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.yaml.parsed_texts import ParsedTexts
from wharfinger.formats.yaml.reader import read_yaml, read_yaml_all
from wharfinger.packages.definition.manifest_folder import KUSTOMIZATION_FILES
from wharfinger.packages.files.disk_files import read_start

MAX_KUSTOMIZATION: Final = 4 * 1024 * 1024
MAX_LOADED: Final = 16 * 1024 * 1024
_PLUGINS: Final = ("generators", "transformers", "validators")
"""The fields for plugins: lists of files, relative to the kustomization. These files may name further files. An entry may also be
the text of such a file.
"""
_REPOSITORY_HERE: Final = re.compile(r"\s*(git::)*file://", re.IGNORECASE)
"""The start of the address of a git repository on this machine."""
_ADDRESS: Final = re.compile(r"https?://", re.IGNORECASE)
"""The start of an address that kustomize itself fetches. Such addresses are refused here if a build has no network. It is not
enough that kustomize then gets a proxy that does not exist, because clients in Go use no proxy for addresses on this machine.
"""
_INLINE: Final = re.compile(r"[\n\r\x85\u2028\u2029{]|:\s")
"""A text in which this expression matches is an inline object, not a path."""
_NO_PATHS: Final = frozenset(
    {
        "apiVersion", "buildMetadata", "commonAnnotations", "commonLabels", "generatorOptions", "images", "kind", "labels",
        "literals", "metadata", "namePrefix", "nameSuffix", "namespace", "options", "replicas", "sortOptions", "vars",
    }
)  # fmt: skip
"""Fields without paths."""


class LoadError(Exception):
    """A kustomization or a link leads to a file that must not be loaded. ``file`` is the kustomization or the link.

    ``is_outside`` is True if a kustomization names an existing file outside of the source.
    """

    def __init__(self, message: str, file: Path, *, is_outside: bool = False) -> None:
        super().__init__(message)
        self.file = file
        self.is_outside = is_outside


def kustomization_file(folder: Path) -> Path | None:
    """Return the ``kustomization.yaml`` of a folder; None if there is none. Blocking."""
    found = (f"{folder}/{name}" for name in KUSTOMIZATION_FILES)
    path = next(filter(os.path.isfile, found), None)
    return None if path is None else Path(path)


def read_kustomization(path: Path, texts: ParsedTexts | None = None) -> JsonValue:
    """Read a ``kustomization.yaml``. Blocking. Raises FormatError, OSError."""
    data = read_start(str(path), MAX_KUSTOMIZATION + 1)
    read = read_yaml if texts is None else texts.document
    return read(data, what=path.name)  # refuses a text over its limit


def check_loads(
    folder: Path,
    limit: Path,
    more: Iterable[str] = (),
    *,
    remote: bool = True,
    paths: "RealPaths | None" = None,
    texts: ParsedTexts | None = None,
) -> None:
    """Check everything that a build of a folder would load; ``more`` are further paths, relative to the folder.

    All files must lie in the folder ``limit``. Addresses are refused unless ``remote``. ``paths`` and ``texts`` are caches
    that all checks of a run share. Blocking. Raises LoadError.
    """
    paths = paths or RealPaths()
    top = paths.of(str(limit.absolute()))
    seen: set[str] = set()
    pending = [paths.of(str(folder.absolute()))]
    for text in more:
        pending += _checked(pending[0], text, top, Path(pending[0]), paths)
    while pending:
        place = pending.pop()
        if place in seen:
            continue
        seen.add(place)
        path = kustomization_file(Path(place))
        if path is None:
            continue
        for text in _texts_of(path, texts):
            if not remote and _ADDRESS.match(text):
                raise LoadError(f"names {text!r}, but a package is built without a network", path)
            pending += _checked(place, text, top, path, paths)


def check_links(folder: Path, limit: Path) -> None:
    """Check that no link in a chart's folder leads out of ``limit``, or to a folder.

    Helm follows links, and the digest of the chart does not include the content of a linked folder. Blocking. Raises LoadError.
    """
    top = os.path.realpath(limit)
    for place, folders, files in os.walk(folder):
        for name in sorted((*folders, *files)):
            path = Path(place) / name
            if not path.is_symlink():
                continue
            told = f"{path.relative_to(folder)} is a link"
            if not _is_inside(os.path.realpath(path), top):
                raise LoadError(f"{told} that leads out of the source; put a copy in its place", path)
            if path.is_dir():
                raise LoadError(f"{told} to a folder; put a copy in its place", path)


def _is_inside(real: str, top: str) -> bool:
    return real == top or real.startswith(f"{top.rstrip('/')}/")


def _texts_of(path: Path, texts: ParsedTexts | None) -> Iterator[str]:
    """Yield all texts that may be paths: those of a kustomization, and those of its generators and transformers."""
    try:
        document = read_kustomization(path, texts)
        yield from _texts(document)
        for key, value in document.items() if isinstance(document, dict) else ():
            if key.casefold() in _PLUGINS:  # kustomize ignores the case of fields
                for each in value if isinstance(value, list) else ():
                    if isinstance(each, str):
                        yield from _plugin_texts(path, each)
    except (FormatError, OSError) as error:
        raise LoadError(f"cannot be checked: {error}", path) from error


def _plugin_texts(kustomization: Path, text: str) -> Iterator[str]:
    """Yield all texts of a generator or a transformer that may be paths. Raises LoadError, FormatError, OSError."""
    if _INLINE.search(text):
        yield from _texts(read_yaml_all(text, what="a plugin"))
        return
    found = [path for path in _files(str(kustomization.parent), text, RealPaths()) if Path(path).is_file()]
    if not found:
        told = f"names {text!r} as a plugin, which cannot be checked, because it is not a file; name the files"
        raise LoadError(told, kustomization)
    for each in found:
        with Path(each).open("rb") as file:
            data = file.read(MAX_KUSTOMIZATION + 1)
        yield from _texts(read_yaml_all(data, what=text))  # refuses a text over its limit


def _texts(value: JsonValue, field: str = "") -> Iterator[str]:
    if isinstance(value, str):
        if value:
            yield value
        key, sign, path = value.partition("=")
        if sign and path and (field == "files" or "\n" not in key):  # key=path, as in `files` of a generator
            yield path
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each, field)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key not in _NO_PATHS:
                yield from _texts(each, key.casefold())


class RealPaths:
    """A cache of the real paths of files, for one run that reads many files of the same folders: each name is resolved once."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._steps: dict[str, str] = {}

    def of(self, path: str) -> str:
        """Return the real path of an absolute path, as ``os.path.realpath`` does. Blocking. Raises OSError, ValueError."""
        if (known := self._known.get(path)) is not None:
            return known
        real, begin = "/", 0
        folder = path.rfind("/")
        if folder > 0 and (above := self._known.get(path[:folder])) is not None:
            real, begin = above, folder + 1
        while begin < len(path):
            end = path.find("/", begin)
            end = len(path) if end < 0 else end
            upto = path[:end]
            if upto not in self._known:
                self._known[upto] = self._step(real, path[begin:end])
            real, begin = self._known[upto], end + 1
        return real

    def is_inside(self, path: Path, folder: Path) -> bool:
        """Return whether ``path`` leads into ``folder``. Both are absolute. Blocking. Raises OSError, ValueError."""
        return _is_inside(self.of(str(path)), self.of(str(folder)))

    def _step(self, real: str, name: str) -> str:
        """Return the real path of the entry ``name`` in the folder whose real path is ``real``."""
        if name in {"", "."}:
            return real
        if name == "..":
            return os.path.dirname(real)  # noqa: PTH120 - texts are faster
        joined = f"{real.rstrip('/')}/{name}"
        if joined not in self._steps:
            is_link = os.path.islink(joined)  # noqa: PTH114 - as above
            self._steps[joined] = os.path.realpath(joined) if is_link else joined
        return self._steps[joined]


def _files(place: str, text: str, paths: RealPaths) -> tuple[str, ...]:
    """Return the real paths of the files that a text may name. There are two readings of the text: ``..`` is resolved first, or
    links are resolved first, as the system does it.
    """
    joined = os.path.join(place, text.replace("\0", "\1"))  # noqa: PTH118 - an absolute text is a path of its own
    found: dict[str, None] = {}
    for path in {os.path.normpath(joined): None, joined: None}:
        try:
            found[paths.of(path)] = None
        except (OSError, ValueError):
            continue  # the text cannot be a path
    return tuple(found)


def _checked(place: str, text: str, top: str, kustomization: Path, paths: RealPaths) -> tuple[str, ...]:
    """Check one text of a kustomization, which may name a file or folder. Return the named folders that have a kustomization of
    their own. Raises LoadError.
    """
    if _REPOSITORY_HERE.match(text):
        told = f"names {text!r}, a repository outside of the source; copy it into the source"
        raise LoadError(told, kustomization)
    return tuple(each for real in _files(place, text, paths) for each in _checked_file(real, text, top, kustomization))


def _checked_file(real: str, text: str, top: str, kustomization: Path) -> tuple[str, ...]:
    """Check the file or folder at ``real``, which ``text`` may name. Return the path if it is a folder with a kustomization of
    its own. Raises LoadError.
    """
    try:
        found = os.stat(real)  # noqa: PTH116
    except (OSError, ValueError):
        return ()  # if the text is a path, the build reports that there is no such file
    is_folder = stat.S_ISDIR(found.st_mode)
    if is_folder and kustomization_file(Path(real)) is None:
        return ()
    if not _is_inside(real, top):
        told = f"names {text!r}, which lies outside of the source; copy it into the source"
        raise LoadError(told, kustomization, is_outside=True)
    if is_folder:
        return (real,)
    if not stat.S_ISREG(found.st_mode):
        raise LoadError(f"names {text!r}, which is not a file", kustomization)
    if found.st_size > MAX_LOADED:
        raise LoadError(f"names {text!r}, which has more than {MAX_LOADED} bytes; split it", kustomization)
    return ()
