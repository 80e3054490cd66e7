"""The ledger of child processes. Processes of dead daemons are killed, other processes are not, and a damaged file does not
prevent a start.
"""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.process.children import PATH, TAG, alive_with, is_alive, wait_dead
from wharfinger.process.errors import LedgerError
from wharfinger.process.journal_file import JournalFile
from wharfinger.process.ledger import PROCESS_GROUPS, ProcessLedger, boot_id, kill_left_behind, open_ledger
from wharfinger.process.proc_stat import MARKER

OWNER = """
import sys
from contextlib import closing
from pathlib import Path
import trio
from wharfinger.process.child import run_child
from wharfinger.process.command import Command, Limits, Sinks
from wharfinger.process.ledger import open_ledger

async def main():
    with open_ledger(Path(sys.argv[1])) as ledger:
        env = {"PATH": sys.argv[3], sys.argv[4]: sys.argv[5]}
        await run_child(
            Command(("/bin/sh", "-c", sys.argv[2]), Path("/"), env), Limits(wall_s=1000, stdout_bytes=1000),
            sinks=Sinks(stdout=lambda chunk: print("said", flush=True)),
            ledger=ledger,
        )
trio.run(main)
"""


def killed_owner(journal: Path, script: str, tag: str) -> None:
    """Run a process that has a ledger and starts a child, and kill it with SIGKILL once the child has written a line."""
    command = [sys.executable, "-c", OWNER, str(journal), script, PATH, TAG, tag]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "said\n"
        owner.kill()


@pytest.mark.parametrize(
    "script",
    [
        "trap '' TERM HUP; echo ready; while :; do sleep 1000; done",
        "trap '' TERM HUP; setsid sleep 1000 & echo ready; while :; do sleep 1000; done",
    ],
    ids=["plain", "daemonised"],
)
async def test_processes_of_a_killed_owner_are_killed(tag: str, tmp_path: Path, script: str) -> None:
    killed_owner(tmp_path / "journal.db", script, tag)
    left = alive_with(tag)
    assert left
    with open_ledger(tmp_path / "journal.db") as ledger:
        assert len(ledger.entries()) == 1
        assert await kill_left_behind(ledger) >= 1
        assert ledger.entries() == ()
        assert await kill_left_behind(ledger) == 0
    for pid in left:
        await wait_dead(pid)
    assert alive_with(tag) == []


async def test_an_intent_without_a_pid_is_found_by_its_token(tag: str, tmp_path: Path) -> None:
    """The owner was killed after the child started and before the pid of the child was recorded."""
    killed_owner(tmp_path / "journal.db", "trap '' TERM HUP; echo ready; while :; do sleep 1000; done", tag)
    with open_ledger(tmp_path / "journal.db") as ledger:
        (entry,) = ledger.entries()
        assert entry.pid > 0
        row = (entry.token, entry.boot_id, entry.owner_pid, entry.owner_start_ticks, 0, 0)
        ledger.file.table(PROCESS_GROUPS).put(row)
    with open_ledger(tmp_path / "journal.db") as ledger:
        assert await kill_left_behind(ledger) >= 1
    assert alive_with(tag) == []


@pytest.mark.parametrize("column", ["start_ticks", "boot_id"])
async def test_another_process_with_the_same_pid_is_not_killed(tag: str, tmp_path: Path, column: str) -> None:
    """The pid was reused, so the process has another start time, or the machine was rebooted."""
    with subprocess.Popen(["/bin/sleep", "1000"], env={TAG: tag}, start_new_session=True) as stranger:
        killed_owner(tmp_path / "journal.db", "echo ready; sleep 0.2; echo more", tag)
        with open_ledger(tmp_path / "journal.db") as ledger:
            await kill_left_behind(ledger)
        with open_ledger(tmp_path / "journal.db") as ledger:
            start = int(Path(f"/proc/{stranger.pid}/stat").read_text().rpartition(")")[2].split()[19])
            boot = "another-boot" if column == "boot_id" else boot_id()
            row = ("f" * 32, boot, 1999999, 1, stranger.pid, start if column == "boot_id" else start + 1)
            ledger.file.table(PROCESS_GROUPS).put(row)
        with open_ledger(tmp_path / "journal.db") as ledger:
            assert await kill_left_behind(ledger) == 0
            assert ledger.entries() == ()
        assert is_alive(stranger.pid)
        stranger.kill()


