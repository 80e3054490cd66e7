"""Launchers: the command line that precedes a program, the checks before a start, and the limits of the kernel."""

import errno
import os
import resource
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from tests.process.children import PATH, PATIENT, SHORT, alive_with, shell
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Limits, User
from wharfinger.process.errors import SpawnError
from wharfinger.process.launcher import check, launched, needs_launcher

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start programs as other users")
NOBODYS = User(1_100_000_000 + os.getpid(), 1_100_000_000 + os.getpid())
EVERYTHING = replace(PATIENT, memory_bytes=1 << 30, processes=9, open_files=33, file_bytes=4096)


@pytest.fixture
def public() -> Iterator[Path]:
    """Yield a folder that other users may enter. Pytest's own folder does not allow this."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def program(folder: Path, text: str, mode: int = 0o755) -> Path:
    path = folder / "program"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_without_limits_the_command_is_started_directly() -> None:
    command = shell("true")
    assert not needs_launcher(command, PATIENT)
    assert launched(command, PATIENT) == command.argv


def test_launchers_set_the_user_then_the_wrapper_then_the_limits() -> None:
    command = Command(("/bin/x", "-a"), Path("/"), {}, user=User(7, 8), wrapper=("/sandbox", "--"))
    words = launched(command, EVERYTHING)
    assert [Path(words[0]).name, *words[1:5]] == ["setpriv", "--reuid=7", "--regid=8", "--clear-groups", "--"]
    assert words[5:7] == ("/sandbox", "--")
    assert [Path(words[7]).name, *words[8:]] == [
        "prlimit",
        f"--as={1 << 30}:{1 << 30}",
        "--nproc=9:9",
        "--nofile=33:33",
        "--fsize=4096:4096",
        "--",
        "/bin/x",
        "-a",
    ]
    assert "--no-new-privs" in launched(replace(command, wrapper=()), PATIENT)


def test_no_limit_exceeds_the_hard_limit_of_this_process() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    words = launched(shell("true"), replace(PATIENT, open_files=hard + 1000))
    assert words[1] == f"--nofile={hard}:{hard}"


def test_a_missing_launcher_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/no/such/folder")
    with pytest.raises(SpawnError, match="cannot start prlimit: it is not on PATH; install util-linux"):
        launched(shell("true"), EVERYTHING)


async def test_limits_apply_to_the_program_and_its_environment_is_unchanged(tag: str) -> None:
    command = shell(
        "ulimit -v; ulimit -n; ulimit -f; tr '\\0' '\\n' </proc/self/environ | cut -d= -f1 | sort | tr '\\n' ' '", tag
    )
    command = replace(command, env={**command.env, "a.b-c": "kept"})
    bare = await run_child(replace(command, argv=("/usr/bin/env",)), PATIENT)
    limited = await run_child(replace(command, argv=("/usr/bin/env",)), EVERYTHING)
    names = [sorted(line.split("=")[0] for line in one.stdout.decode().splitlines()) for one in (bare, limited)]
    assert names[0] == names[1]
    assert "a.b-c" in names[1]
    said = (await run_child(command, EVERYTHING)).stdout.decode().split()
    assert said[:2] == [str((1 << 30) // 1024), "33"]


async def test_a_file_that_grows_too_large_ends_the_program_with_a_signal(tag: str, tmp_path: Path) -> None:
    outcome = await run_child(replace(shell("head -c 9000 /dev/zero >f", tag), cwd=tmp_path), EVERYTHING)
    assert outcome.returncode != 0
    assert (tmp_path / "f").stat().st_size == 4096


@AS_ROOT
async def test_another_user_has_no_other_groups_and_gains_no_rights(tag: str) -> None:
    outcome = await run_child(
        replace(shell("id -u; id -g; id -G; grep NoNewPrivs /proc/self/status", tag), user=NOBODYS), SHORT
    )
    number = str(NOBODYS.uid).encode()
    assert outcome.stdout.split() == [number, number, number, b"NoNewPrivs:", b"1"]


@AS_ROOT
async def test_a_process_without_session_and_environment_is_found_by_its_user(tag: str) -> None:
    script = "setsid env -i sh -c 'trap \"\" TERM HUP; sleep 1000' </dev/null >/dev/null 2>&1 & echo; exit 0"
    outcome = await run_child(replace(shell(script, tag), user=NOBODYS), SHORT)
    assert outcome.ok
    assert outcome.survivors_left == 0
    assert alive_with(tag) == []
    assert [folder for folder in Path("/proc").glob("[0-9]*") if owner(folder) == NOBODYS.uid] == []


def owner(folder: Path) -> int:
    try:
        status = (folder / "status").read_text()
    except OSError:
        return 0
    return 0 if "State:\tZ" in status else int(status.split("Uid:")[1].split()[0])


@pytest.mark.parametrize("limits", [PATIENT, EVERYTHING], ids=["by the kernel", "by a launcher"])
@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [
        ("echo hello\n", 0o755, "exec format error"),
        ("", 0o755, "exec format error"),
        ("#!/bin/sh\n", 0o644, "not executable"),
        ("#!/no/such/interpreter\n", 0o755, "the interpreter that it names"),
    ],
)
async def test_errors_of_a_launched_program_equal_those_of_a_direct_start(
    tmp_path: Path, tag: str, text: str, mode: int, why: str, limits: Limits
) -> None:
    command = Command((str(program(tmp_path, text, mode)),), Path("/"), {"PATH": PATH})
    with pytest.raises(SpawnError, match=why):
        await run_child(command, limits)


@pytest.mark.parametrize("limits", [PATIENT, EVERYTHING], ids=["by the kernel", "by a launcher"])
@pytest.mark.parametrize(
    ("argv", "why"),
    [(("no-such-program",), "not on PATH"), (("/no/such",), "no such file"), (("/usr",), "it is a folder")],
)
async def test_errors_of_a_missing_launched_program_equal_those_of_a_direct_start(
    tag: str, argv: tuple[str, ...], why: str, limits: Limits
) -> None:
    with pytest.raises(SpawnError, match=why):
        await run_child(Command(argv, Path("/"), {"PATH": PATH}), limits)


async def test_a_pipe_in_place_of_the_program_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "program", 0o755)
    command = Command((str(tmp_path / "program"),), tmp_path, {"PATH": PATH})
    said = set()
    for limits in (PATIENT, EVERYTHING):
        with trio.fail_after(300), pytest.raises(SpawnError) as caught:
            await run_child(command, limits)
        said.add(str(caught.value))
    assert len(said) == 1


def test_a_first_line_without_an_interpreter_is_refused(tmp_path: Path) -> None:
    found = program(tmp_path, "#!\n")
    with pytest.raises(OSError, match="No such file") as caught:
        check(Command((str(found),), Path("/"), {}), found)
    assert caught.value.errno == errno.ENOENT


def test_a_program_that_may_not_be_read_is_left_to_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    found = program(tmp_path, "no program")
    monkeypatch.setattr(Path, "open", refuse)
    check(Command((str(found),), Path("/"), {}), found)


def test_a_folder_that_the_user_may_not_enter_is_named(public: Path) -> None:
    closed = public / "closed"
    closed.mkdir(mode=0o700)
    found = program(closed, "#!/bin/sh\n")
    command = Command((str(found),), Path("/"), {}, user=NOBODYS)
    with pytest.raises(SpawnError, match=f"user {NOBODYS.uid} may not enter its folder {closed}"):
        check(command, found)
    check(replace(command, user=User(os.geteuid(), os.getegid())), found)
    closed.chmod(0o711)
    check(command, found)
    found.chmod(0o744)
    with pytest.raises(OSError, match="Permission denied"):
        check(command, found)


def test_an_interpreter_that_the_user_cannot_reach_is_refused(public: Path) -> None:
    closed = public / "closed"
    closed.mkdir(mode=0o700)
    interpreter = program(closed, "#!/bin/sh\n")
    script = public / "script"
    script.write_text(f"#!{interpreter}\n")
    script.chmod(0o755)
    command = Command((str(script),), Path("/"), {}, user=NOBODYS)
    with pytest.raises(SpawnError, match="may not enter its folder"):
        check(command, script)
