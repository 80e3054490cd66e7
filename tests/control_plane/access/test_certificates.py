import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.certificates import with_unknown_version
from wharfinger.control_plane.access.certificates import (
    AUTHORITY_CERTIFICATE,
    AUTHORITY_KEY,
    CertificateError,
    kept_authority,
    new_authority,
    server_context,
)

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def test_a_stored_authority_is_reused_and_its_key_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    first = kept_authority(folder, NOW)

    assert kept_authority(folder, NOW).certificate == first.certificate
    assert stat.S_IMODE((folder / AUTHORITY_KEY).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / AUTHORITY_CERTIFICATE).read_text() == first.pem


def test_an_authority_that_expires_soon_is_replaced(tmp_path: Path) -> None:
    first = kept_authority(tmp_path, NOW)
    assert kept_authority(tmp_path, NOW + timedelta(days=3600)).certificate == first.certificate
    assert kept_authority(tmp_path, NOW + timedelta(days=3630)).certificate != first.certificate


@pytest.mark.parametrize(
    ("broken", "content"),
    [
        (AUTHORITY_CERTIFICATE, "nothing"),
        (AUTHORITY_CERTIFICATE, with_unknown_version(new_authority(NOW).pem)),
        (AUTHORITY_KEY, "nothing"),
    ],
)
def test_unreadable_authority_files_are_reported_with_a_remedy(tmp_path: Path, broken: str, content: str) -> None:
    kept_authority(tmp_path, NOW)
    (tmp_path / broken).write_text(content)
    with pytest.raises(CertificateError, match="remove both"):
        kept_authority(tmp_path, NOW)


def test_a_key_of_another_authority_is_refused(tmp_path: Path) -> None:
    kept_authority(tmp_path, NOW)
    other = new_authority(NOW)
    (tmp_path / AUTHORITY_CERTIFICATE).write_text(other.pem)
    with pytest.raises(CertificateError, match="is not the key of"):
        kept_authority(tmp_path, NOW)


def test_a_server_context_requests_no_client_certificates() -> None:
    context = server_context(new_authority(NOW), "192.0.2.1", NOW)
    assert context.cert_store_stats()["x509"] == 0  # it requests no certificates from clients