async def test_rows_of_a_living_owner_are_retained(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "journal.db") as ledger:
        ledger.intend("token")
        ledger.complete("token", os.getpid(), 1)
        assert await kill_left_behind(ledger) == 0
        (entry,) = ledger.entries()
        assert (entry.token, entry.pid, entry.start_ticks, entry.owner_pid) == ("token", os.getpid(), 1, os.getpid())
        ledger.forget("token")
        assert ledger.entries() == ()


@pytest.mark.parametrize("damage", ["text", "cut", "scrambled"])
async def test_a_damaged_file_is_set_aside_with_a_warning(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "journal.db"
    with open_ledger(path) as ledger:
        for number in range(500):
            ledger.intend(f"token-{number}")
    data = path.read_bytes()
    path.write_bytes(
        {"text": b"not a database, " * 600, "cut": data[:5000], "scrambled": data[:100] + os.urandom(len(data) - 100)}[
            damage
        ]
    )
    for name in ("journal.db-wal", "journal.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    with open_ledger(path) as ledger:
        assert ledger.warning is not None
        assert "was renamed to" in ledger.warning
        assert "were not ended" in ledger.warning
        assert ledger.entries() == ()
        ledger.intend("new")
    assert len(list(tmp_path.glob("journal.db*"))) >= 2
    with open_ledger(path) as ledger:
        assert ledger.warning is None
        assert [entry.token for entry in ledger.entries()] == ["new"]


def test_a_table_of_another_version_is_set_aside_with_a_warning(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "journal.db") as ledger:
        ledger.intend("old")
    with sqlite3.connect(tmp_path / "journal.db") as database:
        database.execute("UPDATE table_versions SET version = 99")
    database.close()
    with open_ledger(tmp_path / "journal.db") as ledger:
        assert ledger.warning is not None
        assert "99" in ledger.warning
        assert ledger.entries() == ()


def test_other_tables_of_the_journal_are_unchanged(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "journal.db") as database:
        database.execute("CREATE TABLE others (a)")
        database.execute("INSERT INTO others VALUES (1)")
    database.close()
    with open_ledger(tmp_path / "journal.db") as ledger:
        assert ledger.warning is None
    with sqlite3.connect(tmp_path / "journal.db") as database:
        assert database.execute("SELECT a FROM others").fetchall() == [(1,)]
    database.close()


def test_a_missing_folder_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    with (
        pytest.raises(LedgerError, match="check the disk and the owner"),
        open_ledger(tmp_path / "none" / "journal.db"),
    ):
        pass


def test_rows_outlive_their_owner(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from wharfinger.process.journal_file import JournalFile;"
        "from wharfinger.process.ledger import ProcessLedger;"
        "ProcessLedger(JournalFile(Path(sys.argv[1]))).intend('kept'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "journal.db")], check=False)
    assert done.returncode == -signal.SIGKILL
    with open_ledger(tmp_path / "journal.db") as ledger:
        assert [entry.token for entry in ledger.entries()] == ["kept"]


FIRST_VERSION = """
PRAGMA journal_mode = WAL;
CREATE TABLE table_versions (name TEXT PRIMARY KEY, version INTEGER NOT NULL);
CREATE TABLE process_groups (
    token TEXT PRIMARY KEY CHECK (typeof(token) = 'text'),
    boot_id TEXT NOT NULL CHECK (typeof(boot_id) = 'text'),
    owner_pid INTEGER NOT NULL CHECK (typeof(owner_pid) = 'integer'),
    owner_start_ticks INTEGER NOT NULL CHECK (typeof(owner_start_ticks) = 'integer'),
    pid INTEGER NOT NULL DEFAULT 0 CHECK (typeof(pid) = 'integer'),
    start_ticks INTEGER NOT NULL DEFAULT 0 CHECK (typeof(start_ticks) = 'integer')
) WITHOUT ROWID;
INSERT INTO table_versions VALUES ('process_groups', 1);
"""


async def test_processes_of_a_daemon_of_version_1_are_killed(tag: str, tmp_path: Path) -> None:
    """The daemon that was killed wrote rows without checksums. After its death, the program was updated. The new version still
    has to kill the processes in these rows.
    """
    with (
        subprocess.Popen(["/bin/sleep", "1000"], env={TAG: tag, MARKER: "a" * 32}, start_new_session=True) as left,
        closing(sqlite3.connect(tmp_path / "journal.db")) as database,
    ):
        start = int(Path(f"/proc/{left.pid}/stat").read_text().rpartition(")")[2].split()[19])
        database.executescript(FIRST_VERSION)
        with database:
            rows = [("a" * 32, boot_id(), 1999999, 1, left.pid, start), ("b" * 32, "another-boot", 1, 2, 3, 4)]
            database.executemany("INSERT INTO process_groups VALUES (?, ?, ?, ?, ?, ?)", rows)
        for _ in range(2):  # The migration takes place in the first round only.
            with open_ledger(tmp_path / "journal.db") as ledger:
                assert ledger.warning is None
                assert [entry.token for entry in ledger.entries()] == ["a" * 32, "b" * 32]
                assert ledger.entries()[0].start_ticks == start
        with open_ledger(tmp_path / "journal.db") as ledger:
            assert await kill_left_behind(ledger) == 1
            assert ledger.entries() == ()
        assert not is_alive(left.pid)


async def test_an_altered_row_kills_no_process_and_others_are_retained(tag: str, tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with subprocess.Popen(["/bin/sleep", "1000"], env={TAG: tag}, start_new_session=True) as stranger:
        start = int(Path(f"/proc/{stranger.pid}/stat").read_text().rpartition(")")[2].split()[19])
        with open_ledger(path) as ledger:
            table = ledger.file.table(PROCESS_GROUPS)
            table.put(("a" * 32, boot_id(), 1999999, 1, 1999999, 1))
            table.put(("b" * 32, boot_id(), 1999999, 1, 1999999, 1))
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(
                "UPDATE process_groups SET pid = ?, start_ticks = ? WHERE token = ?", (stranger.pid, start, "a" * 32)
            )
        with open_ledger(path) as ledger:
            assert ledger.warning is not None
            assert "1 damaged rows (1 of the 1 undamaged rows were kept)" in ledger.warning
            assert [entry.token for entry in ledger.entries()] == ["b" * 32]
            assert await kill_left_behind(ledger) == 0
        assert is_alive(stranger.pid)
        stranger.kill()


@contextmanager
def running(tag: str, token: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a child with this token, and end it afterwards."""
    with subprocess.Popen(["/bin/sleep", "1000"], env={TAG: tag, MARKER: token}, start_new_session=True) as child:
        try:
            yield child
        finally:
            child.kill()


async def test_running_children_stay_recorded_when_the_file_is_damaged(tag: str, tmp_path: Path) -> None:
    """The daemon needs the record at its next start, to find the children."""
    path = tmp_path / "journal.db"
    with running(tag, "a" * 32) as child:
        start = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19])
        with open_ledger(path) as ledger:
            for token in ("a" * 32, "b" * 32, "over"):
                ledger.intend(token)
            ledger.complete("a" * 32, child.pid, start)
            ledger.forget("over")
            before = ledger.entries()
            for call in (lambda: ledger.intend("new"), lambda: ledger.complete("b" * 32, 1, 1), ledger.entries):
                with closing(sqlite3.connect(path)) as database:
                    database.execute("DROP TABLE process_groups")
                with pytest.raises(LedgerError, match="the rows of process_groups, which were in memory"):
                    call()
                assert ledger.entries() == before
            # The rows get another owner, as if this process were dead.
            for entry in before:
                row = (entry.token, entry.boot_id, 1999999, 1, entry.pid, entry.start_ticks)
                ledger.file.table(PROCESS_GROUPS).put(row)
        with open_ledger(path) as ledger:
            assert ledger.warning is None
            assert await kill_left_behind(ledger) == 1
            assert ledger.entries() == ()
        assert not is_alive(child.pid)


def test_a_ledger_that_cannot_be_written_raises_an_error(tmp_path: Path) -> None:
    file = JournalFile(tmp_path / "journal.db")
    ledger = ProcessLedger(file)
    file.close()
    for call in (ledger.intend, ledger.forget):
        with pytest.raises(LedgerError, match="cannot be written"):
            call("a")
    with pytest.raises(LedgerError, match="cannot be written"):
        ledger.complete("a", 1, 1)
    with pytest.raises(LedgerError, match="cannot be read"):
        ledger.entries()
