"""The readers of packages with mutated input. They run in a child process, which may crash."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packages.support.fuzz_child import TARGETS
from tests.programs import ROOT
from tests.scale import scaled

pytestmark = pytest.mark.unmeasured


@pytest.mark.slow
@pytest.mark.sampled(4)
@pytest.mark.parametrize("target", TARGETS)
def test_readers_accept_or_refuse_random_input(target: str, tmp_path: Path) -> None:
    """Any file of a package is either read or refused with a package error, without a crash or a hang."""
    count = scaled(100_000, 300)
    progress = tmp_path / "progress"
    progress.write_bytes(bytes(8))
    child = subprocess.run(
        [sys.executable, "-m", "tests.packages.support.fuzz_child", target, "1", "0", str(count), str(progress), "10"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    index = int.from_bytes(progress.read_bytes(), "little")
    assert child.returncode == 0, f"input {index}: {child.returncode}\n{child.stdout}\n{child.stderr[-2000:]}"
    report = json.loads(child.stdout.splitlines()[-1])
    assert report["accepted"] + report["refused"] == count
    # The fuzzer proves nothing if nearly all inputs fail the first check, or if nearly none is refused.
    assert min(report["accepted"], report["refused"]) > count // 20, report
