"""Hostile hooks in real processes. Each hook is contained in up to four ways: it runs as the daemon's user, as a user of its
own, in a sandbox, or in a sandbox as a user of its own.

Every run ends within its limits. Afterwards no process of the run is alive, its folder is removed, and its output is bounded. A
test that needs root or a sandbox is skipped with a reason if that is not available. A user of its own needs root. The fork
bombs run only under a limit of the kernel on the number of processes. The scripts also limit how many processes they start.
"""

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.hooks.support.contained import (
    IS_ROOT,
    LIMITS,
    REPETITIONS,
    no_sandbox,
    package_in,
    runner,
    sandbox,
    state_folder,
    users,
)
from tests.hooks.support.scripts import bash, run_of
from tests.process.children import alive_with
from wharfinger.hooks.containment.containment import Containment
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.hooks.running.run_folder import PREFIX
from wharfinger.hooks.running.runner import HookOutcome
from wharfinger.process.command import Limits
from wharfinger.process.descendants import scan

MEGA = 1024 * 1024
GIGA = 1024 * MEGA
PROCESSES = 24


def as_the_daemon(state: Path) -> Containment:
    return Containment(file_bytes=8 * MEGA, state_dir=state)


def as_its_own_user(state: Path) -> Containment:
    return Containment(users=users(8), processes=PROCESSES, file_bytes=8 * MEGA, state_dir=state)


def in_a_sandbox(state: Path) -> Containment:
    return Containment(sandbox=sandbox(), file_bytes=8 * MEGA, state_dir=state)


def as_its_own_user_in_a_sandbox(state: Path) -> Containment:
    return replace(as_its_own_user(state), sandbox=sandbox())


NEEDS_ROOT = pytest.mark.skipif(not IS_ROOT, reason="only root can give a hook a user of its own")
NEEDS_SANDBOX = pytest.mark.skipif(bool(no_sandbox()), reason=no_sandbox() or "it works")
CONTAINED = [
    pytest.param(as_the_daemon, id="as the daemon"),
    pytest.param(as_its_own_user, id="own user", marks=NEEDS_ROOT),
    pytest.param(in_a_sandbox, id="sandbox", marks=NEEDS_SANDBOX),
    pytest.param(as_its_own_user_in_a_sandbox, id="own user in a sandbox", marks=[NEEDS_ROOT, NEEDS_SANDBOX]),
]
WITH_LIMITED_PROCESSES = [CONTAINED[1], CONTAINED[3]]


@dataclass(frozen=True, slots=True)
class Prison:
    """The folder of a package with a hostile hook, the containment of the hook, and the checks after a run."""

    state: Path
    package: Path
    containment: Containment
    tag: str

    def runner(self, limits: Limits = LIMITS) -> ProcessHookRunner:
        return runner(self.state, self.containment, limits)

    async def run(self, hook: Path, limits: Limits = LIMITS) -> HookOutcome:
        """Run the hook once. However the run ends, check that nothing of it is left."""
        run = replace(run_of(hook), environment={"WHARFINGER_TEST_TAG": self.tag})
        try:
            return await self.runner(limits).run(run)
        finally:
            self.check_nothing_is_left()

    def check_nothing_is_left(self) -> None:
        assert alive_with(self.tag) == []
        assert [path for path in (self.state / "scratch").iterdir() if path.name.startswith(PREFIX)] == []
        assert list((self.state / "scratch").glob("*/*")) == []
        own = self.containment.users
        if own is not None:
            assert [one for one in scan(0, users=True) if own.first <= one.uid <= own.last and one.stat.alive] == []


@pytest.fixture(params=CONTAINED)
def prison(request: pytest.FixtureRequest, tag: str) -> Iterator[Prison]:
    with state_folder() as state:
        yield Prison(state, package_in(state), request.param(state), tag)


@pytest.fixture
def tag(tmp_path: Path) -> str:
    return tmp_path.name + str(os.getpid())


