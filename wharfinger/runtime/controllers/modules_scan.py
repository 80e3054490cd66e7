"""What lies in modules directories and in the folder of global hooks now, and of which content it is. Blocking.

A look reads every ``values.yaml`` and asks the file system about each file. The files themselves are read, for their digest, only
where that says that they may have changed since the last look.
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
    """``digest`` of a folder's files; ``version`` as the tag to ask for it by, empty where the folder says none."""

    digest: str
    version: str = ""


@dataclass(frozen=True, slots=True)
class Scan:
    """One look. ``contents`` has every module of ``dirs``, by name; ``global_content`` is empty without global hooks."""

    dirs: ModulesDirs = field(default_factory=ModulesDirs)
    contents: Mapping[str, FolderContent] = field(default_factory=dict)
    global_content: str = ""


class Scanner:
    """Looks at the same folders again and again."""

    def __init__(self, dirs: Sequence[Path], global_hooks: Path | None) -> None:
        self._dirs = tuple(dirs)
        self._global_hooks = global_hooks
        self._known: dict[Path, tuple[str, FolderContent]] = {}

    def scan(self) -> Scan:
        """Look at everything now. Raises ArtifactError where a directory as a whole cannot be read."""
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
            raise ArtifactError(f"global hooks {folder}: not a folder; name one that is there")
        if (folder / GLOBAL_PACKAGE).exists():
            raise ArtifactError(
                f"global hooks {folder}: it has {GLOBAL_PACKAGE} in it, which cannot be told from itself; rename that"
            )
        return self._content(folder, known, None).digest

    def _content(
        self, path: Path, known: Mapping[Path, tuple[str, FolderContent]], module: FoundModule | None
    ) -> FolderContent:
        """Raises ArtifactError."""
        stamp = folder_stamp(path)
        before = known.get(path)
        if before is not None and before[0] == stamp:
            content = before[1]
        else:
            content = FolderContent(folder_digest(path), _version(module) if module is not None else "")
        self._known[path] = stamp, content
        return content


def _version(module: FoundModule) -> str:
    """What its files say; nothing where they are wrong, which is told by who installs them."""
    try:
        version = read_definition(module.path, name=module.folder, version="", in_modules_dir=True).version
        return tag_of_version(version) if version else ""
    except PackageError:
        return ""
