"""``spec.verify`` of a PackageRepository: the keys whose signatures make its packages trusted.

A policy that cannot be read makes the repository unusable, so a mistake in it never lets a package through.
"""

from typing import Final

from wharfinger.formats.json.value import JsonObject, find, find_list
from wharfinger.packages.errors import PackageError
from wharfinger.packages.trust.policy import Policy, TrustedKey
from wharfinger.runtime.resources.resources import SpecError

MAX_KEYS: Final = 32
_FIELDS: Final = frozenset({"keys", "requireVersion"})


def has_policy(obj: JsonObject) -> bool:
    """Return whether a PackageRepository demands signatures."""
    return find(obj, "spec", "verify") is not None


def read_policy(obj: JsonObject) -> Policy | None:
    """Return the policy of a PackageRepository; None if it has none. Raises SpecError, ShapeError."""
    if not has_policy(obj):
        return None
    verify = find(obj, "spec", "verify")
    if not isinstance(verify, dict):
        raise SpecError("spec.verify: expected an object with keys, found another type; list the public keys")
    for field in verify:
        if field not in _FIELDS:
            raise SpecError(f"spec.verify: {field!r} is not known; use keys and requireVersion")
    listed = find_list(obj, "spec", "verify", "keys")
    if not 0 < len(listed) <= MAX_KEYS:
        raise SpecError(f"spec.verify.keys: expected 1 to {MAX_KEYS} public keys in PEM text, found {len(listed)}")
    strict = verify.get("requireVersion", True)
    if not isinstance(strict, bool):
        raise SpecError("spec.verify.requireVersion: expected true or false, found another type; correct it")
    return Policy(tuple(_key(text, number) for number, text in enumerate(listed)), strict)


def _key(text: object, number: int) -> TrustedKey:
    from wharfinger.packages.trust.keys import load_public  # noqa: PLC0415 - cryptography takes 20 MB

    name = f"spec.verify.keys[{number}]"
    if not isinstance(text, str):
        raise SpecError(f"{name}: expected a public key in PEM text, found another type; correct it")
    try:
        load_public(text, name)
    except PackageError as error:
        raise SpecError(str(error)) from error
    return TrustedKey(name, text)
