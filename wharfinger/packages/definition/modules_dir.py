"""Directories of module folders, as addon-operator uses them: the modules in them, and the files beside the modules.

Every folder in such a directory is a module, and so is a link to a folder; names that begin with a dot are ignored.
``values.yaml`` belongs to the directory itself (spec hook-protocol §5.4 to §5.6)::

    modules/
      values.yaml          global: …                   values for all modules
                           sysctlTuner: …              values for one module of this directory
                           sysctlTunerEnabled: true    whether this module is on
      002-sysctl-tuner/
        values.yaml        sysctlTuner: …              override those of the directory
                           sysctlTunerEnabled: true    is overridden by that of the directory

The user's settings override all of these values.

If several modules have the same name, the first one counts: earlier directories come before later ones, and folders of one
directory are in the order of their names. If one directory or its ``values.yaml`` cannot be read, no result is returned at all,
because a partial result would look as if the modules of this directory were removed. A problem of one module is a warning. If a
module exists but cannot be read, its name is in ``broken``, so that it does not count as removed.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Final

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.merge_patch import overlaid
from wharfinger.packages.definition.definition import UNNUMBERED_WEIGHT
from wharfinger.packages.definition.module_folder import (
    ENABLED_SUFFIX,
    GLOBAL_NAME,
    VALUES_FILE,
    camel_name,
    check_module_name,
    enabled_flag,
    kebab_name,
    section_of,
    split_weight,
)
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.files.package_files import open_files

MAX_ENTRIES: Final = 10_000
"""The largest number of entries in one directory."""


@dataclass(frozen=True, slots=True)
class FoundModule:
    """The folder of a module. Its name in ``dir`` is ``folder``, which consists of the module's weight and its ``name``."""

    name: str
    weight: int
    folder: str
    dir: Path

    @property
    def path(self) -> Path:
        """The path of the folder, which may be a link."""
        return self.dir / self.folder


@dataclass(frozen=True, slots=True)
class ModulesDirs:
    """The content of some modules directories.

    ``modules`` are in the order of weight, then name. ``static`` has the values that the directories set for each module,
    without those in the module's own ``values.yaml``; ``enabled`` has the flags by module name. ``global_values`` are the
    merged global values of all directories; the values of earlier directories take precedence.
    """

    modules: tuple[FoundModule, ...] = ()
    global_values: JsonObject = field(default_factory=dict, repr=False)
    static: Mapping[str, JsonObject] = field(default_factory=dict, repr=False)
    enabled: Mapping[str, bool] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    broken: frozenset[str] = frozenset()
    """The names of modules that exist but cannot be read."""


def read_modules_dirs(paths: Sequence[Path]) -> ModulesDirs:
    """Read modules directories. Blocking. Raises ArtifactError naming the directory and its problem."""
    return _Reading(tuple(paths), tuple(_values_of(path) for path in paths)).all()


