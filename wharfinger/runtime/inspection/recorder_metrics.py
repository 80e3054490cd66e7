"""The metrics of the flight recorder: about the events in memory, and about the log on disk."""

from collections.abc import Iterator
from typing import Final

from wharfinger.formats.exposition import Description, MetricKind
from wharfinger.runtime.recording.flight_log import FlightLog
from wharfinger.runtime.recording.recorder import Recorder

KEPT: Final = Description(
    "wharfinger_recorder_kept_events", MetricKind.GAUGE, "Number of events of the history that are kept in memory.", ()
)
EVENTS: Final = Description(
    "wharfinger_recorder_events_total",
    MetricKind.COUNTER,
    "Number of events that the daemon recorded for its history.",
    (),
)
FAILURES: Final = Description(
    "wharfinger_recorder_failures_total",
    MetricKind.COUNTER,
    "Number of events that are missing in the history because of a bug in the recorder.",
    (),
)
WRITTEN: Final = Description(
    "wharfinger_flight_recorder_written_bytes_total",
    MetricKind.COUNTER,
    "Number of bytes that were written to the log of --flight-recorder.",
    (),
)
LOST: Final = Description(
    "wharfinger_flight_recorder_lost_total",
    MetricKind.COUNTER,
    "Number of records that are missing in the log of --flight-recorder, for example because the disk was full or too slow.",
    (),
)
FAILING: Final = Description(
    "wharfinger_flight_recorder_failing",
    MetricKind.GAUGE,
    "1 while the log of --flight-recorder cannot be written, otherwise 0.",
    (),
)

RECORDER_METRICS: Final = (KEPT, EVENTS, FAILURES, WRITTEN, LOST, FAILING)

_Rows = tuple[tuple[tuple[str, ...], float], ...]


def recorder_families(recorder: Recorder, flight_log: FlightLog | None) -> Iterator[tuple[Description, _Rows]]:
    """Yield the families of metrics about the flight recorder. The families about its log are included only if it writes a
    log.
    """
    yield KEPT, (((), recorder.rings.count()),)
    yield EVENTS, (((), recorder.records),)
    yield FAILURES, (((), recorder.failures),)
    if flight_log is not None:
        counters = flight_log.counters
        yield WRITTEN, (((), counters.bytes),)
        yield LOST, (((), counters.lost),)
        yield FAILING, (((), float(counters.failing)),)
