"""Errors of sources, each of which is transient or permanent."""

from wharfinger.offline.sources.fetcher import OfflineError, SourceError


def test_errors_are_permanent_by_default() -> None:
    assert not SourceError("x").transient
    assert SourceError("x", transient=True).transient
    assert not OfflineError("https://x", "registry").transient
