"""The verification of signatures. If no signature is valid, the refusal is about the signature that passed the most checks, and
names the rule on which it failed.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.packages.support.signing import KEY, OTHER, POLICY
from wharfinger.packages.digest import digest_of
from wharfinger.packages.trust.claims import Claim, write_claim
from wharfinger.packages.trust.evidence import Signature
from wharfinger.packages.trust.keys import Signing, sign
from wharfinger.packages.trust.verification import Subject, refusal

DIGEST = digest_of(b"artifact")


def signature(claim: Claim, key: Signing = KEY) -> Signature:
    payload = write_claim(claim)
    return Signature(payload, sign(key, payload))


@pytest.mark.parametrize(
    ("signed", "stated", "requested"),
    [
        ("1.0.0", "", "1.0.0"),
        ("v1.0.0", "", "1.0.0"),
        ("", "1.0.0", "v1.0.0"),
        ("1.0.0_b", "", "1.0.0+b"),
        ("", "", ""),
    ],
)
def test_versions_are_compared_regardless_of_spelling(signed: str, stated: str, requested: str) -> None:
    subject = Subject(DIGEST, "web", requested, stated)
    assert refusal([signature(Claim(DIGEST, "r.example/a/web", signed))], subject, POLICY) == ""


def test_the_version_in_the_signature_wins_over_the_manifest() -> None:
    subject = Subject(DIGEST, "web", "2.0.0", "2.0.0")
    assert "is for version 1.0.0, but 2.0.0" in refusal([signature(Claim(DIGEST, "", "1.0.0"))], subject, POLICY)


def test_one_valid_signature_among_others_is_sufficient() -> None:
    subject = Subject(DIGEST, "web", "1.0.0")
    others = [signature(Claim(DIGEST, "", "1.0.0"), OTHER), signature(Claim(digest_of(b"x"), "", "1.0.0"))]
    assert "not for this artifact" in refusal(others, subject, POLICY)
    assert refusal([*others, signature(Claim(DIGEST, "", "1.0.0"))], subject, POLICY) == ""


def test_a_payload_that_is_not_a_claim_is_refused() -> None:
    found = refusal([Signature(b"{}", sign(KEY, b"{}"))], Subject(DIGEST, "web", "1.0.0"), POLICY)
    assert "the signed payload is of type" in found


@given(st.binary(max_size=80), st.binary(max_size=80))
def test_arbitrary_signatures_are_not_trusted(payload: bytes, signed: bytes) -> None:
    assert refusal([Signature(payload, signed)], Subject(DIGEST, "web", "1.0.0"), POLICY)
