"""The OpenAPI documents of built-in kinds. For Kubernetes 1.36, they are exactly the bytes that a kube-apiserver sends.

The documents of each version are in one compressed file (``openapi.xz`` for 1.36, made by
``tools/kubernetes/generate_documents.py``), which is read when a document is first needed.
"""

import lzma
from functools import cache
from pathlib import Path
from typing import Final

from wharfinger.control_plane.kubernetes_version import table
from wharfinger.formats.json.value import JsonObject, as_object, decode_json, find_list

DATA: Final = table(Path(__file__).with_name("openapi.xz"))
MAX_BYTES: Final = 16 * 1024 * 1024
"""The maximum total size of all OpenAPI documents, in bytes."""


@cache
def _archive() -> tuple[JsonObject, bytes]:
    reader = lzma.LZMADecompressor()
    data = reader.decompress(DATA.read_bytes(), MAX_BYTES)
    line, _, documents = data.partition(b"\n")
    return as_object(decode_json(line, max_bytes=MAX_BYTES, what=DATA.name), DATA.name), documents


def version_3_names() -> list[str]:
    """Return the names of the version 3 documents: ``api/v1``, ``apis/apps/v1``, ``version`` …."""
    return [name.removeprefix("v3/") for name in _archive()[0] if name.startswith("v3/")]


def raw_document(name: str) -> bytes | None:
    """Return a document by name: ``v2``, ``v3/<name>``, ``custom/v2`` or ``custom/v3``; None if it does not exist."""
    index, documents = _archive()
    place = [number for number in find_list(index, name) if isinstance(number, int)] if name in index else []
    return documents[place[0] : place[0] + place[1]] if len(place) == 2 else None


@cache
def document(name: str) -> JsonObject:
    """Return a document, parsed; the caller must not change it. Raises LookupError if the document does not exist."""
    data = raw_document(name)
    if data is None:
        raise LookupError(name)
    return as_object(decode_json(data, max_bytes=MAX_BYTES, what=name), name)
