"""The files of a package that are hooks, and how each is started (spec hook-protocol §1.2, §1.5). Nothing is run here.

The name, the folder and the permissions of a file decide whether it is a hook. No file is executed to find this out. Probable
mistakes (a script without permission to run, a script in an ignored folder) are warnings, because the contract allows such files.
All functions here block; they are for a worker thread.

A *batch* is one executable that contains several hooks. It prints their configurations for ``hook config``, not for ``--config``.
The contract finds batches by running every file without an extension. Here a batch is a file that the package declares
(``batchHooks`` in its package.yaml), or an ELF executable without an extension: the SDK for batches builds such files, and a
script cannot be mistaken for one. An ELF executable that is a single plain hook needs an extension.
"""

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from wharfinger.hooks.config.bindings import HookScope
from wharfinger.hooks.errors import HookError
from wharfinger.packages.definition.definition import Layout

FOLDER: Final = "hooks"
GLOBAL_FOLDER: Final = "global-hooks"
"""The prefix of the names of global hooks that are in no ``hooks`` folder. addon-operator's image has a folder of this name."""
MAX_ENTRIES: Final = 20_000
MAX_HOOKS: Final = 500
MAX_DEPTH: Final = 32
_PASSED_OVER: Final = frozenset({"lib", "venv"})
_NO_PROGRAMS: Final = frozenset({".yaml", ".json", ".md", ".txt"})
_EXECUTE_BITS: Final = 0o111
_ELF: Final = b"\x7fELF"


@dataclass(frozen=True, slots=True)
class HookFile:
    """A file that is a hook or contains several hooks, and how it is started: ``executable`` with ``argv``, with ``environment``
    added to the variables of all hooks.

    ``config_cwd`` is the folder in which the file is run to print its configuration; all other runs use ``cwd``. ``batch`` is
    true if the file contains several hooks.
    """

    name: str
    executable: Path
    argv: tuple[str, ...]
    cwd: Path
    config_cwd: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    batch: bool = False


@dataclass(frozen=True, slots=True)
class HookFiles:
    """The hooks of a package, sorted by path, and warnings about files that are not used as hooks."""

    hooks: tuple[HookFile, ...]
    warnings: tuple[str, ...]


def find_hook_files(
    package: Path, layout: Layout, *, scope: HookScope = HookScope.PACKAGE, batch: Collection[str] = ()
) -> HookFiles:
    """Return the hooks in the folder ``package``; without a ``hooks`` folder in it, there are none.

    Global hooks may be in ``package`` itself. ``batch`` are the paths, relative to the package, that the package declares as
    batches. Raises HookError if the file at one of these paths is not a hook, or if there are too many or too deeply nested
    files. Raises OSError if a folder cannot be read.
    """
    package = package.resolve()
    root, prefix = package / FOLDER, FOLDER
    if scope is HookScope.GLOBAL and not root.is_dir():
        root, prefix = package, GLOBAL_FOLDER
    found: list[Path] = []
    warnings: list[str] = []
    for path, entry in _walk(root) if root.is_dir() else ():
        match _fault(path, entry):
            case None:
                found.append(path)
            case "":
                pass
            case fault:
                warnings.append(f"{prefix}/{path.relative_to(root)}: {fault}")
    if len(found) > MAX_HOOKS:
        raise HookError(FOLDER, f"{len(found)} executables, over the limit of {MAX_HOOKS} hooks of one package")
    declared = {package / path for path in batch}
    if missing := sorted(declared.difference(found)):
        raise HookError(
            str(missing[0].relative_to(package)),
            "it is declared in batchHooks but is not a hook: expected an executable file of this name in a folder that is not "
            "ignored",
        )
    warnings += _programs_in_lib(root, prefix)
    hooks = tuple(
        _hook_file(
            path, package, layout, f"{prefix}/{path.relative_to(root)}", root, batch=path in declared or _is_elf(path)
        )
        for path in sorted(found, key=os.fsencode)
    )
    return HookFiles(hooks, tuple(warnings))


