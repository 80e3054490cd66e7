"""What `.ci/test` and `.ci/run` make of how their steps end: the real scripts and make, in a tree whose Python is a script.

That script stands for pytest, coverage and `.ci/modules.py`, and ends each as the case wants.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SUMMARY = "======== 3 passed, 1 skipped in 125.30s (0:02:05) ========"
PYTHON = f"""\
#!/bin/sh
case "$*" in
    "-m coverage run -m pytest"*) echo "collected 4 items"; echo "{SUMMARY}"; echo "late warning" >&2; exit ${{PYTEST:-0}} ;;
    "-m pytest tests/queue") echo "only tests/queue"; exit ${{PYTEST:-0}} ;;
    "-m coverage combine"*) exit ${{COMBINE:-0}} ;;
    "-m coverage json"*) exit ${{JSON:-0}} ;;
    "-m coverage report"*) echo "TOTAL"; exit ${{REPORT:-0}} ;;
    ".ci/modules.py --coverage"*) exit ${{MODULES:-0}} ;;
    *) echo "not expected: $*"; exit 70 ;;
esac
"""
MAKEFILE = """\
setup: ; @exit $${SETUP:-0}
lint: ; @exit $${LINT:-0}
test: ; @.ci/test
"""
STEPS = ["PYTEST", "COMBINE", "JSON", "REPORT", "MODULES"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The scripts and what stands for the rest, in a folder with a space in its name."""
    made = tmp_path / "a tree"
    (made / ".venv" / "bin").mkdir(parents=True)
    (made / ".ci").mkdir()
    for name in ("test", "run"):
        shutil.copy(ROOT / ".ci" / name, made / ".ci")
    python = made / ".venv" / "bin" / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    (made / "Makefile").write_text(MAKEFILE)
    return made


def run(tree: Path, *command: str, **steps: int) -> tuple[int, list[str]]:
    """Exit code and lines of a script of which the named steps exit so."""
    environment = {"PATH": os.environ["PATH"], **{name: str(code) for name, code in steps.items()}}
    done = subprocess.run(
        [tree / command[0], *command[1:]],
        cwd=tree.parent,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize("script", [".ci/test", ".ci/run"])
def test_all_well(tree: Path, script: str) -> None:
    code, lines = run(tree, script)
    assert (code, lines[-1]) == (0, SUMMARY), lines


def test_what_a_killed_child_wrote_half_is_not_combined(tree: Path) -> None:
    whole = ".coverage.a-host.example.pid29763.XfLdii5x.HvQwQguQBcRh"
    python = tree / ".venv" / "bin" / "python"
    writes = f'touch {whole} .coverage.a-host.example.pid29764.XfLdii5y; echo "collected'
    python.write_text(PYTHON.replace('echo "collected', writes))
    code, lines = run(tree, ".ci/test")
    assert code == 0, lines
    assert [path.name for path in tree.glob(".coverage*")] == [whole]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("script", [".ci/test", ".ci/run"])
def test_a_step_that_fails_fails_it_and_pytests_summary_is_last(tree: Path, script: str, step: str) -> None:
    code, lines = run(tree, script, **{step: 1})
    assert (code, lines[-1]) == (1, SUMMARY), lines


def test_a_linter_that_fails_fails_ci_and_the_tests_still_run(tree: Path) -> None:
    code, lines = run(tree, ".ci/run", LINT=1)
    assert (code, lines[-1]) == (1, SUMMARY), lines
    assert "ci: lint failed" in lines


def test_ci_ends_with_a_set_up_that_fails(tree: Path) -> None:
    code, lines = run(tree, ".ci/run", SETUP=1)
    assert code == 1
    assert SUMMARY not in lines


@pytest.mark.parametrize("code", [0, 1])
def test_a_part_of_the_tests_is_not_held_against_the_coverage_of_all(tree: Path, code: int) -> None:
    said = ["test: arguments given, so coverage is not measured", "only tests/queue"]
    assert run(tree, ".ci/test", "tests/queue", PYTEST=code, COMBINE=1) == (code, said)


def test_the_tests_can_be_interrupted(tree: Path) -> None:
    # A shell's background jobs ignore SIGINT, and with them every child that the tests start.
    python = tree / ".venv" / "bin" / "python"
    python.write_text(PYTHON.replace('echo "collected', 'grep ^SigIgn /proc/self/status; echo "collected'))
    _, lines = run(tree, ".ci/test")
    ignored = next(int(line.split()[1], 16) for line in lines if line.startswith("SigIgn"))
    before = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("SigIgn"))
    assert ignored & 2 == int(before.split()[1], 16) & 2
