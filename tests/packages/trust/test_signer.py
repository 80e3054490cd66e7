"""A signer whose key is read from a file."""

import pytest

from tests.packages.support.signing import KEY, private_pem
from wharfinger.packages.trust.keys import KeyFormatError, PublicKey, public_pem
from wharfinger.packages.trust.signer import load_signer


def test_a_signer_has_the_fingerprint_of_its_public_key() -> None:
    signer = load_signer(private_pem(KEY), "", "key.pem")
    assert signer.fingerprint == PublicKey("", public_pem(KEY)).fingerprint
    assert "PRIVATE" not in repr(signer)
    with pytest.raises(KeyFormatError, match=r"key\.pem: expected a private key"):
        load_signer(b"", "", "key.pem")
