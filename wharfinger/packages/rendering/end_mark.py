"""An object of our own that Helm sorts behind all others of a chart, in a template more.

It does two things. ``helm template`` trims the end of what it prints, where a block scalar (``|+``) may have lines that count:
it trims the mark instead. And a run that looks into the cluster is ended by it, once everything is rendered: Helm 4 would go on
to ask the cluster for the kind of each object, and refuse those whose definition is not there yet. With ``--output-dir`` each
document goes into a file under the name of its template; a folder is in the place of the mark's, so Helm stops at the mark and,
with ``--debug``, still writes the hooks.
"""

import re
from pathlib import Path
from typing import Final

from wharfinger.packages.definition.module_folder import TEMPLATES_FOLDER
from wharfinger.packages.errors import RenderError
from wharfinger.packages.rendering.added_templates import is_added

END_FILE: Final = "!!wharfinger-end.yaml"
END_TEMPLATE: Final = 'apiVersion: wharfinger.dev/v1\nkind: "~"\nmetadata: {name: end}\n'
"""Kinds that Helm does not know come last, by name; no letter is behind a tilde."""

_WROTE: Final = re.compile(r"^wrote (.+)$", re.MULTILINE)


def is_end(source: str) -> bool:
    """Whether a document is the mark, by the ``# Source`` above it."""
    return is_added(source, END_FILE)


def block_end(out: Path, chart_name: str) -> Path:
    """Make the folder ``out`` for ``--output-dir``, where the mark cannot be written; the place of the mark. Blocking."""
    place = out / chart_name / TEMPLATES_FOLDER / END_FILE
    place.mkdir(mode=0o700, parents=True)
    return place


def stopped_at_end(stderr: str, place: Path) -> bool:
    """Whether Helm failed because it came to the mark, and for nothing else."""
    errors = re.findall(r"^Error: (.*)$", stderr, re.MULTILINE)
    return errors == [f"open {place}: is a directory"]


def read_written(out: Path, stdout: str, max_bytes: int) -> str:
    """What Helm wrote, as it would have printed it: each document in the order of the lines that say so.

    Blocking. Raises RenderError and OSError.
    """
    files: dict[str, list[str]] = {}
    found: list[str] = []
    room = max_bytes
    for place in _WROTE.findall(stdout):
        path = Path(place)
        if not path.is_relative_to(out):
            raise RenderError(f"helm wrote {path.name} where it was not told to")
        name = path.relative_to(out).as_posix()
        if name not in files:
            with path.open("rb") as file:
                data = file.read(room + 1)
            room -= len(data)
            if room < 0:
                raise RenderError(f"the chart renders to more than {max_bytes} bytes; make it render less")
            files[name] = _documents(name, data.decode())
        if not files[name]:
            raise RenderError(f"{name}: helm wrote fewer documents than it says")
        found.append(files[name].pop(0))
    if any(files.values()):
        raise RenderError("helm wrote more documents than it says")
    return "".join(found)


def _documents(name: str, text: str) -> list[str]:
    """The documents that went into one file, first to last, each with its head."""
    head = f"---\n# Source: {name}\n"
    _, *documents = re.split(rf"^{re.escape(head)}", text, flags=re.MULTILINE)
    return [head + document for document in documents]
