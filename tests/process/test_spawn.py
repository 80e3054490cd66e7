"""The start of a child: its session and environment, its row in the ledger, and errors."""

import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.process.children import PATH, TAG, alive_with, shell
from tests.programs import ROOT
from wharfinger.process.command import Command
from wharfinger.process.descendants import read_process, read_stat
from wharfinger.process.errors import FileBusyError, LedgerError, SpawnError
from wharfinger.process.journal_file import JournalFile
from wharfinger.process.ledger import ProcessLedger, open_ledger
from wharfinger.process.proc_stat import MARKER
from wharfinger.process.spawn import Spawned, spawn


@contextmanager
def spawned(command: Command, ledger: ProcessLedger | None = None) -> Iterator[Spawned]:
    """Start a child, and kill and reap it afterwards."""
    child = spawn(command, "token", ledger)
    try:
        yield child
    finally:
        os.killpg(child.popen.pid, signal.SIGKILL)
        child.popen.wait()
        child.close()


def script(folder: Path, text: str, mode: int = 0o755) -> Path:
    path = folder / "program"
    path.write_text(text)
    path.chmod(mode)
    return path


def read_all(fd: int) -> str:
    os.set_blocking(fd, True)
    with os.fdopen(os.dup(fd)) as stream:
        return stream.read()


def wait_ready(child: Spawned) -> None:
    """Wait for output of the child. Popen may return during ``execve``, when the child does not have its environment yet."""
    os.set_blocking(child.stdout, True)
    assert os.read(child.stdout, 100) == b"ready\n"


def test_a_child_leads_its_own_session_and_carries_its_token(tag: str) -> None:
    with spawned(shell("echo ready; kill -STOP $$", tag)) as child:
        pid = child.popen.pid
        assert not os.get_blocking(child.stdout)
        assert not os.get_blocking(child.stderr)
        wait_ready(child)
        found = read_process(pid)

        assert found is not None
        assert found.tokens == {"token"}
        assert (found.stat.pgid, found.stat.sid) == (pid, pid)
        assert (child.mark.pid, child.mark.start_ticks, child.mark.held) == (pid, found.stat.start_ticks, True)
        assert child.stdin is None


def test_a_child_inherits_only_its_three_descriptors(tag: str) -> None:
    with (
        Path("/dev/null").open("rb") as other,
        spawned(shell("readlink /proc/self/fd/0; ls /proc/self/fd | wc -l; env", tag)) as child,
    ):
        os.set_inheritable(other.fileno(), True)
        said = read_all(child.stdout).split()

    # The fourth descriptor is the folder that `ls` reads.
    assert said[:2] == ["/dev/null", "4"]
    assert {line.partition("=")[0] for line in said[2:]} <= {"PATH", TAG, MARKER, "PWD", "OLDPWD", "SHLVL", "_"}


def test_a_run_within_a_run_carries_both_tokens(tag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARKER, "outer")
    command = shell("echo ready; kill -STOP $$", tag)
    with spawned(replace(command, env={**command.env, MARKER: "forged"})) as child:
        wait_ready(child)
        found = read_process(child.popen.pid)

    assert found is not None
    assert found.tokens == {"outer", "token"}


def test_the_ledger_has_the_run_before_the_child_exists(tag: str, tmp_path: Path) -> None:
    class Watching(ProcessLedger):
        """A ledger that makes two checks: no child exists before the intent is written, and the row has no pid before it is
        completed.
        """

        def intend(self, token: str) -> None:
            assert alive_with(tag) == []
            super().intend(token)

        def complete(self, token: str, pid: int, start_ticks: int) -> None:
            assert [entry.pid for entry in self.entries()] == [0]
            super().complete(token, pid, start_ticks)

    ledger = Watching(JournalFile(tmp_path / "journal.db"))
    with spawned(shell("exec sleep 1000", tag), ledger) as child:
        (entry,) = ledger.entries()
        assert (entry.token, entry.pid, entry.start_ticks) == ("token", child.mark.pid, child.mark.start_ticks)
        assert entry.owner_pid == os.getpid()
    ledger.file.close()


