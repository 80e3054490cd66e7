"""TLS contexts from PEM text: certificate authorities, and client certificates."""

from pathlib import Path

import pytest

from tests.registry_server import make_certificate
from wharfinger.packages.errors import RegistryError
from wharfinger.packages.network.tls import ClientCertificate, Tls, tls_context


def test_a_tls_context_is_created_once(tmp_path: Path) -> None:
    made = make_certificate(tmp_path)
    client = ClientCertificate(made.file.read_text(), made.key.read_text())
    before = set(Path("/proc/self/fd").iterdir())
    assert tls_context(Tls(client.certificate, client)) is tls_context(Tls(client.certificate, client))
    assert tls_context(Tls(client.certificate)) is not tls_context(Tls(client.certificate, client))
    assert set(Path("/proc/self/fd").iterdir()) == before
    assert "PRIVATE" not in repr(Tls("", client))


@pytest.mark.parametrize(
    "key", ["", "hello", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "another"]
)
def test_an_invalid_client_certificate_is_refused(key: str, tmp_path: Path) -> None:
    made = make_certificate(tmp_path / "one")
    key = make_certificate(tmp_path / "two").key.read_text() if key == "another" else key
    with pytest.raises(RegistryError, match=r"the client certificate: expected PEM .*; correct tls\.crt and tls\.key"):
        tls_context(Tls("", ClientCertificate(made.file.read_text(), key)))
