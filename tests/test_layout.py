"""The arrangement of the repository (DESIGN §2), which tools and imports silently rely on."""

import queue
import subprocess
import sys
import tomllib
from pathlib import Path

import wharfinger

ROOT = Path(__file__).resolve().parent.parent
PARTS = sorted(path.name for path in (ROOT / "wharfinger").iterdir() if path.is_symlink())


def settings() -> dict[str, dict[str, dict[str, list[str]]]]:
    loaded: dict[str, dict[str, dict[str, list[str]]]] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return loaded


def test_every_part_is_a_folder_of_the_root_behind_a_link() -> None:
    assert {"cluster", "debug", "formats", "hooks", "packages", "process", "queue", "runtime"} <= set(PARTS)
    for part in PARTS:
        assert (ROOT / "wharfinger" / part).readlink() == Path("..") / part
        assert (ROOT / part).is_dir()


def test_the_import_face_holds_nothing_else() -> None:
    own = {
        path.name for path in (ROOT / "wharfinger").iterdir() if not path.is_symlink() and path.name != "__pycache__"
    }
    assert own == {"__init__.py", "__main__.py", "py.typed"}


def test_no_part_has_an_init_at_its_top() -> None:
    assert [part for part in PARTS if (ROOT / part / "__init__.py").exists()] == []


def test_every_package_is_named_for_the_build() -> None:
    named = set(settings()["tool"]["setuptools"]["packages"])
    folders = {path.parent for part in PARTS for path in (ROOT / part).rglob("*.py")}
    found = {"wharfinger"} | {"wharfinger." + ".".join(folder.relative_to(ROOT).parts) for folder in folders}
    assert found == named


def test_coverage_and_import_contract_name_every_part() -> None:
    tool = settings()["tool"]
    assert sorted(tool["coverage"]["run"]["source"]) == sorted([*PARTS, "wharfinger"])  # type: ignore[call-overload]
    assert sorted(tool["importlinter"]["root_packages"]) == [f"wharfinger.{part}" for part in PARTS]


def test_queue_is_the_standard_librarys_from_the_root() -> None:
    assert hasattr(queue, "SimpleQueue")
    code = (
        "import queue, wharfinger.queue; print(queue.SimpleQueue.__module__, hasattr(wharfinger.queue, 'SimpleQueue'))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["_queue", "False"]


def test_no_part_was_imported_under_its_bare_name() -> None:
    twins = [
        name for name in (*PARTS, *(f"{part}.commands" for part in PARTS)) if name in sys.modules and name != "queue"
    ]
    assert twins == []


def test_the_package_says_its_types_are_there() -> None:
    assert (Path(wharfinger.__file__).parent / "py.typed").exists()
