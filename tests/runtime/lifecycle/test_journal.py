"""The journal of operations in a file. The next process skips the completed steps, unless the machine was rebooted."""

import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.process.killed_writer import acknowledged, killed_at_random
from tests.runtime.support.world import SOON, open_ground
from tests.scale import scaled
from wharfinger.formats.json.value import find_str
from wharfinger.process.journal_file import JournalFile
from wharfinger.process.ledger import boot_id
from wharfinger.runtime.lifecycle.journal import OPERATION_STEPS, Journal, JournalEntry, JournalError
from wharfinger.runtime.lifecycle.journal_machine import MAX_RESULT, Operation
from wharfinger.runtime.status.failures import classify

UPDATE, RECONCILIATION, DISABLE, REMOVAL = Operation
SHOP = "default.shop"


@contextmanager
def journal(folder: Path) -> Iterator[Journal]:
    """Open the journal in a folder, as one process of the daemon does. The next call, like the next process, finds the rows
    that were written.
    """
    with closing(JournalFile(folder / "journal.db")) as file:
        yield Journal(file)
        assert file.warnings == ()


def altered(folder: Path, script: str) -> None:
    """Change the file as a user or a bad disk might do."""
    with closing(sqlite3.connect(folder / "journal.db")) as database:
        database.executescript(script)


def test_the_next_process_skips_completed_steps(tmp_path: Path) -> None:
    with journal(tmp_path) as one:
        one.begin(SHOP, UPDATE, "f")
        one.start(SHOP, UPDATE, "Download")
        one.complete(SHOP, UPDATE, "Download", "sha256:1")
        one.start(SHOP, UPDATE, "Install")
        one.begin("default.other", UPDATE, "f")
        one.start("default.other", UPDATE, "Download")
        one.complete("default.other", UPDATE, "Download")
    with journal(tmp_path) as two:
        assert two.entries() == (
            JournalEntry("default.other", UPDATE, "f", True, ("Download",), (), ()),
            JournalEntry(SHOP, UPDATE, "f", True, ("Download",), (), ("Install",)),
        )
        assert two.completed(SHOP, UPDATE, "Download") is None
        two.begin(SHOP, UPDATE, "f")
        assert two.completed(SHOP, UPDATE, "Download") == "sha256:1"
        assert two.completed(SHOP, UPDATE, "Install") is None
        two.start(SHOP, UPDATE, "Install")
        assert two.entries()[1] == JournalEntry(SHOP, UPDATE, "f", False, ("Download",), ("Install",), ())
        two.complete(SHOP, UPDATE, "Install")
        two.finish(SHOP, UPDATE)
        two.begin("default.other", UPDATE, "g")
        assert two.completed("default.other", UPDATE, "Download") is None
    with journal(tmp_path) as three:
        assert three.entries() == ()


def test_steps_are_listed_in_the_order_of_their_start(tmp_path: Path) -> None:
    names = [f"{number}" for number in (3, 20, 1, 100)]
    with journal(tmp_path) as one:
        one.begin(SHOP, RECONCILIATION, "f")
        for name in names:
            one.start(SHOP, RECONCILIATION, name)
            one.complete(SHOP, RECONCILIATION, name)
    with journal(tmp_path) as two:
        (entry,) = two.entries()
        assert entry.completed == tuple(names)


def test_a_deleted_package_leaves_no_row(tmp_path: Path) -> None:
    with journal(tmp_path) as one:
        for package in (SHOP, "default.sho", "default.shopping"):
            for operation in (UPDATE, RECONCILIATION):
                one.begin(package, operation, "f")
                one.start(package, operation, "a")
        one.forget(SHOP)
        one.forget("nobody")
    with journal(tmp_path) as two:
        assert {entry.package for entry in two.entries()} == {"default.sho", "default.shopping"}


def test_a_removal_forgets_running_operations(tmp_path: Path) -> None:
    with journal(tmp_path) as one:
        one.begin(SHOP, UPDATE, "f")
        one.start(SHOP, UPDATE, "Download")
        one.begin(SHOP, REMOVAL, "")
        one.start(SHOP, REMOVAL, "Uninstall")
        one.complete(SHOP, UPDATE, "Download")
        assert [entry.operation for entry in one.entries()] == [REMOVAL]
    with journal(tmp_path) as two:
        assert [entry.operation for entry in two.entries()] == [REMOVAL]


def test_a_journal_in_memory_is_not_seen_by_the_next_process() -> None:
    one = Journal(None)
    one.begin(SHOP, UPDATE, "f")
    one.start(SHOP, UPDATE, "Download")
    one.complete(SHOP, UPDATE, "Download", "x")
    assert one.completed(SHOP, UPDATE, "Download") == "x"
    one.finish(SHOP, UPDATE)
    assert one.entries() == Journal(None).entries() == ()


