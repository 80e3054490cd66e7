"""Tokens of service accounts: JSON Web Tokens (RFC 7519), signed with ES256 by a key that is stored with the objects.

A token is valid for its audiences until it expires, as long as its account and the objects that it is bound to still exist with
the same uids. A token contains the same JWT claims as a token of kube-apiserver.
"""

import base64
import binascii
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from wharfinger.control_plane.access.users import AUTHENTICATED, User, service_account_groups
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.storage.interface import Collection, Key
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import (
    JsonObject,
    JsonValue,
    ShapeError,
    as_object,
    decode_json,
    encode_json,
    find,
    find_int,
    find_list,
    find_object,
    find_str,
)

ISSUER: Final = "https://kubernetes.default.svc"
MAX_TOKEN_BYTES: Final = 16 * 1024
_KEY: Final = Key(Collection("wharfinger.internal", "signingkeys"), "", "service-accounts")
"""The storage key of the signing key; it belongs to no served kind."""
_NUMBER_BYTES: Final = 32
_BOUND: Final = {"pod": "pods", "secret": "secrets", "node": "nodes"}
_CREDENTIAL: Final = "authentication.kubernetes.io/credential-id"


class TokenError(Exception):
    """A token is invalid; the message is the reason, as in a TokenReview."""


@dataclass(frozen=True, slots=True)
class Binding:
    """The object that a token is bound to in addition to its account: ``kind`` is ``pod``, ``secret`` or ``node``."""

    kind: str
    name: str
    uid: str


