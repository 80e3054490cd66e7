"""Where the library for hooks in bash is (spec hook-protocol §1.7), and how hooks come by it.

Hooks source ``/shell_lib.sh``; some say ``$FRAMEWORK_DIR/shell_lib.sh``, and with that unset mean the same file. The library is
the folder ``shell`` beside this module, which is laid out as the root of a file system: ``shell_lib.sh`` sources what is in
``frameworks/shell`` beside it, wherever it lies. So there are three ways to bring it to hooks, all with the same files: a sandbox
binds it (:func:`binds`), an image has it copied to its root (:func:`install`), and everywhere else hooks find it by the variable
(:func:`environment`).

shell-operator has its fragments in ``/frameworks``, addon-operator in ``/framework``; hooks find them under both names.
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
    """What a sandbox shows its hooks, read-only: place in it to file or folder outside of it."""
    return {
        f"/{_LIBRARY}": FOLDER / _LIBRARY,
        f"/{_FRAGMENTS}": FOLDER / _FRAGMENTS,
        f"/{_OTHER_NAME}": FOLDER / _FRAGMENTS,
    }


def environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """What is added to the variables that hooks inherit: FRAMEWORK_DIR, unless it is among them already."""
    return {} if FRAMEWORK_DIR in inherited else {FRAMEWORK_DIR: str(FOLDER)}


def missing_library_advice(said: str, root: Path = Path("/")) -> str:
    """What to do, to be put behind the error of a hook that said this: empty unless it misses the library at the root.

    Blocking. Whatever language the shell speaks, it names the file.
    """
    if not _AT_THE_ROOT.search(said) or (root / _LIBRARY).exists():
        return ""
    return (
        f"; /{_LIBRARY} is not on this machine: put it there with `wharfinger hook shell-lib --install /`, run hooks with "
        f"--hook-sandbox, or source ${FRAMEWORK_DIR}/{_LIBRARY}"
    )


def install(root: Path) -> tuple[Path, ...]:
    """Write the library below ``root``, an image's root mostly, over what is there of that name; the files, in order.

    What else is in those folders stays, and is sourced as well. Blocking. Raises OSError.
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
