"""Stamps, which are labels that identify the inputs of a revision. Only stamps that the daemon wrote count."""

import pytest

from wharfinger.cluster.records.release import STAMP_LABEL, Release, ReleaseStatus
from wharfinger.formats.json.value import checksum
from wharfinger.runtime.lifecycle.applied_stamp import newest_stamp, stamp_of

DEPLOYED, SUPERSEDED, FAILED = ReleaseStatus.DEPLOYED, ReleaseStatus.SUPERSEDED, ReleaseStatus.FAILED
STAMP = stamp_of(checksum("inputs"), checksum("values"))


def revision(number: int, status: ReleaseStatus, label: str = "", *, ours: bool = True) -> Release:
    document = {"name": "web", "namespace": "prod", "version": number, "info": {"status": str(status)}}
    return Release(document, {STAMP_LABEL: label} if label else {}, "wharfinger" if ours else "")  # type: ignore[arg-type]


def test_a_stamp_fits_into_a_label() -> None:
    assert len(f"{10**8}.{STAMP}") <= 63
    assert stamp_of(checksum("values"), checksum("inputs")) != STAMP


@pytest.mark.parametrize(
    ("history", "newest"),
    [
        ([], (0, "")),
        ([revision(1, DEPLOYED, f"1.{STAMP}")], (1, STAMP)),
        ([revision(1, SUPERSEDED, f"1.{STAMP}"), revision(2, DEPLOYED, "2.b.c")], (2, "b.c")),
        # The failed revision was not applied completely.
        ([revision(1, DEPLOYED, f"1.{STAMP}"), revision(2, FAILED, "2.b.c")], (1, STAMP)),
        # In a user's rollback, Helm copied the label to the new revision, and rewrote the daemon's record without its holder.
        (
            [revision(1, SUPERSEDED, f"1.{STAMP}", ours=False), revision(2, DEPLOYED, f"1.{STAMP}", ours=False)],
            (1, STAMP),
        ),
        # A daemon made the last revision without a stamp: it was an older daemon, or it wrote the state instead.
        ([revision(1, SUPERSEDED, f"1.{STAMP}"), revision(2, DEPLOYED)], (0, "")),
        ([revision(1, DEPLOYED, "no number")], (0, "")),
    ],
)
def test_the_newest_stamp_of_the_daemon_counts(history: list[Release], newest: tuple[int, str]) -> None:
    assert newest_stamp(history) == newest
