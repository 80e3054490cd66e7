"""Inputs for several benchmarks: a typical schema of settings, values that fit it, and archives."""

import io
import tarfile
from collections.abc import Iterable
from typing import Final

from wharfinger.formats.json.value import JsonObject

_GROUPS: Final = (
    "alerts",
    "backup",
    "dashboard",
    "ingress",
    "logs",
    "metrics",
    "proxy",
    "scanner",
    "storage",
    "tracing",
)

_GROUP: Final[JsonObject] = {
    "type": "object",
    "default": {},
    "x-examples": [{"mode": "CertManager", "retentionDays": 7}],
    "properties": {
        "mode": {"type": "string", "enum": ["Disabled", "CertManager", "CustomCertificate"], "default": "CertManager"},
        "retentionDays": {
            "type": "integer",
            "minimum": 1,
            "maximum": 365,
            "default": 15,
            "description": "Kept so long.",
        },
        "storageClass": {"type": "string", "nullable": True, "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"},
        "cpu": {"x-kubernetes-int-or-string": True, "default": "100m"},
        "tolerations": {
            "type": "array",
            "maxItems": 20,
            "items": {
                "type": "object",
                "required": ["operator"],
                "properties": {
                    "key": {"type": "string", "minLength": 1},
                    "operator": {"type": "string", "enum": ["Exists", "Equal"], "default": "Exists"},
                },
            },
        },
    },
}

SETTINGS_SCHEMA: Final[JsonObject] = {"type": "object", "properties": dict.fromkeys(_GROUPS, _GROUP)}
"""A schema of ten sections with five properties each. Like the schemas of Deckhouse, it has defaults, enumerations, patterns,
int-or-string fields and ``x-…`` extensions.
"""

SETTINGS: Final[JsonObject] = {
    group: {
        "mode": "CertManager",
        "retentionDays": 7,
        "storageClass": "fast-ssd",
        "tolerations": [{"key": "node.example/role", "operator": "Exists"}],
    }
    for group in _GROUPS
}
"""Valid settings; ``cpu`` has its default."""


def archive_of(numbers: Iterable[int], *, size: int, hides: Iterable[int] = ()) -> bytes:
    """Return a tar.gz with a file for each number, in twenty folders, and with a whiteout for each number in ``hides``."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as tar:
        for number in numbers:
            info = tarfile.TarInfo(f"chart/templates/{number % 20}/file-{number}.yaml")
            info.size = size
            tar.addfile(info, io.BytesIO(bytes(number % 251 for _ in range(size))))
        for number in hides:
            tar.addfile(tarfile.TarInfo(f"chart/templates/{number % 20}/.wh.file-{number}.yaml"))
    return buffer.getvalue()
