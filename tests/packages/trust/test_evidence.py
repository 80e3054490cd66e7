"""What was found beside an artifact: its bytes are in no message."""

from wharfinger.packages.trust.evidence import Signature


def test_bytes_are_not_shown() -> None:
    assert repr(Signature(b"payload", b"signature", "certificate", "chain")) == (
        "Signature(entry=None, envelope=None, problem='')"
    )
