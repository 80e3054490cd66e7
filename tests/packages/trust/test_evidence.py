"""Signatures and statements of an artifact, whose bytes are never printed."""

from wharfinger.packages.trust.evidence import Signature


def test_bytes_of_a_signature_are_not_printed() -> None:
    assert repr(Signature(b"payload", b"signature", "certificate", "chain")) == (
        "Signature(entry=None, envelope=None, problem='')"
    )