@pytest.mark.sampled
async def test_child_left_in_the_session_is_ended_with_the_run(prison: Prison) -> None:
    hook = bash(prison.package, "(trap '' TERM HUP; sleep 1000) & disown; echo gone; exit 0")
    for _ in range(REPETITIONS):
        outcome = await prison.run(hook)
        assert (outcome.succeeded, outcome.log_lines) == (True, ("gone",))


@pytest.mark.sampled
async def test_child_in_a_new_session_is_ended_with_the_run(prison: Prison) -> None:
    hook = bash(prison.package, "setsid sh -c 'trap \"\" TERM HUP; sleep 1000' </dev/null >/dev/null 2>&1 & exit 0")
    for _ in range(REPETITIONS):
        assert (await prison.run(hook)).succeeded


@pytest.mark.sampled
@pytest.mark.parametrize("prison", CONTAINED[1:], indirect=True)
async def test_child_without_session_and_environment_is_ended_with_the_run(prison: Prison) -> None:
    """A process that has neither the session nor the environment of its run is found only if the run has its own user or a
    sandbox.
    """
    hook = bash(prison.package, "setsid env -i /bin/sleep 1000.4321 </dev/null >/dev/null 2>&1 & exit 0")
    for _ in range(REPETITIONS):
        assert (await prison.run(hook)).succeeded
        assert [path for path in Path("/proc").glob("[0-9]*/cmdline") if b"1000.4321" in read(path)] == []


@pytest.mark.slow
@pytest.mark.sampled
async def test_hook_that_ignores_sigterm_is_killed_at_its_deadline(prison: Prison) -> None:
    hook = bash(prison.package, "trap '' TERM; echo ready; while :; do sleep 1000; done")
    for _ in range(REPETITIONS):
        outcome = await prison.run(hook, replace(LIMITS, wall_s=0.2))
        assert not outcome.succeeded
        assert outcome.exit_description.startswith("deadline passed")
        assert outcome.wall_s < LIMITS.wall_s


@pytest.mark.sampled
async def test_gigabyte_on_stdout_ends_the_run_at_the_output_limit(prison: Prison) -> None:
    hook = bash(prison.package, f"head -c {GIGA} /dev/zero | tr '\\0' 'x'")
    for _ in range(REPETITIONS):
        outcome = await prison.run(hook)
        assert outcome.exit_description.startswith("output limit passed")
        assert sum(map(len, outcome.log_lines)) <= MEGA


@pytest.mark.sampled(2)
async def test_gigabyte_in_the_patch_file_fails_the_run(prison: Prison) -> None:
    """The kernel stops the hook's write at the limit for the size of a file. The file is then still too large to be read, so
    the run has no result.
    """
    hook = bash(
        prison.package,
        f"""trap '' XFSZ
        head -c {GIGA} /dev/zero >"$KUBERNETES_PATCH_PATH" || stat -c %s "$KUBERNETES_PATCH_PATH" """,
    )
    for _ in range(REPETITIONS):
        with pytest.raises(HookError, match="KUBERNETES_PATCH_PATH: more than the limit"):
            await prison.run(hook)


@pytest.mark.sampled(2)
async def test_files_of_a_hook_end_at_the_file_size_limit(prison: Prison) -> None:
    script = f'trap "" XFSZ; head -c {GIGA} /dev/zero >"$METRICS_PATH" || stat -c %s "$METRICS_PATH"; exit 9'
    outcome = await prison.run(bash(prison.package, script))
    assert str(8 * MEGA) in outcome.log_lines


@pytest.mark.sampled
async def test_hook_that_closes_its_descriptors_ends_at_its_deadline(prison: Prison) -> None:
    hook = bash(prison.package, 'exec 0<&- 1>&- 2>&-; for fd in 3 4 5 6 7 8 9; do eval "exec $fd>&-"; done; sleep 1000')
    for _ in range(REPETITIONS):
        outcome = await prison.run(hook, replace(LIMITS, wall_s=0.2))
        assert outcome.exit_description.startswith("deadline passed")
        assert outcome.log_lines == ()


