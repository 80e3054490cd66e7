import hashlib

import pytest

from wharfinger.packages.digest import Digest, digest_of
from wharfinger.packages.errors import DigestError


def test_the_digest_of_bytes_is_their_sha256() -> None:
    assert digest_of(b"wharf").hex == hashlib.sha256(b"wharf").hexdigest()
    assert str(digest_of(b"wharf")) == "sha256:" + hashlib.sha256(b"wharf").hexdigest()


@pytest.mark.parametrize(
    "text",
    ["", "sha256:", "sha256:" + "a" * 63, "sha256:" + "A" * 64, "sha512:" + "a" * 64, "sha256:" + "a" * 64 + "\n"],
)
def test_invalid_digests_are_refused(text: str) -> None:
    with pytest.raises(DigestError, match="is not of the form sha256"):
        Digest(text)


def test_digests_can_be_sorted() -> None:
    assert sorted([Digest("sha256:" + "b" * 64), Digest("sha256:" + "a" * 64)])[0].hex == "a" * 64
