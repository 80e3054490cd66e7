"""Envelopes of signed statements, and the statements in them."""

import pytest

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonValue, encode_json
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.trust.envelopes import IN_TOTO, read_envelope, read_statement


def test_the_signed_bytes_follow_the_specification() -> None:
    """The signed bytes of the specification's example are reproduced."""
    envelope = read_envelope(
        {"payload": "aGVsbG8gd29ybGQ=", "payloadType": "http://example.com/HelloWorld", "signatures": []}
    )
    assert envelope.signed == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


@pytest.mark.parametrize(
    "value", [None, [], {"payload": "!"}, {"payload": "", "signatures": [{"sig": "!"}]}, {"signatures": [{}] * 11}]
)
def test_invalid_envelopes_are_refused(value: JsonValue) -> None:
    with pytest.raises(FormatError):
        read_envelope(value)


def test_a_statement_is_read() -> None:
    subjects: list[JsonValue] = [{"digest": {"sha256": "a" * 64}}, {"digest": {"sha512": "b" * 128}}]
    found = read_statement(
        encode_json(
            {
                "_type": "https://in-toto.io/Statement/v0.1",
                "subject": subjects,
                "predicateType": "t",
                "predicate": {"a": 1},
            }
        )
    )
    assert (set(found.digests), found.predicate_type) == ({f"sha256:{'a' * 64}"}, "t")
    assert found.predicate == {"a": 1}
    assert IN_TOTO.endswith("in-toto+json")


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"{", "cannot be read"),
        (b"{}", "of type '', which is not an in-toto statement"),
        (b'{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":"../x"}}]}', "cannot be read"),
        (b'{"_type":"https://in-toto.io/Statement/v1","subject":3}', "cannot be read"),
    ],
)
def test_invalid_statements_are_refused(payload: bytes, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        read_statement(payload)