def hook_file(path: Path) -> HookFile:
    """Return the hook in the file ``path``. To print its configuration, it is run in the nearest folder ``hooks`` above it, or
    else in its own folder. A Python hook uses the ``venv`` in that folder, if there is one.
    """
    path = path.absolute()
    root = next((folder for folder in path.parents if folder.name == FOLDER), path.parent)
    executable, argv, environment = _start_of(path, root)
    return HookFile(path.name, executable, argv, path.parent, root, environment)


def _walk(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield all files in folders that are not ignored, each with its status. A link is yielded with its own status, and is not
    followed.
    """
    pending = [(root, 0)]
    entries = 0
    while pending:
        folder, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise HookError(FOLDER, f"folders nested deeper than {MAX_DEPTH} levels")
        for path in sorted(folder.iterdir()):
            entries += 1
            if entries > MAX_ENTRIES:
                raise HookError(FOLDER, f"more than {MAX_ENTRIES} files and folders")
            entry = path.lstat()
            if not stat.S_ISDIR(entry.st_mode):
                yield path, entry
            elif not path.name.startswith(".") and path.name not in _PASSED_OVER:
                pending.append((path, depth + 1))


def _fault(path: Path, entry: os.stat_result) -> str | None:
    """Return the reason why a file is not used as a hook; None if it is a hook, and "" if its name shows that it is not meant
    as one.
    """
    if path.name.startswith(".") or path.suffix in _NO_PROGRAMS:
        return ""
    try:
        path.name.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8; it is not used as a hook"
    if stat.S_ISLNK(entry.st_mode):
        # A link to a file is a hook whatever its mode, because ConfigMaps are mounted as links.
        return None if path.is_file() else "the link does not lead to a file; it is not used as a hook"
    if not stat.S_ISREG(entry.st_mode):
        return "neither a file nor a link to one; it is not used as a hook"
    if not entry.st_mode & _EXECUTE_BITS:
        return "no executable permissions, chmod +x is required to run this hook"
    return None


def _programs_in_lib(root: Path, prefix: str) -> list[str]:
    """Return warnings about executables in the folder ``lib`` of ``root``, because they may be hooks in the wrong folder."""
    lib = root / "lib"
    if lib.is_symlink() or not lib.is_dir():
        return []
    return [
        f"{prefix}/{path.relative_to(root)}: it has executable permissions and is in the ignored 'lib' folder"
        for path, entry in _walk(lib)
        if stat.S_ISREG(entry.st_mode) and entry.st_mode & _EXECUTE_BITS
    ]


def _is_elf(path: Path) -> bool:
    """Return whether a file is an ELF executable without an extension. Return False for a file that cannot be read; the error
    is reported later, when the file is run.
    """
    if path.suffix:
        return False
    try:
        with path.open("rb") as content:
            return content.read(len(_ELF)) == _ELF
    except OSError:
        return False


def _hook_file(path: Path, package: Path, layout: Layout, name: str, root: Path, *, batch: bool) -> HookFile:
    executable, argv, environment = _start_of(path, root)
    in_root = layout is Layout.MODULE_FOLDER
    cwd, config_cwd = (package, package) if in_root else (path.parent, root)
    return HookFile(name, executable, argv, cwd, config_cwd, environment, batch)


def _start_of(path: Path, root: Path) -> tuple[Path, tuple[str, ...], dict[str, str]]:
    """Return the program to start, its arguments and its variables. A Python hook is run by the Python of the package's ``venv``,
    if there is one.
    """
    venv = root / "venv"
    python = venv / "bin" / "python3"
    if path.suffix != ".py" or not (python.is_file() and os.access(python, os.X_OK)):
        return path, (), {}
    return python, (str(path),), {"PYTHONHOME": str(venv)} if _is_whole(venv) else {}


def _is_whole(venv: Path) -> bool:
    """Return whether the virtual environment has its own standard library.

    Such an environment was copied from elsewhere, and finds the library only through PYTHONHOME. An environment that uses the
    library of another Python (``python3 -m venv``) would not find it with PYTHONHOME set.
    """
    return any((venv / "lib").glob("python3*/encodings/__init__.py"))
