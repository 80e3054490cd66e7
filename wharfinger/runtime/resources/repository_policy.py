"""``spec.verify`` of a PackageRepository: the keys and identities whose signatures its packages must have.

If the policy cannot be read, the repository cannot be used, so a mistake in the policy never admits an unsigned package.
"""

from collections.abc import Sequence
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list
from wharfinger.packages.errors import PackageError
from wharfinger.packages.trust.openpgp import read_keyring
from wharfinger.packages.trust.policy import Policy, TrustedIdentity, TrustedKey, TrustRoot
from wharfinger.runtime.resources.resources import SpecError

MAX_KEYS: Final = 32
MAX_AUTHORITIES: Final = 256 * 1024
MAX_TEXT: Final = 500
_FIELDS: Final = ("keys", "keyless", "attestations", "keyring", "requireVersion")
_KEYLESS: Final = ("authorities", "logKeys", "certificateLogKeys", "identities")
_IDENTITY: Final = ("issuer", "subject")


def has_policy(obj: JsonObject) -> bool:
    """Return whether a PackageRepository requires signatures."""
    return find(obj, "spec", "verify") is not None


def read_policy(obj: JsonObject) -> Policy | None:
    """Return the policy of a PackageRepository; None if it requires no signatures. Raises SpecError, ShapeError."""
    if not has_policy(obj):
        return None
    verify = _object(find(obj, "spec", "verify"), "spec.verify", _FIELDS, "list the public keys")
    if "keyring" in verify:
        return Policy(keyring=_keyring(verify))
    keys = _keys(verify, "keys", "spec.verify", least="keyless" not in verify)
    strict = verify.get("requireVersion", True)
    if not isinstance(strict, bool):
        raise SpecError("spec.verify.requireVersion: expected true or false, found another type; correct it")
    identities: tuple[TrustedIdentity, ...] = ()
    root = None
    if "keyless" in verify:
        root, identities = _keyless(verify["keyless"])
    kinds = _texts(verify, "attestations", "spec.verify")
    return Policy(keys, strict, identities=identities, root=root, predicates=kinds)


def policy_for_command(obj: JsonObject) -> Policy | None:
    """Return the same policy as `read_policy`, for a command. Raises FormatError instead of SpecError."""
    try:
        return read_policy(obj)
    except SpecError as error:
        raise FormatError(str(error)) from error


def _object(value: JsonValue, where: str, known: Sequence[str], remedy: str) -> JsonObject:
    if not isinstance(value, dict):
        raise SpecError(f"{where}: expected an object with {known[0]}, found another type; {remedy}")
    for field in value:
        if field not in known:
            raise SpecError(f"{where}: unknown field {field!r}; use {', '.join(known[:-1])} and {known[-1]}")
    return value


def _keyring(verify: JsonObject) -> str:
    """Return the keyring for provenance files. Raises SpecError, also if other fields are set beside it."""
    where, text = "spec.verify.keyring", verify["keyring"]
    default = {"requireVersion"} if verify.get("requireVersion") is True else set[str]()  # set by the API server
    if others := sorted(verify.keys() - {"keyring"} - default):
        raise SpecError(
            f"{where}: cannot be used together with {others[0]}, because provenance files replace cosign "
            "signatures; remove one of the two"
        )
    if not isinstance(text, str):
        raise SpecError(f"{where}: expected armored public keys of OpenPGP, found another type; correct it")
    try:
        read_keyring(text)
    except PackageError as error:
        raise SpecError(f"{where}: {error}") from error
    return text


def _keyless(value: JsonValue) -> tuple[TrustRoot, tuple[TrustedIdentity, ...]]:
    where = "spec.verify.keyless"
    keyless = _object(value, where, _KEYLESS, "give the authorities, the keys of the log, and the identities")
    listed = find_list(keyless, "identities")
    if not 0 < len(listed) <= MAX_KEYS:
        raise SpecError(f"{where}.identities: expected 1 to {MAX_KEYS} signers, found {len(listed)}")
    root = TrustRoot(
        _authorities(keyless.get("authorities"), f"{where}.authorities"),
        _keys(keyless, "logKeys", where, least=True),
        _keys(keyless, "certificateLogKeys", where, least=False),
    )
    return root, tuple(_identity(each, f"{where}.identities[{number}]") for number, each in enumerate(listed))


def _identity(value: JsonValue, where: str) -> TrustedIdentity:
    identity = _object(value, where, _IDENTITY, "give issuer and subject")
    issuer, subject = (identity.get(field) for field in _IDENTITY)
    for field, text in (("issuer", issuer), ("subject", subject)):
        if not isinstance(text, str) or not 0 < len(text) <= MAX_TEXT:
            raise SpecError(f"{where}.{field}: expected a text of 1 to {MAX_TEXT} characters; correct it")
    return TrustedIdentity(where, str(issuer), str(subject))


def _authorities(value: JsonValue, where: str) -> str:
    from wharfinger.packages.trust.certificates import read_certificates  # noqa: PLC0415 - cryptography takes 20 MB

    if not isinstance(value, str) or not 0 < len(value) <= MAX_AUTHORITIES:
        raise SpecError(f"{where}: expected certificates in PEM text; give the root certificate of the authority")
    try:
        found = read_certificates(value, where)
    except PackageError as error:
        raise SpecError(str(error)) from error
    if not any(each.issuer == each.subject for each in found):
        raise SpecError(
            f"{where}: expected a root certificate, found {len(found)} other certificates; add the root certificate"
        )
    return value


def _keys(obj: JsonObject, field: str, where: str, *, least: bool) -> tuple[TrustedKey, ...]:
    listed = find_list(obj, field)
    if not int(least) <= len(listed) <= MAX_KEYS:
        raise SpecError(f"{where}.{field}: expected 1 to {MAX_KEYS} public keys in PEM text, found {len(listed)}")
    return tuple(_key(text, f"{where}.{field}[{number}]") for number, text in enumerate(listed))


def _texts(obj: JsonObject, field: str, where: str) -> tuple[str, ...]:
    listed = find_list(obj, field)
    texts = [each for each in listed if isinstance(each, str) and 0 < len(each) <= MAX_TEXT]
    if len(texts) != len(listed) or len(listed) > MAX_KEYS:
        raise SpecError(f"{where}.{field}: expected at most {MAX_KEYS} texts of 1 to {MAX_TEXT} characters; correct it")
    return tuple(texts)


def _key(text: object, name: str) -> TrustedKey:
    from wharfinger.packages.trust.keys import load_public  # noqa: PLC0415 - cryptography takes 20 MB

    if not isinstance(text, str):
        raise SpecError(f"{name}: expected a public key in PEM text, found another type; correct it")
    try:
        load_public(text, name)
    except PackageError as error:
        raise SpecError(str(error)) from error
    return TrustedKey(name, text)
