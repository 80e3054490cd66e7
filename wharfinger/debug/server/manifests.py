"""Rendered manifests that are safe to show: the same objects, without their secrets.

Pure, but slow on large charts: keep it off the event loop. A manifest is parsed and written again, document by document, so
the output is always YAML. Comments before a document (Helm's ``# Source:``) are kept, comments inside it are dropped. All
values of Secrets are blanked, and everything else is redacted as in a dump.
"""

import re
from collections.abc import Collection, Iterator
from itertools import takewhile
from typing import Final

from wharfinger.debug.printing.output import render_yaml
from wharfinger.formats.redaction.redaction import redact_value
from wharfinger.formats.redaction.redaction_text import TextRedactor
from wharfinger.formats.terminal_text import printable
from wharfinger.formats.yaml.reader import read_yaml_all

_DOCUMENT: Final = re.compile(r"^(?=---(?:[ \t\r\n]|\Z))", re.MULTILINE)
"""The start of a document. No line inside of a document may match this, not even in a block scalar (YAML 1.2.2, §9.1.2)."""


def redacted_manifest(manifest: str, secrets: Collection[str]) -> str:
    """Return a stream of YAML documents without secrets; ``secrets`` are the known ones. Raises FormatError."""
    text = TextRedactor(secrets)
    return "".join(part for piece in _DOCUMENT.split(manifest) for part in _redacted(piece, text, secrets))


def _redacted(piece: str, text: TextRedactor, secrets: Collection[str]) -> Iterator[str]:
    # Only a line of its own is recognized as a comment. If YAML finds several documents in a piece, only the first keeps its
    # comments.
    comments = takewhile(lambda line: line.startswith("#"), piece.removeprefix("---").lstrip().splitlines())
    for document in read_yaml_all(piece, what="the rendered manifest"):
        yield "---\n"
        yield from (f"{printable(text.redact(line))}\n" for line in comments)
        yield render_yaml(redact_value(document, secrets=secrets))
