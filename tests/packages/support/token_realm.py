"""A token realm for registries: it checks the client's login, and issues signed tokens that a real registry accepts.

It follows the token specification of Distribution: a GET with Basic authentication, or a POST with a refresh token. Tokens are
JSON Web Tokens (ES256), which openssl signs with a key whose certificate the registry trusts.
"""

import base64
import json
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs

import trio

from tests.packages.support.faulty_registry import FaultyRegistry, Reply, Request, open_faulty_registry
from tests.registry_server import Certificate, make_certificate, open_registry_server
from wharfinger.formats.json.value import JsonValue
from wharfinger.packages.registry.address import RegistryAddress
from wharfinger.packages.registry.credentials import Credentials

SERVICE = "wharf"
ISSUER = "harbour office"


@dataclass(frozen=True, slots=True)
class TokenRegistry:
    """A token realm, and a real registry that trusts it."""

    address: RegistryAddress
    realm: FaultyRegistry


@asynccontextmanager
async def open_token_registry(folder: Path, login: Credentials) -> AsyncIterator[TokenRegistry]:
    """Run a token realm, and a registry that trusts it, on loopback. The realm gives tokens only to ``login``, for its password
    or for its identity token.
    """
    certificate = await trio.to_thread.run_sync(make_certificate, folder / "realm")
    async with open_faulty_registry() as realm:
        realm.answer = lambda request: _answer(request, login, certificate)
        auth = (
            f"{{token: {{realm: 'http://{realm.address}/token', service: {SERVICE}, issuer: '{ISSUER}', "
            f"rootcertbundle: '{certificate.file}'}}}}"
        )
        async with open_registry_server(folder, auth=auth) as address:
            yield TokenRegistry(address, realm)


def _answer(request: Request, login: Credentials, certificate: Certificate) -> Reply:
    form = parse_qs(request.body.decode() if request.method == "POST" else request.query)
    if request.method == "POST":
        known = login.identity_token and form.get("refresh_token") == [login.identity_token]
        known = known and form.get("grant_type") == ["refresh_token"]
    else:
        known = request.headers.get("authorization") == login.basic()
    if not known or request.path != "/token" or form.get("service") != [SERVICE]:
        return Reply(401)
    access: list[JsonValue] = []
    for scope in " ".join(form.get("scope", [])).split():
        kind, name, actions = scope.split(":")
        access.append({"type": kind, "name": name, "actions": list[JsonValue](actions.split(","))})
    return Reply(body=json.dumps({"access_token": _token(access, certificate), "expires_in": 300}).encode())


def _token(access: JsonValue, certificate: Certificate) -> str:
    chain = "".join(certificate.file.read_text().splitlines()[1:-1])
    now = int(time.time())
    header = {"typ": "JWT", "alg": "ES256", "x5c": [chain]}
    claims = {"iss": ISSUER, "sub": "porter", "aud": SERVICE, "exp": now + 300, "nbf": now - 60, "iat": now, "jti": "1"}
    signed = f"{_part(json.dumps(header).encode())}.{_part(json.dumps({**claims, 'access': access}).encode())}"
    command = ["openssl", "dgst", "-sha256", "-sign", str(certificate.key)]
    signature = subprocess.run(command, input=signed.encode(), capture_output=True, check=True).stdout
    return f"{signed}.{_part(_raw(signature))}"


def _raw(der: bytes) -> bytes:
    """Return the two numbers of a DER-encoded ECDSA signature, each as 32 bytes."""
    numbers = []
    at = 2
    for _ in range(2):
        length = der[at + 1]
        numbers.append(int.from_bytes(der[at + 2 : at + 2 + length], "big").to_bytes(32, "big"))
        at += 2 + length
    return b"".join(numbers)


def _part(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
