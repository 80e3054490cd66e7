"""The payload that cosign signs, which names the artifact."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.packages.digest import Digest, digest_of
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.trust.claims import Claim, read_claim, write_claim

DIGEST = digest_of(b"artifact")
OF_COSIGN = (
    '{"critical":{"identity":{"docker-reference":"registry.example/web"},"image":{"docker-manifest-digest":"'
    f'{DIGEST}"}},"type":"cosign container image signature"}},"optional":null}}'
)
"""The payload that `cosign sign` makes."""


def test_a_payload_of_cosign_is_read_and_written() -> None:
    assert read_claim(OF_COSIGN.encode()) == Claim(DIGEST, "registry.example/web")
    assert write_claim(Claim(DIGEST, "registry.example/web")) == OF_COSIGN.encode()


@given(st.text(max_size=20), st.text(max_size=20), st.binary(max_size=5))
def test_a_written_claim_is_read_back(reference: str, version: str, content: bytes) -> None:
    claim = Claim(digest_of(content), reference, version)
    assert read_claim(write_claim(claim)) == claim


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[]",
        b"{}",
        b'{"critical":[]}',
        OF_COSIGN.replace("cosign container image signature", "something else").encode(),
        OF_COSIGN.replace("sha256:", "md5:").encode(),
        OF_COSIGN.replace("null", "[]").encode(),
    ],
)
def test_other_payloads_are_refused(payload: bytes) -> None:
    with pytest.raises(ArtifactError, match="the signed payload"):
        read_claim(payload)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_as_a_claim_or_refused(payload: bytes) -> None:
    with suppress(ArtifactError):
        assert isinstance(read_claim(payload).digest, Digest)
