"""The values that describe signatures and statements of an artifact. Their ``repr`` does not contain the signed bytes."""

from wharfinger.packages.trust.evidence import Signature


def test_bytes_of_a_signature_are_not_printed() -> None:
    assert repr(Signature(b"payload", b"signature", "certificate", "chain")) == (
        "Signature(entry=None, envelope=None, problem='')"
    )
