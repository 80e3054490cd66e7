"""Sigstore bundles: supported versions, and invalid bundles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.packages.support.sigstore import AUTHORITY, GOOD, statement
from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json, find, find_object
from wharfinger.packages.digest import digest_of
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.trust.bundles import BUNDLE_TYPE, read_bundle

BUNDLE = GOOD.bundle(statement(digest_of(b"x")))


def test_supported_bundle_versions_are_recognized() -> None:
    kinds = [f"application/vnd.dev.sigstore.bundle+json;version=0.{number}" for number in (1, 2, 3)]
    assert all(BUNDLE_TYPE.match(kind) for kind in (*kinds, "application/vnd.dev.sigstore.bundle.v0.3+json"))
    assert not BUNDLE_TYPE.match("application/vnd.dev.sigstore.bundle.v0.4+json")
    assert not BUNDLE_TYPE.match("application/vnd.dev.sigstore.bundle.v0.3+json2")


def test_the_certificate_chain_of_an_older_bundle_is_read() -> None:
    material = find_object(BUNDLE, "verificationMaterial")
    certificate = find(material, "certificate")
    listed: list[JsonValue] = [certificate, certificate]
    older: JsonObject = {"tlogEntries": material["tlogEntries"], "x509CertificateChain": {"certificates": listed}}
    found = read_bundle(encode_json({**BUNDLE, "verificationMaterial": older}))
    assert found.certificate == found.chain == read_bundle(encode_json(BUNDLE)).certificate
    assert AUTHORITY.name not in found.certificate


def test_a_bundle_with_a_public_key_has_no_certificate() -> None:
    found = read_bundle(encode_json({**BUNDLE, "verificationMaterial": {"publicKey": {"hint": "x"}}}))
    assert (found.certificate, found.entry) == ("", None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mediaType": 3}, "the bundle cannot be read"),
        ({"dsseEnvelope": {"payload": "", "signatures": []}}, "has 0 signatures; expected one signature"),
        ({"verificationMaterial": {"tlogEntries": [{}, {}]}}, "has 2 entries of transparency logs; expected one entry"),
        ({"verificationMaterial": {"certificate": {"rawBytes": "!"}}}, "the bundle cannot be read"),
    ],
)
def test_invalid_bundles_are_refused(change: JsonObject, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        read_bundle(encode_json({**BUNDLE, **change}))


@given(st.binary(max_size=100))
@pytest.mark.sampled(30)
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ArtifactError):
        read_bundle(data)