@pytest.mark.sampled
async def test_grandchild_holding_stdout_does_not_delay_the_run(prison: Prison) -> None:
    hook = bash(prison.package, "((trap '' TERM; sleep 1000) &) ; echo said; exit 0")
    for _ in range(REPETITIONS):
        outcome = await prison.run(hook)
        assert (outcome.succeeded, outcome.log_lines) == (True, ("said",))
        assert outcome.wall_s < LIMITS.wall_s


@pytest.mark.sampled
@pytest.mark.parametrize("prison", WITH_LIMITED_PROCESSES, indirect=True)
async def test_a_fork_bomb_ends_at_the_process_limit(prison: Prison) -> None:
    """The hook tries to start three times as many processes as permitted, each in its own session, and counts them."""
    hook = bash(prison.package, "")
    hook.write_text(
        f"""#!/bin/sh
        got=0
        while [ $got -lt {3 * PROCESSES} ]; do
            setsid sleep 1000 </dev/null >/dev/null 2>&1 &
            got=$((got + 1))
            echo $got
        done
        """
    )
    assert all(measure.holds for measure in prison.containment.enforced())
    for _ in range(REPETITIONS):
        outcome = await prison.run(hook, replace(LIMITS, wall_s=2.0))
        assert not outcome.succeeded
        got = [line for line in outcome.log_lines if line.isdecimal()]
        assert 0 < len(got) < PROCESSES, outcome


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("prison", WITH_LIMITED_PROCESSES, indirect=True)
async def test_endless_fork_bomb_is_ended_and_fails_the_run(prison: Prison) -> None:
    """Each process of the bomb starts two children. Even without a limit on processes, the bomb stops growing after 12
    generations, so that it cannot harm the machine.
    """
    script = 'bomb() { [ "$1" -gt 0 ] || sleep 1000; bomb $(($1 - 1)) & bomb $(($1 - 1)) & wait; }; bomb 12 2>/dev/null'
    hook = bash(prison.package, script)
    for _ in range(REPETITIONS):
        outcome = await prison.run(hook, replace(LIMITS, wall_s=0.3))
        assert not outcome.succeeded


@pytest.mark.sampled(2)
async def test_output_file_replaced_with_a_symlink_is_refused(prison: Prison) -> None:
    secret = prison.state / "secret"
    secret.write_text('{"name":"stolen","action":"add","value":1}')
    hook = bash(prison.package, f'rm "$METRICS_PATH"; ln -s {secret} "$METRICS_PATH"')
    for _ in range(REPETITIONS):
        with pytest.raises(
            HookError, match="METRICS_PATH: the hook replaced it with a link; write into the existing file"
        ):
            await prison.run(hook)
    assert secret.read_text().startswith('{"name":"stolen"')


@pytest.mark.sampled(2)
async def test_unreadable_files_of_a_hook_are_removed(prison: Prison) -> None:
    script = 'cd "${METRICS_PATH%/*}"; mkdir -p a/b/c; touch a/b/c/d; chmod 000 a/b/c a/b a; chmod 000 .'
    hook = bash(prison.package, script)
    with pytest.raises(HookError) if not IS_ROOT else nothing_raised():
        await prison.run(hook)


@pytest.mark.slow
@NEEDS_ROOT
@pytest.mark.parametrize("prison", [CONTAINED[1]], indirect=True)
async def test_hook_with_own_user_cannot_access_files_of_the_daemon(prison: Prison) -> None:
    secret = prison.state / "journal.db"
    secret.write_text("secret")
    secret.chmod(0o600)
    hook = bash(
        prison.package,
        f"""
        cat {secret} && echo read
        ls {prison.state} && echo listed
        ls {prison.state}/scratch && echo listed scratch
        touch "$0.new" && echo written
        kill -0 {os.getpid()} && echo signalled
        id -u; id -G; ls -ld "$HOME" "$TMPDIR" | cut -c1-10
        true
        """.replace("&&", "2>/dev/null &&"),
    )
    own = prison.containment.users
    assert own is not None
    outcome = await prison.run(replace_first_line(hook))
    assert outcome.log_lines == (str(own.first), str(own.first), "drwx------", "drwx------")


