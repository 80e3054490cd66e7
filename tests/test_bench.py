"""The benchmarks (`bench/`). Each part is a module. The parts that can run without a server end without an error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.__main__ import LONG_PARTS, PARTS, line
from bench.measure import Ratio

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow
def test_parts_without_a_server_run() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "slots", "monitors", "memory"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
        timeout=3000,
    )
    assert "3 parts in " in done.stdout, done.stderr
    assert "Traceback" not in done.stderr
    assert [row.split()[0] for row in done.stdout.splitlines()[1:-1]] == ["slots", "slots", "monitors", "memory"]


def test_every_part_is_a_module() -> None:
    assert all((ROOT / "bench" / f"{part}.py").is_file() for part in PARTS)
    assert set(LONG_PARTS) < set(PARTS)


def test_a_row_over_its_budget_is_marked() -> None:
    assert line(Ratio("queue", "a task", "a channel", 2.0, 1.0, 1.5)).endswith("2     1.5  over budget")
    assert line(Ratio("queue", "a task", "a channel", 1.0, 1.0, 1.5)).endswith("1     1.5")


def test_zero_packages_are_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--packages", "0", "scale"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "python -m bench: error: argument --packages: expected a number from 1 on, found '0'",
    )