class TokenSigner:
    """A signer of tokens, which also verifies the tokens that it has signed."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._key: ec.EllipticCurvePrivateKey | None = None

    @property
    def _signing_key(self) -> ec.EllipticCurvePrivateKey:
        """Return the signing key, which is created with the first token."""
        if self._key is None:
            stored = self._backend.storage.get(_KEY)
            self._key = _read_key(stored) if stored is not None else self._new_key()
        return self._key

    def _new_key(self) -> ec.EllipticCurvePrivateKey:
        key = ec.generate_private_key(ec.SECP256R1())
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        self._backend.put(_KEY, {"metadata": {"name": _KEY.name}, "key": pem})
        return key

    def sign(
        self,
        account: JsonObject,
        audiences: Sequence[str],
        now: datetime,
        expires: datetime,
        bound: Sequence[Binding] = (),
    ) -> str:
        """Return a token of a ServiceAccount."""
        metadata = find_object(account, "metadata")
        namespace, name = find_str(metadata, "namespace"), find_str(metadata, "name")
        private: JsonObject = {"namespace": namespace}
        for item in bound:
            private[item.kind] = {"name": item.name, **({"uid": item.uid} if item.uid else {})}
        private["serviceaccount"] = {"name": name, "uid": find_str(metadata, "uid")}
        issued = int(now.timestamp())
        claims: JsonObject = {
            "aud": list(audiences),
            "exp": int(expires.timestamp()),
            "iat": issued,
            "iss": ISSUER,
            "jti": self._backend.new_uid(),
            "kubernetes.io": private,
            "nbf": issued,
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        head: JsonObject = {"alg": "ES256", "kid": self.key_id}
        signed = f"{_encode(encode_json(head))}.{_encode(encode_json(claims))}"
        r, s = decode_dss_signature(self._signing_key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_encode(r.to_bytes(_NUMBER_BYTES, 'big') + s.to_bytes(_NUMBER_BYTES, 'big'))}"

    @property
    def key_id(self) -> str:
        """Return the ID of the signing key, which the header of each token contains (``kid``)."""
        der = self._signing_key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return _encode(hashlib.sha256(der).digest())

    def key_set(self) -> JsonObject:
        """Return the document of ``/openid/v1/jwks`` (RFC 7517)."""
        numbers = self._signing_key.public_key().public_numbers()
        x, y = (_encode(number.to_bytes(_NUMBER_BYTES, "big")) for number in (numbers.x, numbers.y))
        return {
            "keys": [
                {"use": "sig", "kty": "EC", "kid": self.key_id, "crv": "P-256", "alg": "ES256", "x": x, "y": y},
            ]
        }

    def user(self, token: str) -> User | None:
        """Return the service account that a valid token for this server identifies; None for any other text."""
        try:
            return self.verified(token, (ISSUER,))[0]
        except TokenError:
            return None

    def verified(self, token: str, audiences: Sequence[str]) -> tuple[User, tuple[str, ...]]:
        """Return the service account of a token, and the requested audiences that the token is for. Raises TokenError."""
        claims = self._claims(token)
        try:
            return self._user(claims), self._audiences(claims, audiences)
        except ShapeError as error:
            raise TokenError("invalid bearer token") from error

    def _claims(self, token: str) -> JsonObject:
        parts = token.split(".")
        if len(parts) != 3 or len(token) > MAX_TOKEN_BYTES:
            raise TokenError("invalid bearer token")
        try:
            signature = _decode(parts[2])
            numbers = (
                int.from_bytes(signature[:_NUMBER_BYTES], "big"),
                int.from_bytes(signature[_NUMBER_BYTES:], "big"),
            )
            if len(signature) != 2 * _NUMBER_BYTES:
                raise TokenError("invalid bearer token")
            self._signing_key.public_key().verify(
                encode_dss_signature(*numbers), f"{parts[0]}.{parts[1]}".encode(), ec.ECDSA(hashes.SHA256())
            )
            return as_object(decode_json(_decode(parts[1]), max_bytes=MAX_TOKEN_BYTES, what="claims"), "claims")
        except (InvalidSignature, binascii.Error, UnicodeEncodeError, FormatError) as error:
            raise TokenError("invalid bearer token") from error

    def _audiences(self, claims: JsonObject, audiences: Sequence[str]) -> tuple[str, ...]:
        meant = [item for item in find_list(claims, "aud") if isinstance(item, str)]
        found = tuple(audience for audience in audiences if audience in meant)
        if not found:
            raise TokenError(
                f"[invalid bearer token, token audiences {_quoted(meant)} is invalid for the target audiences "
                f"{_quoted(audiences)}]"
            )
        return found

    def _user(self, claims: JsonObject) -> User:
        now = self._backend.now().timestamp()
        if now >= find_int(claims, "exp"):
            raise TokenError("[invalid bearer token, service account token has expired]")
        private = find_object(claims, "kubernetes.io")
        namespace = find_str(private, "namespace")
        account = find_object(private, "serviceaccount")
        name, uid = find_str(account, "name"), find_str(account, "uid")
        stored = self._backend.object("", "serviceaccounts", namespace, name)
        if stored is None or find(stored, "metadata", "uid") != uid:
            raise TokenError("[invalid bearer token, service account token has been invalidated]")
        extra = {_CREDENTIAL: (f"JTI={find_str(claims, 'jti')}",)}
        for kind, plural in _BOUND.items():
            bound = private.get(kind)
            if isinstance(bound, dict):
                self._check_bound(plural, "" if kind == "node" else namespace, bound)
                extra[f"authentication.kubernetes.io/{kind}-name"] = (find_str(bound, "name"),)
                extra[f"authentication.kubernetes.io/{kind}-uid"] = (find_str(bound, "uid"),)
        return User(
            f"system:serviceaccount:{namespace}:{name}", (*service_account_groups(namespace), AUTHENTICATED), uid, extra
        )

    def _check_bound(self, plural: str, namespace: str, bound: JsonObject) -> None:
        stored = self._backend.object("", plural, namespace, find_str(bound, "name"))
        if find_str(bound, "uid") and find(stored, "metadata", "uid") != find_str(bound, "uid"):
            raise TokenError("[invalid bearer token, service account token has been invalidated]")


def discovery_document(address: str) -> JsonObject:
    """Return the document of ``/.well-known/openid-configuration``."""
    return {
        "issuer": ISSUER,
        "jwks_uri": f"https://{address}/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }


def _read_key(stored: JsonObject) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(find_str(stored, "key").encode(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("expected an EC key as the stored signing key, found another type of key")
    return key


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))


def _quoted(values: Sequence[JsonValue]) -> str:
    return "[" + " ".join(f'"{value}"' for value in values) + "]"
