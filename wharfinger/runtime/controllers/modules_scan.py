"""The scan of modules directories and of the folder of global hooks: the modules that exist, and a digest of each folder.
Blocking.

A scan reads the ``values.yaml`` files, and the metadata of every file. All contents of a folder are read for its digest only if
the metadata of anything in the folder has changed since the last scan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from wharfinger.packages.definition.definition import read_definition
from wharfinger.packages.definition.global_folder import GLOBAL_PACKAGE
from wharfinger.packages.definition.modules_dir import FoundModule, ModulesDirs, read_modules_dirs
from wharfinger.packages.errors import ArtifactError, PackageError
from wharfinger.packages.registry.address import tag_of_version
from wharfinger.packages.store.folder_digest import folder_digest, folder_stamp


@dataclass(frozen=True, slots=True)
class FolderContent:
    """The content of a folder: the ``digest`` of its files, and the ``version`` that its files name ("" if they name none)."""

    digest: str
    version: str = ""


@dataclass(frozen=True, slots=True)
class Scan:
    """The result of one scan.

    ``contents`` has the digest and the version of every module in ``dirs``, by the module's name. ``global_content`` is the
    digest of the global hooks; "" if there are none.
    """

    dirs: ModulesDirs = field(default_factory=ModulesDirs)
    contents: Mapping[str, FolderContent] = field(default_factory=dict)
    global_content: str = ""


class Scanner:
    """The scanner of a fixed set of folders, which remembers the digests of unchanged folders between scans."""

    def __init__(self, dirs: Sequence[Path], global_hooks: Path | None) -> None:
        self._dirs = tuple(dirs)
        self._global_hooks = global_hooks
        self._known: dict[Path, tuple[str, FolderContent]] = {}

    def scan(self) -> Scan:
        """Scan everything now. Raises ArtifactError if a directory as a whole cannot be read."""
        dirs = read_modules_dirs(self._dirs)
        known, self._known = self._known, {}
        contents: dict[str, FolderContent] = {}
        warnings: list[str] = []
        for module in dirs.modules:
            try:
                contents[module.name] = self._content(module.path, known, module)
            except ArtifactError as error:
                warnings.append(str(error))
        if warnings:
            dirs = replace(
                dirs,
                modules=tuple(module for module in dirs.modules if module.name in contents),
                broken=dirs.broken | {module.name for module in dirs.modules if module.name not in contents},
                warnings=(*dirs.warnings, *warnings),
            )
        return Scan(dirs, contents, self._of_global_hooks(known))

    def _of_global_hooks(self, known: Mapping[Path, tuple[str, FolderContent]]) -> str:
        folder = self._global_hooks
        if folder is None:
            return ""
        if not folder.is_dir():
            raise ArtifactError(f"global hooks {folder}: not a folder; name an existing one")
        if (folder / GLOBAL_PACKAGE).exists():
            raise ArtifactError(
                f"global hooks {folder}: the folder contains {GLOBAL_PACKAGE}, but the daemon uses this name for the package "
                f"that it makes from the folder; rename {GLOBAL_PACKAGE}"
            )
        return self._content(folder, known, None).digest

    def _content(
        self, path: Path, known: Mapping[Path, tuple[str, FolderContent]], module: FoundModule | None
    ) -> FolderContent:
        """Return the digest of a folder and the version in it, from the last scan if the folder has not changed since.

        Raises ArtifactError.
        """
        stamp = folder_stamp(path)
        before = known.get(path)
        if before is not None and before[0] == stamp:
            content = before[1]
        else:
            content = FolderContent(folder_digest(path), _version(module) if module is not None else "")
        self._known[path] = stamp, content
        return content


def _version(module: FoundModule) -> str:
    """Return the version that a module's files name; "" if they name none, or have a mistake. The installation of the module
    will report the mistake.
    """
    try:
        version = read_definition(module.path, name=module.folder, version="", in_modules_dir=True).version
        return tag_of_version(version) if version else ""
    except PackageError:
        return ""
