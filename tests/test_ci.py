"""The exit codes of `.ci/test`, `.ci/coverage` and `.ci/run` if a step fails.

The scripts and make are real, but a script replaces Python. This script is called for pytest, coverage and `.ci/modules.py`,
and exits with the code that the test has set for the step.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SUMMARY = "======== 3 passed, 1 skipped in 125.30s (0:02:05) ========"
FAST = "======== 2 passed, 1 deselected in 25.30s ========"
MORE = "1 passed in 5.30s"
FULL = "======== 4 passed in 225.30s (0:03:45) ========"
PYTHON = f"""\
#!/bin/sh
case "$*" in
    "-m coverage run -m pytest --color=no -q"*"-m (slow or left_out) and not unmeasured tests/queue/test_lane.py")
        echo "{MORE}"; exit ${{MORE:-0}} ;;
    "-m coverage run -m pytest --color=no"*"-m not slow and not left_out")
        echo "collected 4 items"; echo "{SUMMARY}"; echo "late warning" >&2; exit ${{TRACED:-0}} ;;
    "-m pytest tests/queue") echo "only tests/queue"; exit ${{PYTEST:-0}} ;;
    "-m pytest --color=no"*"-m not slow and not left_out") echo "{FAST}"; exit ${{PYTEST:-0}} ;;
    "-m pytest --color=no"*"-m ") echo "{FULL}"; exit ${{PYTEST:-0}} ;;
    ".ci/modules.py --tests-of-low-coverage"*) echo "$LOW"; exit ${{LIST:-0}} ;;
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
engine-test: ; @exit $${ENGINE:-0}
test: ; @.ci/test
"""
REPORTS = ["COMBINE", "LIST", "JSON", "REPORT", "MODULES"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a folder with the real scripts, a script that replaces Python, and a Makefile. The folder's name has a space."""
    made = tmp_path / "a tree"
    (made / ".venv" / "bin").mkdir(parents=True)
    (made / ".ci").mkdir()
    for name in ("test", "coverage", "run"):
        shutil.copy(ROOT / ".ci" / name, made / ".ci")
    python = made / ".venv" / "bin" / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    (made / "Makefile").write_text(MAKEFILE)
    return made


def run(tree: Path, *command: str, **steps: int | str) -> tuple[int, list[str]]:
    """Run a script, and return its exit code and its output lines. ``steps`` has the exit codes of the steps, by name."""
    environment = {"PATH": os.environ["PATH"], **{name: str(code) for name, code in steps.items()}}
    done = subprocess.run(
        [tree / command[0], *command[1:]],
        cwd=tree.parent,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize(("script", "last"), [(".ci/test", FAST), (".ci/coverage", "TOTAL"), (".ci/run", SUMMARY)])
def test_each_script_succeeds_if_all_steps_succeed(tree: Path, script: str, last: str) -> None:
    code, lines = run(tree, script)
    assert (code, lines[-1]) == (0, last), lines


def test_each_test_runs_once_in_ci(tree: Path) -> None:
    _, lines = run(tree, ".ci/run")
    assert lines.count("collected 4 items") == 1
    assert not {FAST, MORE} & set(lines)


@pytest.mark.parametrize(("more", "expected"), [(0, 0), (5, 0), (1, 1)])
def test_left_out_tests_run_if_coverage_is_low(tree: Path, more: int, expected: int) -> None:
    code, lines = run(tree, ".ci/coverage", LOW="tests/queue/test_lane.py", MORE=more)
    assert (code, lines.count(MORE), lines[-1]) == (expected, 1, "TOTAL"), lines


def test_all_tests_run_on_request(tree: Path) -> None:
    code, lines = run(tree, ".ci/test", WHARFINGER_TEST_FULL=1)
    assert (code, lines) == (0, [FULL])


def test_ci_ends_with_the_summary_of_failed_tests(tree: Path) -> None:
    code, lines = run(tree, ".ci/run", TRACED=1)
    assert (code, lines[-1]) == (1, SUMMARY), lines
    assert {"ci: test failed", "TOTAL"} <= set(lines)


def test_coverage_data_of_an_earlier_run_are_deleted(tree: Path) -> None:
    earlier = tree / ".coverage.a-host.example.pid29762.XfLdii5w.HvQwQguQBcRh"
    earlier.touch()
    code, _ = run(tree, ".ci/test", WHARFINGER_TEST_TRACED=1)
    assert (code, earlier.exists()) == (0, False)


def test_half_written_coverage_data_are_not_combined(tree: Path) -> None:
    whole = ".coverage.a-host.example.pid29763.XfLdii5x.HvQwQguQBcRh"
    for name in (whole, ".coverage.a-host.example.pid29764.XfLdii5y"):
        (tree / name).touch()
    code, lines = run(tree, ".ci/coverage")
    assert code == 0, lines
    assert [path.name for path in tree.glob(".coverage*")] == [whole]


@pytest.mark.parametrize("step", REPORTS)
def test_a_failed_coverage_report_fails_ci_and_the_test_summary_is_last(tree: Path, step: str) -> None:
    assert run(tree, ".ci/coverage", **{step: 1})[0] == 1
    code, lines = run(tree, ".ci/run", **{step: 1})
    assert (code, lines[-1]) == (1, SUMMARY), lines
    assert "ci: coverage failed" in lines


@pytest.mark.parametrize("failed", [["lint"], ["engine-test"], ["engine-test", "lint"]])
def test_a_failed_linter_or_engine_fails_ci_and_the_tests_still_run(tree: Path, failed: list[str]) -> None:
    code, lines = run(tree, ".ci/run", **{target.removesuffix("-test").upper(): 1 for target in failed})
    assert (code, lines[-1]) == (1, SUMMARY), lines
    assert "ci: engine or lint failed" in lines
    assert [
        target for target in ("engine-test", "lint") if any(f": {target}] Error" in line for line in lines)
    ] == failed


def test_ci_ends_at_a_failed_set_up(tree: Path) -> None:
    code, lines = run(tree, ".ci/run", SETUP=1)
    assert code == 1
    assert SUMMARY not in lines


@pytest.mark.parametrize("code", [0, 1])
def test_a_single_folder_of_tests_can_be_run(tree: Path, code: int) -> None:
    assert run(tree, ".ci/test", "tests/queue", PYTEST=code) == (code, ["only tests/queue"])


@pytest.mark.parametrize(("script", "command"), [(".ci/test", 'echo "======== 2'), (".ci/run", 'echo "collected')])
def test_tests_receive_interrupts(tree: Path, script: str, command: str) -> None:
    # Background jobs of a shell ignore SIGINT, and so does every child that the tests start in such a job.
    python = tree / ".venv" / "bin" / "python"
    python.write_text(PYTHON.replace(command, f"grep ^SigIgn /proc/self/status; {command}"))
    _, lines = run(tree, script)
    ignored = next(int(line.split()[1], 16) for line in lines if line.startswith("SigIgn"))
    before = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("SigIgn"))
    assert ignored & 2 == int(before.split()[1], 16) & 2
