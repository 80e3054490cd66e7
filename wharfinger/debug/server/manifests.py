"""Rendered manifests fit to be shown: the same objects, without what is secret in them.

Pure, but slow on large charts: keep it off the event loop. A manifest is read and written again, document by document, so
that what comes out is YAML whatever was replaced in it; the comments before a document (Helm's ``# Source:``) stay, those
inside it go. Values of Secrets are blanked wherever they are, and all else is redacted as a dump is.
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
"""Where a document starts. Inside of one, not even a block of text may have such a line (YAML 1.2.2, §9.1.2)."""


def redacted_manifest(manifest: str, secrets: Collection[str]) -> str:
    """A stream of YAML documents with nothing secret in it; ``secrets`` are known ones. Raises FormatError."""
    text = TextRedactor(secrets)
    return "".join(part for piece in _DOCUMENT.split(manifest) for part in _redacted(piece, text, secrets))


def _redacted(piece: str, text: TextRedactor, secrets: Collection[str]) -> Iterator[str]:
    # A comment is known by its own line here; other breaks that YAML has begin a document of the same piece, without one.
    comments = takewhile(lambda line: line.startswith("#"), piece.removeprefix("---").lstrip().splitlines())
    for document in read_yaml_all(piece, what="the rendered manifest"):
        yield "---\n"
        yield from (f"{printable(text.redact(line))}\n" for line in comments)
        yield render_yaml(redact_value(document, secrets=secrets))
