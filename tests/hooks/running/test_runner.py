"""The protocol `HookRunner`. The type checker checks that the process runner has its methods. The behavior of runners is tested
with the contract in `tests/hooks/support/runner_contract.py`.
"""

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from tests.hooks.support.runner_contract import CONTRACT
from tests.hooks.support.scripts import run_of
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.hooks.running.runner import HookRunner
from wharfinger.process.command import Limits


def test_process_runner_implements_the_runner_protocol(tmp_path: Path) -> None:
    runner: HookRunner = ProcessHookRunner(tmp_path, Limits(wall_s=1.0, stdout_bytes=1))
    assert callable(runner.run)


def test_contract_has_at_least_twenty_distinct_checks() -> None:
    assert len(set(CONTRACT)) == len(CONTRACT) >= 20


def test_runs_are_immutable(tmp_path: Path) -> None:
    run = run_of(tmp_path / "hook")
    with pytest.raises(FrozenInstanceError):
        run.name = "other"  # type: ignore[misc]
