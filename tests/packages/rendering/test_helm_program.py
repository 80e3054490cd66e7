"""The program ``helm``: its version, its limits, and its replacement by another version."""

import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

import pytest
import trio

from tests.packages.support.charts import tool
from wharfinger.packages.errors import RenderError
from wharfinger.packages.rendering.helm_program import NOT_RUN, HelmProgram
from wharfinger.process.command import Limits

LIMITS = Limits(wall_s=30, stdout_bytes=10_000)


def script(path: Path, text: str) -> Path:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def opening(folder: Path) -> Callable[[], AbstractAsyncContextManager[Path]]:
    return lambda: nullcontext(folder)


def program(path: Path, memory_bytes: int = 2**30) -> HelmProgram:
    return HelmProgram(path, memory_bytes, None)


@pytest.mark.parametrize(("name", "major"), [("helm", "v4."), ("helm3", "v3.")])
async def test_the_version_of_a_real_helm_is_read(name: str, major: str, tmp_path: Path) -> None:
    helm = program(tool(name))
    assert helm.known_version() == ""
    version = await helm.version(opening(tmp_path))
    assert version.startswith(major)
    assert helm.known_version() == version


async def test_the_version_is_read_once_and_again_after_replacement(tmp_path: Path) -> None:
    path = script(tmp_path / "helm", f"echo v4.0.0; echo >> {tmp_path}/asked\n")
    helm = program(path)
    assert [await helm.version(opening(tmp_path)) for _ in range(3)] == ["v4.0.0"] * 3
    assert (tmp_path / "asked").read_text() == "\n"
    script(tmp_path / "new", "echo v4.0.1+gabc\n").replace(path)
    assert helm.known_version() == ""
    assert await helm.version(opening(tmp_path)) == "v4.0.1+gabc"


async def test_a_run_has_a_cpu_limit_above_its_wall_time_limit(tmp_path: Path) -> None:
    helm = program(script(tmp_path / "helm", "ulimit -t\n"))
    outcome = await helm.run((), tmp_path, LIMITS)
    assert LIMITS.wall_s <= int(outcome.stdout) <= 30 * (os.cpu_count() or 1) + 1


async def test_concurrent_tasks_read_the_version_once(tmp_path: Path) -> None:
    helm = program(script(tmp_path / "helm", f"echo v4.0.0; echo >> {tmp_path}/asked\n"))
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(helm.version, opening(tmp_path))
    assert (tmp_path / "asked").read_text() == "\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("echo 'Error: no such thing' >&2; exit 1\n", "helm version: no such thing"),
        ("echo 4.0; exit 0\n", "helm version: 4.0"),
        ("exit 0\n", "helm version: exit status 0"),
        ("kill -9 $$\n", "SIGKILL"),
        ("printf 'v4.0.0\\377'\n", "helm version: v4.0.0"),
    ],
)
async def test_a_program_without_a_helm_version_is_refused(text: str, says: str, tmp_path: Path) -> None:
    helm = program(script(tmp_path / "helm", text))
    with pytest.raises(RenderError, match=says) as caught:
        await helm.version(opening(tmp_path))
    assert caught.value.transient
    assert "check --helm" in str(caught.value)
    assert helm.known_version() == ""


async def test_missing_and_non_executable_programs_are_reported(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("")
    for name, says in (("absent", "No such file"), ("text", "ermission denied")):
        with pytest.raises(RenderError, match=says):
            await program(tmp_path / name).version(opening(tmp_path))
    outcome = await program(tmp_path / "text").run((), tmp_path, LIMITS)
    assert outcome.returncode in NOT_RUN


async def test_a_missing_working_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RenderError, match="helm cannot be run"):
        await program(tool("helm")).version(opening(tmp_path / "absent"))


async def test_helm_runs_with_a_memory_limit_and_a_clean_environment(tmp_path: Path) -> None:
    path = script(tmp_path / "helm", "ulimit -d; env\n")
    outcome = await program(path, 512 * 1024**2).run(("x",), tmp_path, LIMITS)
    limit, *environment = outcome.stdout.decode().splitlines()
    assert limit == str(512 * 1024)
    assert f"HOME={tmp_path}" in environment
    assert f"GOMEMLIMIT={256 * 1024**2}" in environment
    assert {line.partition("=")[0] for line in environment}.isdisjoint(
        set(os.environ) - {"PATH", "HOME", "TMPDIR", "LC_ALL", "PWD", "_"}
    )
