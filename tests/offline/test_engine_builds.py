"""Whole builds with the chart engine: they equal builds without it, and several processes may share one cache."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.offline.support import FLEET, cli
from tests.packages.rendering.test_chart_engine import engine_program
from tests.programs import ROOT, WHARFINGER

pytestmark = [pytest.mark.slow, pytest.mark.unmeasured]

TREE: Final = (str(FLEET / "clusters" / "production"), "--root", str(FLEET), "--packages", "examples")


def test_output_is_equal_with_and_without_the_engine(tmp_path: Path) -> None:
    engine = str(engine_program())
    without = cli("build", *TREE, "--engine", "none", cache=tmp_path / "without")
    assert without.returncode == 0, without.stderr
    for _ in range(2):  # The second result comes from the cache.
        having = cli("build", *TREE, "--engine", engine, cache=tmp_path / "with")
        assert (having.returncode, having.stdout) == (0, without.stdout), having.stderr
    again = cli("build", *TREE, "--engine", "none", cache=tmp_path / "with")
    assert again.stdout == without.stdout


def test_builds_with_the_engine_do_not_need_kubectl(tmp_path: Path) -> None:
    """PATH names only one folder, which contains helm and git but not kubectl."""
    (tmp_path / "bin").mkdir()
    for name in ("helm", "git"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or name)
    command = [sys.executable, "-m", "wharfinger", "build", *TREE, "--offline", "--cache-dir", str(tmp_path / "cache")]
    environment = {**os.environ, "PATH": str(tmp_path / "bin")}
    expected = cli("build", *TREE, "--engine", "none", cache=tmp_path / "without").stdout

    def build(engine: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, "--engine", engine], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )

    done = build(str(engine_program()))
    assert (done.returncode, done.stdout) == (0, expected), done.stderr
    without = build("none")
    assert without.returncode == 1
    assert "needs kubectl, which is not on PATH" in without.stderr


def test_processes_share_a_cache_while_it_is_cleaned_up(tmp_path: Path) -> None:
    engine, cache = str(engine_program()), tmp_path / "cache"
    command = [*WHARFINGER, "build", *TREE, "--engine", engine, "--cache-dir", str(cache), "--offline"]
    wanted = cli("build", *TREE, "--engine", engine, cache=tmp_path / "alone").stdout
    outputs = [tmp_path / f"output-{number}" for number in range(2)]
    builds = []
    for output in outputs:
        with output.open("w") as file:
            builds.append(subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=subprocess.DEVNULL))
    try:
        while any(each.poll() is None for each in builds):
            cleaned = subprocess.run(
                [*WHARFINGER, "cache", "gc", "--max-mib", "0", "--cache-dir", str(cache)],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
            )
            assert cleaned.returncode == 0, cleaned.stderr
        assert [each.wait() for each in builds] == [0, 0]
        assert [output.read_text() for output in outputs] == [wanted, wanted]
    finally:
        for each in builds:
            each.kill()
            each.wait()