@NEEDS_ROOT
@pytest.mark.parametrize("prison", [CONTAINED[1]], indirect=True)
async def test_files_and_ipc_objects_of_the_hooks_user_are_removed(prison: Prison) -> None:
    hook = bash(
        prison.package,
        """
        mkdir -p /tmp/$UID/deep; touch /tmp/$UID/deep/file /tmp/$UID.file; chmod 000 /tmp/$UID
        ipcmk -M 4096
        [ ! -w /run/lock ] || touch /run/lock/$UID
        """,
    )
    own = prison.containment.users
    assert own is not None
    assert (await prison.run(hook)).succeeded
    assert str(own.first) not in Path("/proc/sysvipc/shm").read_text()
    assert not Path("/run/lock", str(own.first)).exists()
    assert not Path("/tmp", str(own.first)).exists()
    assert not Path("/tmp", f"{own.first}.file").exists()


@NEEDS_SANDBOX
@pytest.mark.parametrize("prison", [CONTAINED[2]], indirect=True)
async def test_sandbox_hides_the_daemon_and_shows_configured_folders(prison: Prison) -> None:
    library = prison.state / "library.sh"
    library.write_text("echo from the library")
    (prison.state / "journal.db").write_text("secret")
    there = replace(prison.containment, extra_binds={"/shell_lib.sh": library, "/frameworks": prison.state})
    hook = bash(
        prison.package,
        f"""
        ls {prison.state}
        touch /usr/x /x {prison.package}/x 2>/dev/null || echo read-only
        source /shell_lib.sh
        ls /frameworks | grep library
        kill -0 {os.getpid()} 2>/dev/null || echo alone
        """,
    )
    outcome = await Prison(prison.state, prison.package, there, prison.tag).run(hook)
    assert outcome.log_lines == ("scratch", "store", "read-only", "from the library", "library.sh", "alone")


@NEEDS_SANDBOX
@pytest.mark.parametrize("prison", CONTAINED[2:], indirect=True)
async def test_sandbox_cannot_connect_to_the_daemons_socket(prison: Prison) -> None:
    """The sandbox must cover the socket, because a read-only mount does not prevent connections, and the file mode of the
    socket lets the daemon's user connect.
    """
    folder = Path(tempfile.mkdtemp(prefix="wharfinger-socket-", dir=Path.home()))
    try:
        with socket.socket(socket.AF_UNIX) as daemons:
            path = folder / "debug.sock"
            daemons.bind(str(path))
            daemons.listen()
            path.chmod(0o600)
            connect = f'perl -MSocket -e \'socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un("{path}")) or die "$!\\n"\''
            hook = bash(prison.package, f"{connect} 2>&1 && echo connected || true")
            own = prison.containment.users is not None
            covered, bare = replace(prison.containment, socket=path), prison.containment
            for containment, said in (
                (covered, "Permission denied" if own else "Connection refused"),
                (bare, "Permission denied" if own else "connected"),
            ):
                held = Prison(prison.state, prison.package, containment, prison.tag)
                assert (await held.run(hook)).log_lines == (said,)
    finally:
        shutil.rmtree(folder)


class nothing_raised:  # noqa: N801 - used like pytest.raises
    """A context manager that does nothing. It replaces ``pytest.raises`` in cases in which no exception is expected."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def replace_first_line(hook: Path) -> Path:
    """Remove ``set -euo pipefail`` from the hook, so that it continues after a failed attempt to reach the daemon's files."""
    hook.write_text(hook.read_text().replace("set -euo pipefail", ""))
    return hook


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
