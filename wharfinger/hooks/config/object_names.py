"""Checks of object and namespace names that come from a package, before they become part of API paths and selectors. Pure.

The names are part of ``/api/v1/namespaces/<namespace>/pods/<name>?…`` and of ``metadata.name=<name>,…``. A name with a slash, a
comma or a question mark could request something that the package may not read. Names of namespaces are DNS labels (RFC 1123). The
names of most other objects are DNS names. Names of RBAC objects need not be DNS names (``system:node``), so colons, capital
letters and underscores are allowed in names of objects.
"""

import re
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.kube.names import is_label

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?")
_MAX_SHOWN: Final = 80


class NameFormatError(FormatError):
    """A text cannot be the name of an object or a namespace."""


def need_object_name(name: str, what: str) -> str:
    """Return ``name`` if it can be the name of an object.

    Raises NameFormatError, in whose message ``what`` says where the name was found.
    """
    if not _NAME.fullmatch(name):
        raise NameFormatError(
            f"{what}: {name[:_MAX_SHOWN]!r} is not a valid name of an object; a name has up to 253 letters, digits, '-', '.', "
            "':', '_', with a letter or digit at both ends"
        )
    return name


def need_namespace(name: str, what: str) -> str:
    """Return ``name`` if it can be the name of a namespace.

    Raises NameFormatError, in whose message ``what`` says where the name was found.
    """
    if not is_label(name):
        raise NameFormatError(
            f"{what}: {name[:_MAX_SHOWN]!r} is not a valid name of a namespace; a name has up to 63 lower-case letters, "
            "digits, '-', with a letter or digit at both ends"
        )
    return name
