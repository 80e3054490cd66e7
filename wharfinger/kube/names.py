"""The names of Kubernetes: DNS labels and subdomains (RFC 1123), and qualified names such as label keys.

The patterns are those that the API server shows in its messages. The limits count
characters. Valid names are ASCII, so this is also their number of bytes.
"""

import re
from typing import Final

LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN: Final = rf"{LABEL}(\.{LABEL})*"
KEY_PART: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
MAX_LABEL: Final = 63
MAX_SUBDOMAIN: Final = 253
GENERATED: Final = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of generated names (apimachinery's ``rand.SafeEncodeString``), without vowels, so that they seldom form words.
"""

_LABEL: Final = re.compile(LABEL)
_SUBDOMAIN: Final = re.compile(SUBDOMAIN)
_KEY_PART: Final = re.compile(KEY_PART)


def is_label(text: str) -> bool:
    """Return whether a text is a DNS label, such as the name of a namespace or of a container."""
    return len(text) <= MAX_LABEL and _LABEL.fullmatch(text) is not None


def is_subdomain(text: str, most: int = MAX_SUBDOMAIN) -> bool:
    """Return whether a text is a DNS subdomain of at most ``most`` characters, like the names of most objects."""
    return len(text) <= most and _SUBDOMAIN.fullmatch(text) is not None


def is_key_part(text: str) -> bool:
    """Return whether a text is the part of a label key after the ``/``, or a label value that is not empty."""
    return len(text) <= MAX_LABEL and _KEY_PART.fullmatch(text) is not None


def is_qualified_name(text: str) -> bool:
    """Return whether a text is a qualified name, such as a label key or a resource name: ``example.com/name`` or ``name``."""
    prefix, slash, name = text.rpartition("/")
    return is_key_part(name) and (not slash or is_subdomain(prefix))
