"""The names of keys that hold credentials.

The *end* of a key decides whether the key holds a credential, whatever its case and its separators are. ``DB_PASSWORD``,
``apiKey``, ``.dockerconfigjson``, ``clientSecrets``, ``password.txt`` and ``tokenBase64`` hold a credential. ``secretName``,
``passwordSecretRef`` and ``tokenExpirationSeconds`` only describe a credential. A doubtful key counts as sensitive: if a value is
hidden by mistake, the user can look it up in the cluster, but a password that was printed has to be rotated.
"""

import re
from functools import lru_cache
from typing import Final

_ENDINGS: Final = (
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "credential",
    "authorization",
    "apikey",
    "privatekey",
    "accesskey",
    "secretkey",
    "signingkey",
    "encryptionkey",
    "masterkey",
    "sessionkey",
    "sharedkey",
    "sshkey",
    "tlskey",
    "cakey",
    "clientkey",
    "serverkey",
    "licensekey",
    "dockercfg",
    "dockerconfig",
    "dockerconfigjson",
    "kubeconfig",
    "setcookie",
    "connectionstring",
)
_WHOLE: Final = frozenset(
    {"auth", "pass", "pwd", "pw", "cookie", "jwt", "idrsa", "iddsa", "idecdsa", "ided25519", "netrc", "pgpass"}
)
_SHORT_LAST_WORD: Final = re.compile(r"(?:[^A-Za-z0-9](?i:pass|pwd|pw)|[a-z0-9](?:Pass|Pwd|PW))[0-9]*\Z")
_EXTENSION: Final = re.compile(r"\.(?:txt|json|ya?ml|conf|cfg|ini|env|pem|b64|base64)\Z")
_QUALIFIER: Final = re.compile(
    r"(?:base64|b64|pem|hash|values?|data|plain|plaintext|encrypted|encoded|old|new|current|previous|[0-9]+)\Z"
)
_NO_LETTER_OR_DIGIT: Final = re.compile(r"[^a-z0-9]+")
_LONGEST: Final = 120


def is_sensitive_key(key: str) -> bool:
    """Return whether the value under ``key`` must be treated as a credential."""
    # Only the end of a key decides. The key is cut to a fixed length, so that the cache stays small.
    return _is_sensitive(key[-_LONGEST:])


@lru_cache(maxsize=4096)
def _is_sensitive(key: str) -> bool:
    if _SHORT_LAST_WORD.search(key):
        return True
    name = _NO_LETTER_OR_DIGIT.sub("", _EXTENSION.sub("", key.lower()))
    while True:
        if name in _WHOLE or name.removesuffix("s").endswith(_ENDINGS):
            return True
        shorter = _QUALIFIER.sub("", name)
        if shorter == name:
            return False
        name = shorter


def may_be_a_reference(key: str) -> bool:
    """Return whether a mapping under this sensitive key may merely *name* a Secret or a projected token, as in a volume."""
    name = _NO_LETTER_OR_DIGIT.sub("", key[-_LONGEST:].lower()).removesuffix("s")
    return name.endswith(("secret", "token", "credential"))
