"""The library for hooks in bash (spec hook-protocol §1.7): its place, and the ways in which hooks find it.

Hooks source ``/shell_lib.sh`` or ``$FRAMEWORK_DIR/shell_lib.sh``, which is the same file if the variable is not set. The
library is the folder ``shell`` beside this module, which is laid out as the root of a file system: ``shell_lib.sh`` sources
all files in ``frameworks/shell`` beside it, wherever that folder is. There are three ways to provide the same files: a
sandbox mounts them (:func:`binds`), an image has a copy of them at its root (:func:`install`), and everywhere else the
variable leads hooks to them (:func:`environment`).

The files in ``frameworks/shell`` are the fragments of the library. shell-operator has them in ``/frameworks``, addon-operator in
``/framework``; hooks find them under both names.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().with_name("shell")
FRAMEWORK_DIR: Final = "FRAMEWORK_DIR"
_LIBRARY: Final = "shell_lib.sh"
_FRAGMENTS: Final = "frameworks"
_AT_THE_ROOT: Final = re.compile(r"(?<![\w/.}])/(?:shell_lib\.sh|frameworks?/)")
_OTHER_NAME: Final = "framework"


def binds() -> Mapping[str, Path]:
    """Return the read-only mounts that make the library available in a sandbox. Each key is a path in the sandbox, and its
    value is the file or folder that is mounted there.
    """
    return {
        f"/{_LIBRARY}": FOLDER / _LIBRARY,
        f"/{_FRAGMENTS}": FOLDER / _FRAGMENTS,
        f"/{_OTHER_NAME}": FOLDER / _FRAGMENTS,
    }


def environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the additional variables of hooks: FRAMEWORK_DIR, unless it is set already."""
    return {} if FRAMEWORK_DIR in inherited else {FRAMEWORK_DIR: str(FOLDER)}


def missing_library_advice(output: str, root: Path = Path("/")) -> str:
    """Return advice to append to the error of a hook that did not find the library at the root; empty for any other error.

    ``output`` is the output of the hook. The check works for shells that report errors in any language, because it searches
    for the library's file name. Blocking.
    """
    if not _AT_THE_ROOT.search(output) or (root / _LIBRARY).exists():
        return ""
    return (
        f"; /{_LIBRARY} is not on this machine: put it there with `wharfinger hook shell-lib --install /`, run hooks with "
        f"--hook-sandbox, or source ${FRAMEWORK_DIR}/{_LIBRARY}"
    )


def install(root: Path) -> tuple[Path, ...]:
    """Write the library below ``root`` (usually the root of an image), and return the files in order.

    Files of the same names are overwritten. Other files in those folders are kept, and are sourced as well. Blocking. Raises
    OSError.
    """
    fragments = sorted((FOLDER / _FRAGMENTS).rglob("*.sh"))
    written = []
    for source, name in [(FOLDER / _LIBRARY, _LIBRARY)] + [
        (path, f"{folder}/{path.relative_to(FOLDER / _FRAGMENTS)}")
        for folder in (_FRAGMENTS, _OTHER_NAME)
        for path in fragments
    ]:
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
        target.chmod(0o644)
        written.append(target)
    return tuple(written)
