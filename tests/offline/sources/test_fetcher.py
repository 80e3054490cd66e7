"""Errors of sources say whether another attempt can help."""

from wharfinger.offline.sources.fetcher import OfflineError, SourceError


def test_errors_are_permanent_unless_they_say_otherwise() -> None:
    assert not SourceError("x").transient
    assert SourceError("x", transient=True).transient
    assert not OfflineError("https://x", "registry").transient
