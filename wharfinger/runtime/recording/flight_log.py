"""The flight recorder's log on disk: ``--flight-recorder DIR``.

The event loop appends records to a list, and a thread writes them a moment later (WRITE_EVERY_S) as one frame, so recording
never waits for the disk. The files are ``flight-00000001.log`` and so on (:mod:`wharfinger.runtime.recording.log_file`). They
have mode 0600; the folder is made with mode 0700 if it does not exist. A file is closed when it is full, and the oldest files
are deleted, so that all files together stay within ``max_bytes``. Each file can be replayed alone, because the first record of
a state machine in a file has the whole state.

If the disk is full, or too slow, records are lost, and the daemon continues. Lost records are counted in the metrics. After a
failed write, the log pauses for RETRY_S seconds. Only the first failed write is logged, until a write succeeds again. After a
loss, the log begins a new file; the record of the gap follows directly after the head of that file. The log does not call fsync:
a crash of the daemon loses the records that are not written yet, and a crash of the machine may lose more.
"""

import logging
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import trio

import wharfinger
from wharfinger.runtime.recording.log_file import MAGIC, file_name, file_number, frame_head
from wharfinger.runtime.recording.record import FORMAT, GapRecord, HeadRecord, Lines, encoded

log = logging.getLogger(__name__)

FILES: Final = 8
"""The number of files into which the size of the log is divided."""
DEFAULT_BYTES: Final = 64 * 1024 * 1024
WRITE_EVERY_S: Final = 0.2
RETRY_S: Final = 30.0
LAST_S: Final = 5.0
"""The time limit for the last write when the daemon stops."""
MOST_PENDING: Final = 32 * 1024 * 1024
"""The limit on the bytes that wait to be written."""
_DIRECTORY_MODE: Final = 0o700
_FILE_MODE: Final = 0o600


@dataclass(slots=True)
class LogCounters:
    """The numbers of records and bytes that were written since the start, and of records that were lost. ``failing`` is True
    while writes fail.
    """

    records: int = 0
    bytes: int = 0
    lost: int = 0
    failing: bool = False


@dataclass(frozen=True, slots=True)
class _Begin:
    """The mark that a new file begins. ``first`` are the first records of the file: its head and, if records were lost before
    the file, a record of the gap. ``lost`` is the number of the lost records.
    """

    number: int
    first: tuple[bytes, ...]
    lost: int


_Pending = Lines | Callable[[], bytes] | _Begin