class _Reading:
    """One reading of all modules directories: what was found in the directories that are read already."""

    def __init__(self, dirs: tuple[Path, ...], values: tuple[JsonObject, ...]) -> None:
        self._dirs = dirs
        self._values = values
        self._found: dict[str, FoundModule] = {}
        self._static: dict[str, JsonObject] = {}
        self._enabled: dict[str, bool] = {}
        self._warnings: list[str] = []
        self._broken: set[str] = set()

    def all(self) -> ModulesDirs:
        for at, folder in enumerate(self._dirs):
            for entry in _entries(folder):
                self._look_at(entry, at)
        self._warn_of_strangers()
        return ModulesDirs(
            tuple(sorted(self._found.values(), key=lambda module: (module.weight, module.name))),
            self._globals(),
            MappingProxyType(self._static),
            MappingProxyType(self._enabled),
            tuple(self._warnings),
            frozenset(self._broken),
        )

    def _look_at(self, entry: "os.DirEntry[str]", at: int) -> None:
        path = Path(entry.path)
        if entry.name.startswith(".") or (entry.name == VALUES_FILE and not _is_folder(entry)):
            return
        if not _is_folder(entry):
            if not _is_broken_link(entry):
                self._warnings.append(f"{path}: neither a module's folder nor {VALUES_FILE}; it is ignored")
                return
            self._warnings.append(f"{path}: a broken link; remove it, or restore its target")
            self._broken.update({split_weight(entry.name)[1]} - self._found.keys())
            return
        weight, name = split_weight(entry.name)
        try:
            _check_name(name)
            module = FoundModule(name, UNNUMBERED_WEIGHT if weight is None else weight, entry.name, self._dirs[at])
            if (first := self._found.get(name)) is not None:
                self._warnings.append(f"{path}: module {name} is also in {first.path}, which is used instead")
                return
            own_flag = self._flag(module, at)
        except ArtifactError as error:
            self._warnings.append(f"{path}: {error}")
            self._broken.update({name} - self._found.keys())
            return
        self._broken.discard(name)
        self._found[name] = module
        self._static[name] = section_of(self._values[at], camel_name(name), str(self._dirs[at] / VALUES_FILE))
        if own_flag is not None:
            self._enabled[name] = own_flag

    def _flag(self, module: FoundModule, at: int) -> bool | None:
        """Return the flag that turns the module on or off; None if there is none. ``at`` is the index of its modules directory.

        The flag is searched for in the ``values.yaml`` of that directory first, then in the ``values.yaml`` of each other
        modules directory, and then in the ``values.yaml`` of the module itself.
        """
        for each in (at, *(other for other in range(len(self._dirs)) if other != at)):
            flag = enabled_flag(self._values[each], module.name, str(self._dirs[each] / VALUES_FILE))
            if flag is not None:
                return flag
        return enabled_flag(open_files(module.path, module.name).read_object(VALUES_FILE) or {}, module.name)

    def _globals(self) -> JsonObject:
        merged: JsonObject = {}
        for folder, values in reversed(tuple(zip(self._dirs, self._values, strict=True))):
            # Every reader refuses values that are nested too deeply to be merged.
            merged = overlaid(merged, section_of(values, GLOBAL_NAME, str(folder / VALUES_FILE)))
        return merged

    def _warn_of_strangers(self) -> None:
        """Warn of keys of ``values.yaml`` for modules that do not exist; most of these keys are misspelled."""
        known = self._found.keys() | self._broken | {GLOBAL_NAME}
        for folder, values in zip(self._dirs, self._values, strict=True):
            strangers = sorted(key for key in values if kebab_name(key.removesuffix(ENABLED_SUFFIX)) not in known)
            if strangers:
                shown = ", ".join(key[:80] for key in strangers[:5]) + (", …" if len(strangers) > 5 else "")
                self._warnings.append(f"{folder / VALUES_FILE}: there is no module for {shown}")


def _values_of(folder: Path) -> JsonObject:
    """Return a directory's ``values.yaml``. Raises ArtifactError, also if a flag in it is not a boolean."""
    what = str(folder / VALUES_FILE)
    if not folder.is_dir():
        raise ArtifactError(f"modules directory {folder}: not a folder; name an existing one")
    try:
        values = open_files(folder, str(folder)).read_object(VALUES_FILE) or {}
    except ArtifactError as error:
        raise ArtifactError(f"modules directory {folder}: {error}") from error
    for key in values:
        if key.endswith(ENABLED_SUFFIX) and key != ENABLED_SUFFIX:
            enabled_flag(values, kebab_name(key.removesuffix(ENABLED_SUFFIX)), what)
    return values


def _check_name(name: str) -> None:
    check_module_name(name)
    if name == GLOBAL_NAME:
        raise ArtifactError(f"module {name!r}: the name is reserved for the values of all modules; rename it")


def _entries(folder: Path) -> Iterator["os.DirEntry[str]"]:
    """Return the entries of a directory, sorted by name. Raises ArtifactError."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(islice(entries, MAX_ENTRIES + 1), key=lambda entry: entry.name)
    except OSError as error:
        raise ArtifactError(f"modules directory {folder}: cannot be read: {error.strerror}") from error
    if len(found) > MAX_ENTRIES:
        raise ArtifactError(f"modules directory {folder}: more than {MAX_ENTRIES} entries")
    return iter(found)


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle
        return False


def _is_broken_link(entry: "os.DirEntry[str]") -> bool:
    return entry.is_symlink() and not Path(entry.path).exists()
