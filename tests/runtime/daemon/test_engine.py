"""The chart engine of a daemon: the log names the program that renders."""

import logging
from pathlib import Path

import pytest

from wharfinger.packages.rendering.helm_renderer import RenderLimits
from wharfinger.runtime.daemon.engine import open_engine


def program(folder: Path, body: str) -> Path:
    path = folder / "engine.sh"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


async def said(caplog: pytest.LogCaptureFixture, found: Path | None, tmp_path: Path) -> tuple[str, str]:
    """Return the version of the engine ("" if there is none) and the log."""
    with caplog.at_level(logging.INFO):
        async with open_engine(found, tmp_path / "scratch", None, RenderLimits()) as engine:
            return ("" if engine is None else engine.versions.helm), caplog.text


async def test_the_log_names_the_engine(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    version, log = await said(caplog, program(tmp_path, "echo v4.3.1"), tmp_path)
    assert version == "v4.3.1"
    assert "rendered by the chart engine (built with the library of helm v4.3.1)" in log


async def test_without_an_engine_helm_renders(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    version, log = await said(caplog, None, tmp_path)
    assert version == ""
    assert "rendered by helm template; `make engine` builds" in log


async def test_a_broken_engine_does_not_prevent_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    version, log = await said(caplog, program(tmp_path, "exit 3"), tmp_path)
    assert version == ""
    assert "WARNING" in log
    assert "does not report its version (exit status 3); build it again" in log
