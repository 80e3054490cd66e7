"""The certificate of the admission server: its names, its validity, and its stored form."""

import base64
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trio

from tests.certificates import with_unknown_version
from tests.programs import PATIENCE_S
from wharfinger.formats.json.value import JsonObject
from wharfinger.runtime.admission.certificates import (
    RENEW,
    VALID,
    Certificate,
    ServedCertificate,
    new_certificate,
    read_certificate,
    secret_data,
)

NOW = datetime.now(UTC)
NAMES = ("hook.system.svc", "127.0.0.1")


def kept(certificate: Certificate, **other: str) -> JsonObject:
    return {"data": {**secret_data(certificate), **other}}


def test_a_stored_certificate_is_read_back_unchanged() -> None:
    made = new_certificate(NAMES, NOW)
    assert read_certificate(kept(made)) == made
    assert made.names == frozenset(NAMES)


def test_a_certificate_is_replaced_before_its_end_and_for_other_names() -> None:
    made = new_certificate(NAMES, NOW)
    assert made.is_fit(NAMES, NOW)
    assert made.is_fit(NAMES[:1], NOW + VALID - RENEW - timedelta(minutes=1))
    assert not made.is_fit(NAMES, NOW + VALID - RENEW)
    assert not made.is_fit(("other.system.svc",), NOW)


def test_the_former_authority_is_trusted_for_one_replacement() -> None:
    first = new_certificate(NAMES, NOW)
    second = new_certificate(NAMES, NOW, first)
    third = new_certificate(NAMES, NOW, second)
    assert second.authorities == (second.authorities[0], first.authorities[0])
    assert third.authorities == (third.authorities[0], second.authorities[0])
    assert read_certificate(kept(third)) == third


@pytest.mark.parametrize(
    "damage",
    [
        {"tls.crt": ""},
        {"tls.key": base64.b64encode(b"x").decode()},
        {"ca.crt": "%%%"},
        {"tls.crt": base64.b64encode(with_unknown_version(new_certificate(NAMES, NOW).chain).encode()).decode()},
        {"tls.key": base64.b64encode(new_certificate(NAMES, NOW).key.encode()).decode()},
    ],
)
def test_a_damaged_secret_is_treated_as_absent(damage: dict[str, str]) -> None:
    assert read_certificate(kept(new_certificate(NAMES, NOW), **damage)) is None


async def handshake(context: ssl.SSLContext, bundle: str, name: str) -> None:
    """Do a TLS handshake in memory, as a client that trusts the authorities in ``bundle``. If the handshake fails, the error is
    BrokenResourceError.
    """
    server, client = trio.testing.memory_stream_pair()
    trust = ssl.create_default_context(cadata=bundle)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.SSLStream(server, context, server_side=True).do_handshake)
        await trio.SSLStream(client, trust, server_hostname=name).do_handshake()


async def test_a_replaced_certificate_works_for_clients_with_the_new_and_the_old_bundle() -> None:
    served = ServedCertificate()
    context = served.context
    first = new_certificate(NAMES, NOW)
    second = new_certificate(NAMES, NOW, first)
    served.use(first)
    await handshake(context, first.bundle, NAMES[0])
    await handshake(context, second.bundle, NAMES[1])
    served.use(second)
    await handshake(context, second.bundle, NAMES[0])
    with pytest.RaisesGroup(trio.BrokenResourceError, flatten_subgroups=True, allow_unwrapped=True):
        with trio.fail_after(PATIENCE_S):
            await handshake(context, first.bundle, NAMES[0])


async def test_a_context_is_never_changed_once_connections_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSL loads the certificate and the key one after the other. A handshake between the two steps would fail."""
    changed: list[ssl.SSLContext] = []
    load = ssl.SSLContext.load_cert_chain

    def recorded(context: ssl.SSLContext, path: Path) -> None:
        changed.append(context)
        load(context, path)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", recorded)
    served, certificate = ServedCertificate(), new_certificate(NAMES, NOW)
    for _ in range(3):
        served.use(certificate)
        await handshake(served.context, certificate.bundle, NAMES[0])
    assert len(set(map(id, changed))) == 3
    assert served.context not in changed
