"""The metrics of the recorder, with a log and without one."""

from pathlib import Path

from tests.runtime.support.recorded import Story
from wharfinger.runtime.inspection.recorder_metrics import RECORDER_METRICS, recorder_families
from wharfinger.runtime.recording.flight_log import DEFAULT_BYTES, prepared


async def test_stored_and_written_events_are_counted(tmp_path: Path) -> None:
    log = await prepared(tmp_path, lambda: 0.0, DEFAULT_BYTES)
    recorder = Story(1, log=log).tell(20).recorder
    await log.flush()
    log.disk.close()
    families = list(recorder_families(recorder, log))
    assert tuple(described for described, _ in families) == RECORDER_METRICS
    found = {described.name: rows[0][1] for described, rows in families}
    assert found["wharfinger_recorder_events_total"] == recorder.records > 0
    assert found["wharfinger_recorder_kept_events"] > 0
    assert found["wharfinger_flight_recorder_written_bytes_total"] == sum(
        file.stat().st_size for file in tmp_path.iterdir()
    )
    assert found["wharfinger_flight_recorder_lost_total"] == found["wharfinger_flight_recorder_failing"] == 0


def test_without_a_log_only_stored_events_are_counted() -> None:
    families = list(recorder_families(Story(1).recorder, None))
    assert tuple(described for described, _ in families) == RECORDER_METRICS[:3]
