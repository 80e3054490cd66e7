"""Connections that are passed to another program as JSON."""

from pathlib import Path

import pytest

from wharfinger.cluster.api.connection import (
    Connection,
    ConnectionConfigError,
    StaticAuthorization,
    TokenFileAuthorization,
    bearer,
)
from wharfinger.cluster.connection_program import decoded, encoded
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import ShapeError, encode_json

FULL = Connection(
    "https://one.example:6443/clusters/a",
    bearer("s3cr3t"),
    "prod",
    Path("/ca.crt"),
    verify_tls=False,
    client_certificate=Path("/client.crt"),
    client_key=Path("/client.key"),
    tls_server_name="kubernetes",
    proxy="http://user:pw@proxy.example:3128",
    headers=(("Impersonate-User", "ann"), ("Impersonate-Group", "ops")),
    in_cluster=True,
)


class _Renewed:
    """Credentials that can be renewed, as those of a plugin."""

    def header(self, *, renew: bool) -> str:
        return str(renew)


@pytest.mark.parametrize(
    "connection",
    [
        FULL,
        Connection("http://127.0.0.1:8001"),
        Connection("https://10.0.0.1", TokenFileAuthorization(Path("/token")), in_cluster=True),
    ],
)
def test_a_connection_survives_its_encoding(connection: Connection) -> None:
    assert decoded(encoded(connection)) == connection


def test_every_field_of_a_connection_is_encoded() -> None:
    default = Connection("")
    assert all(getattr(FULL, name) != getattr(default, name) for name in Connection.__slots__)


def test_credentials_of_a_plugin_are_not_encoded() -> None:
    with pytest.raises(ShapeError, match="renewed"):
        encoded(Connection("https://one.example", _Renewed()))


def test_a_refusal_is_decoded_as_its_error() -> None:
    with pytest.raises(ConnectionConfigError, match="no such file"):
        decoded(encode_json({"refused": "kubeconfig: no such file"}))


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b"{", b"Traceback"])
def test_other_output_is_refused(text: bytes) -> None:
    with pytest.raises(FormatError):
        decoded(text)


def test_credentials_are_not_in_a_repr() -> None:
    assert "s3cr3t" not in repr(decoded(encoded(FULL)))
    assert decoded(encoded(FULL)).authorization == StaticAuthorization("Bearer s3cr3t")