def refused(argv: tuple[str, ...], env: Mapping[str, str] | None = None, cwd: Path = Path("/")) -> SpawnError:
    """Return the error of a command that cannot be started."""
    with pytest.raises(SpawnError) as caught:
        spawn(Command(argv, cwd, {"PATH": PATH} if env is None else env), "token", None)
    return caught.value


@pytest.mark.parametrize(
    ("argv", "why", "remedy"),
    [
        ((), "the command line is empty", "name a program"),
        (("",), "the command line is empty", "name a program"),
        (("no-such-program",), f"it is not on PATH ({PATH})", "install it, or put its folder on PATH"),
        (("/no/such/program",), "there is no such file", "check its name and the package's content"),
        (("/usr/bin",), "it is a folder", "name a file in it"),
        (("/bin/true", "a\0b"), "an argument or a variable cannot be passed on: embedded null byte", "NUL bytes"),
        (("/bin/true", "x" * 200_000), "its arguments and environment are too large together", "in files"),
        (("/etc/passwd/x",), "the system refused: Not a directory", "check the program and its folder"),
    ],
)
def test_a_program_that_cannot_start_is_an_error_with_a_remedy(
    tag: str, argv: tuple[str, ...], why: str, remedy: str
) -> None:
    error = refused(argv)

    assert error.why == why
    assert remedy in error.remedy
    assert not error.transient


def test_a_file_that_is_not_executable_is_an_error_with_a_remedy(tag: str, tmp_path: Path) -> None:
    path = script(tmp_path, "#!/bin/sh\n", mode=0o644)

    error = refused((str(path),))

    assert str(error) == (
        f"cannot start {path}: it is not executable for this user; "
        f"chmod +x {path}, and check that its file system is not mounted noexec"
    )
    assert f"chmod +x {path}," in refused(("program",), {"PATH": str(tmp_path)}).remedy


def test_a_file_that_is_not_a_program_is_an_error_with_a_remedy(tag: str, tmp_path: Path) -> None:
    path = script(tmp_path, "echo a script without a first line\n")

    error = refused((str(path),))

    assert "exec format error" in error.why
    assert "#!/bin/sh" in error.remedy


def test_a_script_with_a_missing_interpreter_is_an_error(tag: str, tmp_path: Path) -> None:
    path = script(tmp_path, "#!/no/such/interpreter\n")

    error = refused(("./program",), cwd=tmp_path)

    assert error.why.startswith(f"{tmp_path / 'program'} exists, but the interpreter that it names")
    assert "first line" in error.remedy
    assert refused((str(path),)).why == error.why


def test_an_unusable_working_folder_is_an_error(tag: str, tmp_path: Path) -> None:
    path = script(tmp_path, "")

    assert (
        refused(("/bin/true",), cwd=tmp_path / "gone").why == f"its working folder {tmp_path / 'gone'} does not exist"
    )
    assert refused(("/bin/true",), cwd=path).why == f"its working folder {path} is not a folder"


WITHOUT_RIGHTS = """
import os, sys
from pathlib import Path
from wharfinger.process.command import Command
from wharfinger.process.errors import SpawnError
from wharfinger.process.spawn import spawn
def why(folder):
    try:
        spawn(Command(("/bin/true",), Path(folder), {}), "token", None)
    except SpawnError as error:
        return error.why
why("/does/not/exist")  # import lazily loaded modules now: the user nobody may not read them
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
print(why(sys.argv[1]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_forbidden_working_folder_is_an_error(tag: str) -> None:
    with tempfile.TemporaryDirectory() as closed:  # its mode is 0700, but everybody may enter its parent
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_RIGHTS, closed],
            cwd=ROOT,
            env={TAG: tag},
            capture_output=True,
            text=True,
            check=True,
        )

    assert done.stdout == f"its working folder {closed} may not be entered by this user\n"


def test_a_file_being_written_is_a_transient_error(tag: str, tmp_path: Path) -> None:
    path = script(tmp_path, "#!/bin/sh\n")
    with path.open("ab"), pytest.raises(FileBusyError) as caught:
        spawn(Command((str(path),), tmp_path, {}), "token", None)

    assert caught.value.transient


def test_a_shortage_of_descriptors_before_the_start_is_a_transient_error(tag: str) -> None:
    with few_descriptors(6):
        error = refused(("/bin/true",))

    assert "out of processes, memory or file descriptors" in error.why
    assert error.transient


@contextmanager
def few_descriptors(spare: int) -> Iterator[None]:
    """Lower the limit so that only ``spare`` further descriptors can be opened. This is exact only if the descriptor numbers
    from the lowest free one on are not used.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + spare, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_shortage_of_descriptors_after_the_start_ends_the_child(tag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After Popen has closed some of its descriptors, the ledger of the test lowers the limit on open descriptors. Then no
    descriptor is left for the pidfd.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    class Starving(Recording):
        def complete(self, token: str, pid: int, start_ticks: int) -> None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))

    monkeypatch.setattr("wharfinger.process.spawn.ABORT_SWEEP_S", 0.0)
    ledger = Starving()
    try:
        with pytest.raises(SpawnError, match="file descriptors") as caught:
            spawn(shell("exec sleep 1000", tag), "token", ledger)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert caught.value.transient
    assert ledger.calls == ["intend", "forget"]