def test_a_step_that_cannot_be_written_is_not_complete(tmp_path: Path) -> None:
    file = JournalFile(tmp_path / "journal.db")
    one = Journal(file)
    one.begin(SHOP, UPDATE, "f")
    one.start(SHOP, UPDATE, "Download")
    file.close()
    before = one.entries()
    with pytest.raises(JournalError, match=r"default.shop: the journal .* cannot be written") as caught:
        one.complete(SHOP, UPDATE, "Download")
    assert caught.value.transient
    assert one.completed(SHOP, UPDATE, "Download") is None
    with pytest.raises(JournalError):
        one.begin(SHOP, REMOVAL, "")
    assert one.entries() == before
    with pytest.raises(JournalError, match="cannot be opened"):
        Journal(file)


def test_a_damaged_journal_fails_one_step_and_continues(tmp_path: Path) -> None:
    """This process still knows the steps completed earlier. The next process does not, and repeats them."""
    with closing(JournalFile(tmp_path / "journal.db")) as file:
        one = Journal(file)
        one.begin(SHOP, UPDATE, "f")
        one.start(SHOP, UPDATE, "Download")
        one.complete(SHOP, UPDATE, "Download")
        one.start(SHOP, UPDATE, "Install")
        altered(tmp_path, "DROP TABLE operation_steps")
        with pytest.raises(JournalError, match="retry the call") as caught:
            one.complete(SHOP, UPDATE, "Install")
        assert caught.value.transient
        one.complete(SHOP, UPDATE, "Install")
        assert one.completed(SHOP, UPDATE, "Download") is not None
    with journal(tmp_path) as two:
        two.begin(SHOP, UPDATE, "f")
        assert (two.completed(SHOP, UPDATE, "Download"), two.completed(SHOP, UPDATE, "Install")) == (None, "")


def test_a_result_that_is_too_long_is_a_permanent_error() -> None:
    one = Journal(None)
    one.begin(SHOP, UPDATE, "f")
    one.start(SHOP, UPDATE, "Download")
    with pytest.raises(JournalError, match=r"default.shop: the result of step 'Download'") as caught:
        one.complete(SHOP, UPDATE, "Download", "x" * (MAX_RESULT + 1))
    assert not caught.value.transient


def test_an_altered_row_makes_every_operation_start_again(tmp_path: Path) -> None:
    """One altered row shows that the disk cannot be trusted, so no step is skipped."""
    with journal(tmp_path) as one:
        for package in (SHOP, "default.other"):
            one.begin(package, UPDATE, "f")
            one.start(package, UPDATE, "Download")
            one.complete(package, UPDATE, "Download")
    altered(tmp_path, "UPDATE operation_steps SET step = 'Install' WHERE package = 'default.shop'")
    with closing(JournalFile(tmp_path / "journal.db")) as file:
        assert Journal(file).entries() == ()
        (warning,) = file.warnings
        assert "interrupted operations begin from the first step" in warning
    with journal(tmp_path) as two:
        assert two.entries() == ()


def of_another_boot(folder: Path, *operations: Operation) -> None:
    """Change the rows of these operations as if the machine had been rebooted after they were written."""
    with closing(JournalFile(folder / "journal.db")) as file:
        table = file.table(OPERATION_STEPS)
        rows = [row for row in table.rows() if row[1] in operations]
        assert rows
        table.write((), [(*row[:-1], "another-boot") for row in rows])


def test_steps_before_a_reboot_are_not_complete(tmp_path: Path) -> None:
    """A power cut may lose the last rows of the journal. So a step that a remaining row records as complete may have been
    undone by work whose row is lost.
    """
    with closing(JournalFile(tmp_path / "journal.db")) as file:
        one = Journal(file)
        one.begin(SHOP, RECONCILIATION, "f")
        one.start(SHOP, RECONCILIATION, "apply/1")
        one.complete(SHOP, RECONCILIATION, "apply/1", "7 sum")
        disk = tmp_path / "disk"
        disk.mkdir()
        for name in ("journal.db", "journal.db-wal"):  # the later writes did not reach the disk
            shutil.copy(tmp_path / name, disk / name)
        one.begin(SHOP, DISABLE, "x")
        one.start(SHOP, DISABLE, "uninstall")
        one.complete(SHOP, DISABLE, "uninstall")
    of_another_boot(disk, RECONCILIATION)
    with journal(disk) as two:
        assert two.entries() == ()
        two.begin(SHOP, RECONCILIATION, "f")
        assert two.completed(SHOP, RECONCILIATION, "apply/1") is None
        two.start(SHOP, RECONCILIATION, "Download")
        two.complete(SHOP, RECONCILIATION, "Download")
    with journal(disk) as three:  # no row from before the reboot is written again
        assert [(entry.completed, entry.interrupted) for entry in three.entries()] == [(("Download",), ())]


