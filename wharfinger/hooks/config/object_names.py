"""Names of objects and namespaces that come from a package, before they get into a path or a selector of the API. Pure.

They are part of ``/api/v1/namespaces/<namespace>/pods/<name>?…`` and of ``metadata.name=<name>,…``: a name with a slash, a comma
or a question mark in it would ask for something else than what is allowed to the package. Namespaces are DNS labels (RFC 1123).
Most objects are called by DNS names; those of RBAC may be called otherwise (``system:node``), so colons, capitals and underscores
pass.
"""

import re
from typing import Final

from wharfinger.formats.errors import FormatError

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?")
_NAMESPACE: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_MAX_SHOWN: Final = 80


class NameFormatError(FormatError):
    """What should name an object or a namespace cannot be a name."""


def need_object_name(name: str, what: str) -> str:
    """``name`` if an object can be called so; ``what`` says where it stands. Raises NameFormatError."""
    if not _NAME.fullmatch(name):
        raise NameFormatError(
            f"{what}: {name[:_MAX_SHOWN]!r} is no name of an object: up to 253 letters, digits, '-', '.', ':', '_', with a "
            "letter or digit at both ends"
        )
    return name


def need_namespace(name: str, what: str) -> str:
    """``name`` if a namespace can be called so. Raises NameFormatError."""
    if not _NAMESPACE.fullmatch(name):
        raise NameFormatError(
            f"{what}: {name[:_MAX_SHOWN]!r} is no name of a namespace: up to 63 small letters, digits, '-', with a letter or "
            "digit at both ends"
        )
    return name
