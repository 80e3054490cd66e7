"""``wharfinger replay``, and the commands ``history`` and ``why --at`` with a recording on disk. All of them work offline."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, encode_json
from wharfinger.formats.listing import counted
from wharfinger.formats.option_values import path_option
from wharfinger.formats.terminal_text import printable
from wharfinger.kube.times import format_exact_time
from wharfinger.runtime.inspector import HistorySnapshot
from wharfinger.runtime.recording.canonical import as_bytes
from wharfinger.runtime.recording.history import recorded_history
from wharfinger.runtime.recording.past_explanation import explain_recorded
from wharfinger.runtime.recording.record import GapRecord, Record
from wharfinger.runtime.recording.recordings import RecordingError, Unread, read_recording
from wharfinger.runtime.recording.replay import Difference, Replay
from wharfinger.runtime.scheduler_details import ExplanationSnapshot

MOST_DIFFERENCES = 20
"""The limit on the number of differences that are printed."""


def add_replay(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `wharfinger replay FILE|DIR`."""
    parser.description = (
        "Replay the state machines of packages from a recording, which `wharfinger run --flight-recorder DIR` writes. "
        "Compare every state, and every effect (an action that a state machine requests), with the recorded ones. Neither a "
        "daemon nor a cluster is needed. Exit code 0: all states and effects are identical; 1: a state or an effect differs, "
        "or the recording is damaged, has no events, or cannot be read."
    )
    parser.add_argument(
        "path", type=path_option, metavar="FILE|DIR", help="one file of the recording, or the folder with all its files"
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="text (default) or json")
    parser.set_defaults(handler=_replay)


def _replay(args: argparse.Namespace) -> int:
    path = cast("Path", args.path)
    replay, differences, unread, gaps = Replay(), list[Difference](), list[Unread](), 0
    try:
        for each in read_recording(path):
            if isinstance(each, Unread):
                unread.append(each)
                continue
            if len(unread) > gaps:
                gaps = len(unread)
                replay.take(_gap_before(each))
            if (difference := replay.take(each)) is not None:
                differences.append(difference)
    except (RecordingError, FormatError) as error:
        sys.stderr.write(f"error: {printable(str(error))}\n")
        return 1
    damaged = [each for each in unread if each.damaged]
    if args.output == "json":
        text = encode_json(_document(replay, differences, unread)).decode() + "\n"
    else:
        text = "".join(f"{printable(line)}\n" for line in _lines(replay, differences, unread))
    sys.stdout.write(text)
    return 1 if differences or damaged or not replay.events else 0


def history_from(path: Path, name: str) -> HistorySnapshot | None:
    """Return the events of a package in a recording; None if it has no events of the package. Raises RecordingError."""
    with _readable(path):
        return recorded_history(_records(path), name)


def explanation_from(path: Path, name: str, at: datetime) -> ExplanationSnapshot | None:
    """Explain the state of a package at a time from a recording; return None if the recording does not reach back so far.
    Raises RecordingError.
    """
    with _readable(path):
        return explain_recorded(_records(path), name, at)


def _records(path: Path) -> Iterator[Record]:
    """Yield the readable records. In place of unreadable records, yield the record of a gap."""
    is_gap = False
    for each in read_recording(path):
        if isinstance(each, Unread):
            is_gap = True
            continue
        if is_gap:
            is_gap = False
            yield _gap_before(each)
        yield each


def _gap_before(record: Record) -> GapRecord:
    """Return a GapRecord of unknown size, to be inserted before ``record``. At a gap, a replay forgets the states of all state
    machines, so no machine continues from a record before the gap.
    """
    return GapRecord(0, record.time, 0)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Run the block. If it fails because a record has the form of another version, raise a RecordingError instead."""
    try:
        yield
    except FormatError as error:
        raise RecordingError(f"{path}: {error}; was it written by another version of wharfinger?") from error


def _lines(replay: Replay, differences: list[Difference], unread: list[Unread]) -> Iterator[str]:
    for each in unread:
        yield f"{each.path.name}: not read from byte {each.offset}: {each.problem}"
    if replay.lost:
        yield f"{replay.lost} records were lost while the daemon recorded"
    for difference in differences[:MOST_DIFFERENCES]:
        event = as_bytes(difference.event).decode("utf-8", "replace")
        subject = f"{difference.machine} {difference.key}".rstrip()
        yield f"event {difference.number} ({_time(difference.time)}), {subject}: {event[:300]}"
        yield f"  {difference.what} differs"
        yield f"  recorded: {difference.recorded}"
        yield f"  replayed: {difference.replayed}"
    if len(differences) > MOST_DIFFERENCES:
        yield f"{len(differences) - MOST_DIFFERENCES} more differences"
    verdict = (
        f"{len(differences)} differ"
        if differences
        else "identical"
        if replay.events
        else "the recording has no events to replay"
    )
    yield f"{counted(replay.events, 'event')} of {counted(len(replay.packages - {''}), 'package')}: {verdict}"


def _document(replay: Replay, differences: list[Difference], unread: list[Unread]) -> JsonObject:
    return {
        "events": replay.events,
        "packages": len(replay.packages - {""}),
        "lost": replay.lost,
        "identical": not differences,
        "differences": [
            {
                "event": each.number,
                "time": _time(each.time),
                "machine": each.machine,
                "key": each.key,
                "what": each.what,
                "recorded": each.recorded,
                "replayed": each.replayed,
            }
            for each in differences
        ],
        "unread": [
            {"file": each.path.name, "offset": each.offset, "problem": each.problem, "damaged": each.damaged}
            for each in unread
        ],
    }


def _time(seconds: float) -> str:
    return format_exact_time(datetime.fromtimestamp(seconds, UTC))