def test_only_operations_since_the_last_boot_are_resumed(tmp_path: Path) -> None:
    with journal(tmp_path) as one:
        for operation in (UPDATE, RECONCILIATION):
            one.begin(SHOP, operation, "f")
            one.start(SHOP, operation, "a")
            one.complete(SHOP, operation, "a")
    of_another_boot(tmp_path, RECONCILIATION)
    with journal(tmp_path) as two:
        assert [entry.operation for entry in two.entries()] == [UPDATE]
        two.begin(SHOP, UPDATE, "f")
        assert two.completed(SHOP, UPDATE, "a") == ""
    with closing(JournalFile(tmp_path / "journal.db")) as file:
        assert [(row[1], row[-1]) for row in file.table(OPERATION_STEPS).rows()] == [("update", boot_id())]


def test_rows_of_the_first_version_are_ignored(tmp_path: Path) -> None:
    columns = {name: kind for name, kind in OPERATION_STEPS.columns.items() if name != "boot"}
    first = replace(OPERATION_STEPS, version=1, columns=columns, migrations={})
    with closing(JournalFile(tmp_path / "journal.db")) as file:
        file.table(first).put((SHOP, "update", "Download", "f", 1, 1, ""))
    with journal(tmp_path) as one:
        assert one.entries() == ()
        one.begin(SHOP, UPDATE, "f")
        assert one.completed(SHOP, UPDATE, "Download") is None


def test_a_step_can_be_repeated_after_the_journal_was_locked(tmp_path: Path) -> None:
    with journal(tmp_path) as one, closing(sqlite3.connect(tmp_path / "journal.db", isolation_level=None)) as other:
        one.begin(SHOP, UPDATE, "f")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalError, match="locked") as caught:
            one.start(SHOP, UPDATE, "Download")
        assert caught.value.transient
        assert not classify(caught.value).permanent
        other.execute("ROLLBACK")
        one.start(SHOP, UPDATE, "Download")
        one.complete(SHOP, UPDATE, "Download")
        assert one.completed(SHOP, UPDATE, "Download") == ""


@pytest.mark.slow
async def test_a_package_is_retried_while_its_steps_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    async with open_ground(tmp_path) as ground:
        with (
            closing(JournalFile(tmp_path / "journal" / "journal.db")) as file,
            closing(sqlite3.connect(file.path, isolation_level=None)) as other,
        ):
            async with replace(ground, journal=Journal(file), backoff=SOON).open_world() as world:
                await world.repository()
                await world.push("web", "1.0.0")
                other.execute("BEGIN IMMEDIATE")
                await world.create("prod", "shop")
                await world.until(
                    "prod", "shop", lambda obj: find_str(obj, "status", "summary", "message").count("locked") == 1
                )
                other.execute("ROLLBACK")
                await world.until_state("prod", "shop", "Ready")
                assert file.warnings == ()


def test_the_table_of_steps_has_its_documented_form() -> None:
    """A change of the columns needs a new version of the table, and a migration of old rows."""
    assert OPERATION_STEPS.version == 2
    assert OPERATION_STEPS.checksum(("p", "update", "s", "f", 1, 1, "r", "b")) == "9d28341f52e674e3169ad429c5929d8e"
    assert [operation.value for operation in Operation] == ["update", "reconciliation", "disable", "removal"]


WRITER = """
import sys
from pathlib import Path
from wharfinger.formats.json.value import find_str
from wharfinger.process.journal_file import JournalFile
from wharfinger.runtime.lifecycle.journal import Journal, Operation

journal = Journal(JournalFile(Path(sys.argv[1])))
number = 0
for lap in range(1000):
    journal.begin("p", Operation.UPDATE, "f")
    for step in range(10):
        number += 2
        if journal.completed("p", Operation.UPDATE, str(step)) is None:
            journal.start("p", Operation.UPDATE, str(step))
            sys.stdout.write(f"{number - 1}\\n")
            sys.stdout.flush()
            journal.complete("p", Operation.UPDATE, str(step), str(lap))
            sys.stdout.write(f"{number}\\n")
            sys.stdout.flush()
    journal.finish("p", Operation.UPDATE)
"""


@pytest.mark.slow
@pytest.mark.unmeasured
def test_after_kill_9_exactly_the_reported_steps_are_complete(tmp_path: Path) -> None:
    """Each writer first continues the operation of the previous writer, which was killed. All writers report their progress."""
    chance = random.Random(5)  # noqa: S311 - how much is written before the end; no secret
    for _ in range(scaled(200, 8)):
        said = acknowledged(killed_at_random(WRITER, [str(tmp_path / "journal.db")], chance))
        with journal(tmp_path) as found:
            entries = found.entries()
            done = len(entries[0].completed) if entries else 0
            flying = len(entries[0].interrupted) if entries else 0
            answered, in_flight = divmod(said % 20, 2)
            # If the process was killed before it reported a call, this call may have returned, or be half done.
            allowed = {(answered, in_flight), (answered + in_flight, 1 - in_flight)}
            if answered == 0 and in_flight == 0:
                allowed |= {(10, 0), (0, 0)}  # the last finish may have happened or not
            assert (done, flying) in allowed, (said, done, flying)
            found.begin("p", UPDATE, "f")
            assert [found.completed("p", UPDATE, str(step)) is not None for step in range(10)] == [
                step < done for step in range(10)
            ]
