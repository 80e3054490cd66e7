"""The checks of this repository. The tests put a defect into a copy of the tree, and the check for this kind of defect must fail.

The linters run in the copy, with the settings of the copy. A copy without a defect must pass, because otherwise the failures
would prove nothing.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.unmeasured

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent

IMPORT_CONTRACT = [str(BIN / "lint-imports"), "--no-cache"]
MODULES = [sys.executable, ".ci/modules.py"]
RUFF = [str(BIN / "ruff"), "check", "--no-cache", "."]
MYPY = [sys.executable, "-m", "mypy", "-p", "wharfinger.queue"]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the tree, with its symbolic links, but without build results and caches."""
    target = tmp_path / "tree"
    ignored = shutil.ignore_patterns(
        ".git", ".venv", ".cache", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis", ".coverage*", "dist", "build"
    )
    shutil.copytree(ROOT, target, symlinks=True, ignore=ignored)
    return target


def check(tree: Path, command: list[str]) -> tuple[int, str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree),
        "PYTHONSAFEPATH": "",
        "MYPY_CACHE_DIR": str(tree / ".mypy_cache"),
    }
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False, timeout=300)
    return done.returncode, done.stdout + done.stderr


def append(path: str, text: str) -> Callable[[Path], None]:
    def plant(tree: Path) -> None:
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("a") as file:
            file.write(text)

    return plant


def crowd(folder: str, count: int) -> Callable[[Path], None]:
    def plant(tree: Path) -> None:
        for number in range(count):
            append(f"{folder}/more_{number}.py", '"""One more."""\n')(tree)

    return plant


PLANTED = [
    pytest.param(
        append("wharfinger/queue/scope.py", "\nimport wharfinger.cluster.api.client\n"),
        IMPORT_CONTRACT,
        "wharfinger.queue.scope -> wharfinger.cluster.api.client",
        id="layering-violation",
    ),
    pytest.param(
        append("wharfinger/debug/printing/node.py", "\nimport wharfinger.runtime.daemon.daemon\n"),
        IMPORT_CONTRACT,
        "wharfinger.debug.printing.node -> wharfinger.runtime.daemon.daemon",
        id="debug-sees-the-runtime",
    ),
    pytest.param(
        append("wharfinger/cluster/api/client.py", "\nimport wharfinger.control_plane.service\n"),
        IMPORT_CONTRACT,
        "wharfinger.cluster.api.client -> wharfinger.control_plane.service",
        id="client-sees-the-server",
    ),
    pytest.param(
        append("wharfinger/runtime/status/reasons.py", "\nimport wharfinger.runtime.tasks.applying\n"),
        IMPORT_CONTRACT,
        "wharfinger.runtime.status.reasons -> wharfinger.runtime.tasks.applying",
        id="lower-room-sees-a-higher-one",
    ),
    pytest.param(
        crowd("wharfinger/queue", 21),
        MODULES,
        "full room: wharfinger/queue has 37 modules, more than 20",
        id="full-room",
    ),
    pytest.param(
        append("wharfinger/queue/deeper/scope.py", '"""A room."""\n'),
        MODULES,
        "undocumented room: wharfinger/queue/deeper/__init__.py has no docstring",
        id="silent-room",
    ),
    pytest.param(
        append("wharfinger/queue/state.py", "\nimport wharfinger.queue.machine\n"),
        MODULES,
        "import cycle: wharfinger.queue.machine, wharfinger.queue.state",
        id="circle",
    ),
    pytest.param(append("wharfinger/queue/scope.py", "\nBROKEN: int = 'text'\n"), MYPY, "assignment", id="type-error"),
    pytest.param(
        append("wharfinger/queue/nobody.py", '"""Nobody."""\n'),
        MODULES,
        "dead module: wharfinger.queue.nobody",
        id="dead-module",
    ),
    pytest.param(
        append("wharfinger/queue/untested.py", '"""No test."""\n'),
        MODULES,
        "untested module: wharfinger/queue/untested.py",
        id="untested-module",
    ),
    pytest.param(
        append("wharfinger/queue/scope.py", "\nimport time\n\n\nasync def f() -> None:\n    time.sleep(1)\n"),
        RUFF,
        "ASYNC251",
        id="blocking-sleep",
    ),
]


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(
    "command", [IMPORT_CONTRACT, MODULES, RUFF, MYPY], ids=["import-contract", "modules", "ruff", "mypy"]
)
def test_the_unchanged_tree_passes_each_check(copy: Path, command: list[str]) -> None:
    code, output = check(copy, command)
    assert code == 0, output


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(("plant", "command", "says"), PLANTED)
def test_a_planted_defect_is_found(copy: Path, plant: Callable[[Path], None], command: list[str], says: str) -> None:
    plant(copy)
    code, output = check(copy, command)
    assert code != 0
    assert says in output


def test_a_module_that_never_runs_is_found_by_its_coverage(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "modules.py", tmp_path / ".ci")
    for module in (
        "wharfinger/queue/a.py",
        "wharfinger/queue/b.py",
        "wharfinger/queue/deeper/lost.py",
        "wharfinger/__main__.py",
    ):
        (tmp_path / module).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / module).touch()
    percents = {"wharfinger/queue/a.py": 12.5, "wharfinger/queue/b.py": 99.0, "wharfinger/__main__.py": 75.0}
    report = tmp_path / "coverage.json"
    report.write_text(
        json.dumps({"files": {name: {"summary": {"percent_covered": value}} for name, value in percents.items()}})
    )
    code, output = check(tmp_path, [*MODULES, "--coverage", str(report)])
    assert (code, output.splitlines()) == (
        1,
        [
            "not measured: wharfinger/queue/deeper/lost.py is not in the coverage report",
            "low coverage: 12 % (at least 75 %): wharfinger/queue/a.py",
        ],
    )