@dataclass(slots=True)
class _Disk:
    """The files of the log. They are used in only one thread at a time."""

    folder: Path
    max_bytes: int
    descriptor: int = -1
    unmade: int = 0
    """The number of deferred records whose functions failed during the last call of `write`, so that these records are lost."""
    _room: int = 0
    """The bytes that can be written before the oldest file has to be deleted."""

    def prepare(self) -> int:
        """Make the folder, and return the number of the last file in it; 0 if there is none. Raises OSError."""
        try:
            self.folder.mkdir(mode=_DIRECTORY_MODE, parents=True)
        except FileExistsError:  # the folder keeps its mode, because only the daemon's user can read the files in it
            if not self.folder.is_dir():
                raise NotADirectoryError(f"{self.folder}: not a folder") from None
        return max((number for number, _ in self._files()), default=0)

    def write(self, pending: list[_Pending]) -> int:
        """Write the records in order, with all records for one file in one frame, and return the number of bytes. Raises
        OSError.
        """
        parts, written, self.unmade = list[bytes](), 0, 0
        for item in pending:
            if isinstance(item, _Begin):
                written += self._flush(parts)
                self._begin(item.number)
                written += self._write(MAGIC)
                parts += [b"%s\n" % record for record in item.first]
            else:
                parts.append(item.data if isinstance(item, Lines) else self._made(item))
        written += self._flush(parts)
        self._room -= written
        if self._room < 0:  # the size of deferred records is known only now
            self._delete_oldest(self.max_bytes)
        return written

    def close(self) -> None:
        """Close the current file."""
        if self.descriptor >= 0:
            descriptor, self.descriptor = self.descriptor, -1
            os.close(descriptor)

    def _made(self, make: Callable[[], bytes]) -> bytes:
        """Make and return a deferred record; return no bytes if that fails, because the recorder must never stop the daemon."""
        try:
            return b"%s\n" % make()
        except Exception:
            if not self.unmade:
                log.exception("a record of the flight recorder cannot be made; it is lost")
            self.unmade += 1
            return b""

    def _flush(self, parts: list[bytes]) -> int:
        """Write the parts as one frame."""
        if not any(parts):
            return 0
        written = sum(self._write(data) for data in (frame_head(parts), *parts) if data)
        parts.clear()
        return written

    def _write(self, data: bytes) -> int:
        written = 0
        with memoryview(data) as view:
            while written < len(view):
                written += os.write(self.descriptor, view[written:])
        return written

    def _begin(self, number: int) -> None:
        self.close()
        path = self.folder / file_name(number)
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, _FILE_MODE)
        self._delete_oldest(self.max_bytes - self.max_bytes // FILES)

    def _delete_oldest(self, room: int) -> None:
        """Delete the oldest files until the remaining files fit into ``room`` bytes. Also delete empty files, which a failed
        write has left.
        """
        files = sorted(self._files())
        sizes = {path: path.stat().st_size for _, path in files}
        for _, path in files[:-1]:
            if sizes[path] and sum(sizes.values()) <= room:
                continue
            with suppress(FileNotFoundError):
                path.unlink()
            del sizes[path]
        self._room = self.max_bytes - sum(sizes.values())

    def _files(self) -> list[tuple[int, Path]]:
        found = ((file_number(path.name), path) for path in self.folder.iterdir())
        return [(number, path) for number, path in found if number is not None]


@dataclass(slots=True)
class FlightLog:
    """The log of one daemon. Use `open_flight_log`."""

    disk: _Disk
    file: int
    """The number of the file that the next record will be in."""
    now: Callable[[], float]
    counters: LogCounters = field(default_factory=LogCounters)
    _expected: set[Callable[[], None]] = field(default_factory=set)
    _pending: list[_Pending] = field(default_factory=list)
    _pending_bytes: int = 0
    _in_file: int = 0
    _first: bool = True
    _lost: int = 0
    """The number of records lost since the last file began."""
    _broken: bool = False
    _wake: trio.Event = field(default_factory=trio.Event)
    _stopping: trio.Event = field(default_factory=trio.Event)
    _scope: trio.CancelScope = field(default_factory=lambda: trio.CancelScope(shield=True))

    def expect(self, drain: Callable[[], None]) -> None:
        """Plan a write, and call ``drain`` once before it; ``drain`` appends the records to be written."""
        self._expected.add(drain)
        self._wake.set()

    def append(self, *records: Lines | Callable[[], bytes]) -> None:
        """Write records soon, all to one file. Instead of a record, a function that returns the record may be passed; it is
        called in another thread at the time of the write.

        Never waits, never raises.
        """
        if self._broken or self._lost or self._pending_bytes > MOST_PENDING:
            self._lose(_records(records))
            return
        size = sum(len(record.data) for record in records if isinstance(record, Lines))
        self._pending += records
        self._pending_bytes += size
        self._in_file += size
        self._wake.set()
        if self._in_file >= self.disk.max_bytes // FILES:
            self.begin_file()

    def begin_file(self) -> None:
        """Begin the next file with its head and, if records were lost, with the record of a gap."""
        self.file += 1
        moment = round(self.now(), 6)
        head = HeadRecord(0, moment, FORMAT, wharfinger.__version__, os.getpid(), self._first)
        gap = (encoded(GapRecord(0, moment, self._lost)),) if self._lost else ()
        self._pending.append(_Begin(self.file, (encoded(head), *gap), self._lost))
        self._first, self._lost, self._in_file = False, 0, 0
        self._wake.set()

    async def run(self) -> None:
        """Write pending records repeatedly until `stop`, and then the remaining ones."""
        with self._scope:
            while not self._stopping.is_set():
                await self._wake.wait()
                await self._pause(WRITE_EVERY_S)
                await self.flush()
                if self._broken:
                    await self._pause(RETRY_S)
                self.recover()
            await self.flush()
        self.disk.close()

    def recover(self) -> None:
        """Make it possible to write records again. If records were lost, the next records go to a new file."""
        self._broken = False
        if self._lost:
            self.begin_file()

    def stop(self) -> None:
        """Make `run` write the pending records, for at most LAST_S, and end."""
        self._scope.deadline = trio.current_time() + LAST_S
        self._stopping.set()
        self._wake.set()

    async def _pause(self, seconds: float) -> None:
        with trio.move_on_after(seconds):
            await self._stopping.wait()

    async def flush(self) -> None:
        """Write all pending records."""
        expected, self._expected = self._expected, set()
        for drain in expected:
            drain()
        pending, self._pending = self._pending, []
        self._pending_bytes, self._wake = 0, trio.Event()
        if not pending:
            return
        try:
            self.counters.bytes += await trio.to_thread.run_sync(self.disk.write, pending, abandon_on_cancel=True)
        except OSError as error:
            self._fail(error, pending)
        else:
            self.counters.records += _records(pending) - self.disk.unmade
            self.counters.lost += self.disk.unmade
            if self.counters.failing:
                self.counters.failing = False
                log.info("the flight recorder writes again, to %s", self.disk.folder)

    def _fail(self, error: OSError, unwritten: list[_Pending]) -> None:
        if not self.counters.failing:
            log.warning(
                "the flight recorder cannot write to %s: %s; records are lost until it can write again, and the daemon continues",
                self.disk.folder,
                error.strerror or error,
            )
        self.counters.failing = self._broken = True
        self.disk.close()
        unwritten += self._pending
        self._lose(_records(unwritten))
        self._lost += sum(
            item.lost for item in unwritten if isinstance(item, _Begin)
        )  # these lost records are already counted
        self._pending, self._pending_bytes = [], 0

    def _lose(self, records: int) -> None:
        self.counters.lost += records
        self._lost += records


def _records(pending: Sequence[_Pending]) -> int:
    counts = (item.records if isinstance(item, Lines) else not isinstance(item, _Begin) for item in pending)
    return sum(counts)


async def prepared(folder: Path, now: Callable[[], float], max_bytes: int) -> FlightLog:
    """Return a log that has begun its first file, and that writes only when `flush` is called. Raises OSError."""
    disk = _Disk(folder, max_bytes)
    flight_log = FlightLog(disk, await trio.to_thread.run_sync(disk.prepare), now)
    flight_log.begin_file()
    return flight_log


@asynccontextmanager
async def open_flight_log(
    folder: Path, now: Callable[[], float], *, max_bytes: int = DEFAULT_BYTES
) -> AsyncGenerator[FlightLog, None]:
    """Write a log to a folder while the body runs. Raises OSError if the folder cannot be used."""
    flight_log = await prepared(folder, now, max_bytes)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(flight_log.run, name="flight recorder")
        try:
            yield flight_log
        finally:
            flight_log.stop()
