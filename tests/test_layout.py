"""The layout of the repository. Tools and imports rely on it, and would give no clear error if it changed."""

import queue
import subprocess
import sys
import tomllib
from pathlib import Path

import wharfinger

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "wharfinger"
PARTS = sorted(path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__")
LINKED = ("debug", "hooks", "queue", "runtime")


def settings() -> dict[str, dict[str, dict[str, list[str]]]]:
    loaded: dict[str, dict[str, dict[str, list[str]]]] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return loaded


def test_the_root_shows_four_parts_by_links() -> None:
    links = {path.name: path.readlink() for path in ROOT.iterdir() if path.is_symlink()}
    assert links == {part: Path("wharfinger") / part for part in LINKED}


def test_the_package_contains_no_links() -> None:
    assert [path for path in PACKAGE.rglob("*") if path.is_symlink()] == []


def test_the_package_contains_only_parts_and_the_command_line() -> None:
    of_the_command_line = {"__main__.py", "command_table.py", "completion.py", "interruption.py", "standard_streams.py"}
    assert {path.name for path in PACKAGE.iterdir() if path.is_file()} == {
        "__init__.py",
        "py.typed",
        *of_the_command_line,
    }


def test_parts_have_no_init_module() -> None:
    """If ``queue/`` had an ``__init__.py``, the link ``queue`` at the root would hide the standard library's module ``queue``."""
    assert [part for part in PARTS if (PACKAGE / part / "__init__.py").exists()] == []


def test_the_import_contract_names_every_part() -> None:
    assert sorted(settings()["tool"]["importlinter"]["root_packages"]) == [f"wharfinger.{part}" for part in PARTS]


def test_import_queue_in_the_root_finds_the_standard_library() -> None:
    assert hasattr(queue, "SimpleQueue")
    code = (
        "import queue, wharfinger.queue; print(queue.SimpleQueue.__module__, hasattr(wharfinger.queue, 'SimpleQueue'))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["_queue", "False"]


def test_parts_are_imported_under_their_full_names_only() -> None:
    """With the links at the root, ``import runtime.x`` would load the module ``wharfinger.runtime.x`` a second time."""
    twins = [
        name for name in (*PARTS, *(f"{part}.commands" for part in PARTS)) if name in sys.modules and name != "queue"
    ]
    assert twins == []


def test_the_package_has_a_type_marker() -> None:
    assert (Path(wharfinger.__file__).parent / "py.typed").exists()
