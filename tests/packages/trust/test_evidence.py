"""Signatures and statements of an artifact: their bytes are not printed."""

from wharfinger.packages.trust.evidence import Signature


def test_bytes_of_a_signature_are_not_printed() -> None:
    assert repr(Signature(b"payload", b"signature", "certificate", "chain")) == (
        "Signature(entry=None, envelope=None, problem='')"
    )