class Recording(ProcessLedger):
    """A ledger that has no file and records its calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def intend(self, token: str) -> None:
        self.calls.append("intend")

    def complete(self, token: str, pid: int, start_ticks: int) -> None:
        self.calls.append("complete")

    def forget(self, token: str) -> None:
        self.calls.append("forget")


class Failing(Recording):
    """A ledger that fails at a given call. It also fails in `forget`, which must not hide the first error."""

    def __init__(self, step: str) -> None:
        super().__init__()
        self.step = step

    def intend(self, token: str) -> None:
        super().intend(token)
        if self.step == "intend":
            raise LedgerError("disk full")

    def complete(self, token: str, pid: int, start_ticks: int) -> None:
        super().complete(token, pid, start_ticks)
        if self.step == "complete":
            raise LedgerError("disk full")

    def forget(self, token: str) -> None:
        super().forget(token)
        raise LedgerError("still full")


@pytest.mark.parametrize(("step", "calls"), [("intend", ["intend"]), ("complete", ["intend", "complete", "forget"])])
def test_a_child_that_cannot_be_recorded_does_not_run(tag: str, step: str, calls: list[str]) -> None:
    ledger = Failing(step)
    with pytest.raises(LedgerError, match="disk full"):
        spawn(shell("setsid sleep 1000 & setsid sleep 1000", tag), "token", ledger)

    assert ledger.calls == calls
    assert alive_with(tag) == []


def test_a_failed_start_is_not_in_the_ledger(tag: str, tmp_path: Path) -> None:
    with open_ledger(tmp_path / "journal.db") as ledger:
        with pytest.raises(SpawnError):
            spawn(Command(("/no/such/program",), tmp_path, {}), "token", ledger)

        assert ledger.entries() == ()


def test_the_child_reads_the_end_of_its_input(tag: str) -> None:
    with spawned(shell("cat; echo end", tag, stdin=b"asked for")) as child:
        assert child.stdin is not None
        os.write(child.stdin, b"given ")
        child.close_stdin()

        assert read_all(child.stdout) == "given end\n"


def test_a_child_that_has_already_ended_is_recorded(tag: str) -> None:
    with spawned(shell("exit 0", tag)) as child:
        os.waitid(os.P_PIDFD, child.pidfd, os.WEXITED | os.WNOWAIT)
        stat = read_stat(child.popen.pid)

        assert stat is not None
        assert stat.start_ticks == child.mark.start_ticks
        assert isinstance(child.popen, subprocess.Popen)


def test_named_descriptors_are_inherited_and_no_others(tag: str) -> None:
    read, write = os.pipe()
    os.set_blocking(read, False)
    leak = f"[ -e /proc/self/fd/{read} ] && echo leaked"
    command = shell(f"echo passed >/proc/self/fd/{write}; {leak}; exit 0", tag)
    try:
        with spawned(replace(command, descriptors=(write,))) as child:
            assert read_all(child.stdout) == ""
        assert os.read(read, 100) == b"passed\n"
    finally:
        os.close(read)
        os.close(write)
