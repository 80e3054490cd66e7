"""The reader of ``helm template``'s output: documents in Helm's install order, each with the name of its template.

For each document, Helm prints ``---``, a line ``# Source: <chart>/<path>`` and the text. It prints first the files of ``crds/``
folders (with ``--include-crds``), then objects in install order, then hooks. A file in ``crds/`` is printed as it is: it may
contain several documents, and only the first of them has a Source line.
"""

import re
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object, find, find_list, find_str
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.errors import RenderError
from wharfinger.packages.rendering.end_mark import is_end
from wharfinger.packages.rendering.notes_template import is_notes, read_notes
from wharfinger.packages.rendering.renderer import HOOK_ANNOTATION, Rendered

MAX_DOCUMENTS: Final = 20_000
MAX_MESSAGE: Final = 1_000

_SEPARATOR: Final = re.compile(r"^---[ \t]*(?:#[^\n]*)?$\n?", re.MULTILINE)
_SOURCE: Final = re.compile(r"\A# Source: ([^\n]+)\n?")
_NOISE: Final = re.compile(
    r"^(?:WARNING: |level=|time=|coalesce\.go|walk\.go|\d{4}/\d\d/\d\d |Use --debug flag|I\d{4} |W\d{4} )", re.MULTILINE
)
_TRACE: Final = re.compile(r"^helm\.go:\d+: ", re.MULTILINE)
"""The start of the trace that Helm 3 adds to an error with ``--debug``."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document of the output. ``source`` is the template or file of its Source line, if there is such a line."""

    source: str
    text: str

    @property
    def is_crd(self) -> bool:
        """True if the document came from a ``crds/`` folder of the chart or of a sub-chart (not from ``templates/crds/``)."""
        parts = self.source.split("/")[1:]
        while len(parts) > 2 and parts[0] == "charts":
            parts = parts[2:]
        return len(parts) > 1 and parts[0] == "crds"


def split_documents(output: str) -> tuple[Document, ...]:
    """Return the documents of the output. Empty lines at the end of a document are kept, because they may be part of a block
    scalar (``|+``).

    Raises RenderError for more than MAX_DOCUMENTS.
    """
    found: list[Document] = []
    source = ""
    for text in _SEPARATOR.split(output):
        if match := _SOURCE.match(text):
            source = match[1].strip()
        if text.strip():
            found.append(Document(source, text))
        if len(found) > MAX_DOCUMENTS:
            raise RenderError(f"the chart renders to more than {MAX_DOCUMENTS} documents")
    return tuple(found)


def read_output(output: str) -> Rendered:
    """Sort the documents of Helm's output into CRDs, hooks and objects, and rebuild the text that Helm would store for the
    objects.

    Objects inside a ``kind: List`` are separate objects, as in Helm. The object that contains the notes
    (:mod:`wharfinger.packages.rendering.notes_template`) is not a hook. Raises RenderError naming the template.
    """
    notes = ""
    crds: list[JsonObject] = []
    hooks: list[JsonObject] = []
    objects: list[JsonObject] = []
    manifest: list[str] = []
    for document in split_documents(output):
        if is_end(document.source):
            continue
        found = document_objects(document)
        if document.is_crd:
            crds.extend(found)
        elif found and is_notes(document.source):
            notes = read_notes(found[0])
        elif found and isinstance(find(found[0], "metadata", "annotations", HOOK_ANNOTATION), str):
            hooks.extend(document_objects(Document(document.source, _printed(document.text))))
        elif found:
            objects.extend(found)
            manifest.append("---\n" + document.text)
    return Rendered(tuple(crds), tuple(hooks), tuple(objects), "".join(manifest), notes)


def _printed(text: str) -> str:
    """Return a hook's text without the line end that Helm prints after it. A manifest's line end is part of its text."""
    return text[:-1] if text.endswith("\n\n") else text


def document_objects(document: Document) -> list[JsonObject]:
    """Return the objects of one document; a ``kind: List`` gives its items. Raises RenderError naming the template."""
    try:
        value = read_yaml(document.text.encode(), what=document.source or "output")
        if value is None:
            return []
        top = as_object(value, document.source)
        if find_str(top, "apiVersion") == "v1" and find_str(top, "kind") == "List":
            found = [as_object(item, f"{document.source}: items") for item in find_list(top, "items")]
        else:
            found = [top]
        for entry in found:
            if not find_str(entry, "apiVersion") or not find_str(entry, "kind"):
                raise RenderError(f"{document.source}: an object without apiVersion or kind; correct the template")
    except FormatError as error:
        where = "" if document.source in str(error) else f"{document.source}: "
        raise RenderError(f"{where}{error}; correct the template or the values it uses") from error
    return found


def clean_message(stderr: str, hide: dict[str, str]) -> str:
    """Return Helm's own error message in one bounded line, without warnings and hints. ``hide`` maps paths to the words that
    replace them.
    """
    start = stderr.rfind("\nError: ")
    told = _TRACE.split(stderr[start + 1 :] if start >= 0 else stderr)[0]
    lines = [line.strip() for line in told.splitlines() if line.strip() and not _NOISE.match(line)]
    message = " ".join(lines).removeprefix("Error: ")
    for path, name in hide.items():
        message = message.replace(path, name)
    message = "".join(character if character.isprintable() else " " for character in message)
    return message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…"
