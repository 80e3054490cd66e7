"""The end mark: an object that an additional template makes, and that Helm sorts after all others of a chart.

The mark has two uses. First, ``helm template`` trims the end of its output, although empty lines at the end of a block scalar
(``|+``) are significant; with the mark at the end, it trims only the mark. Second, the mark stops a run that reads from the
cluster as soon as everything is rendered. Otherwise Helm 4 would look up the kind of each object in the cluster, and refuse
objects whose definition does not exist yet. To stop there, Helm gets ``--output-dir``, with which it writes each document to a
file that is named after its template. A folder lies in place of the mark's file, so Helm fails at the mark; with ``--debug``,
it still writes the hooks.
"""

import re
from pathlib import Path
from typing import Final

from wharfinger.packages.definition.module_folder import TEMPLATES_FOLDER
from wharfinger.packages.errors import RenderError
from wharfinger.packages.rendering.added_templates import is_added

END_FILE: Final = "!!wharfinger-end.yaml"
END_TEMPLATE: Final = 'apiVersion: wharfinger.dev/v1\nkind: "~"\nmetadata: {name: end}\n'
"""The template of the end mark. Helm puts kinds that it does not know after all known kinds, sorted by name. The tilde comes
after all letters, so the end mark is the last object.
"""

_WROTE: Final = re.compile(r"^wrote (.+)$", re.MULTILINE)


def is_end(source: str) -> bool:
    """Return whether a document is the end mark, according to its ``# Source`` line."""
    return is_added(source, END_FILE)


def block_end(out: Path, chart_name: str) -> Path:
    """Create the folder ``out`` for ``--output-dir``, with a folder in place of the mark's file, so that Helm cannot write the
    mark. Return the path of the mark. Blocking.
    """
    place = out / chart_name / TEMPLATES_FOLDER / END_FILE
    place.mkdir(mode=0o700, parents=True)
    return place


def stopped_at_end(stderr: str, place: Path) -> bool:
    """Return whether Helm's only error is that it cannot write the end mark, because ``place`` is a folder."""
    errors = re.findall(r"^Error: (.*)$", stderr, re.MULTILINE)
    return errors == [f"open {place}: is a directory"]


def read_written(out: Path, stdout: str, max_bytes: int) -> str:
    """Return the documents that Helm wrote, as it would have printed them, in the order of its "wrote" lines.

    Blocking. Raises RenderError and OSError.
    """
    files: dict[str, list[str]] = {}
    found: list[str] = []
    room = max_bytes
    for place in _WROTE.findall(stdout):
        path = Path(place)
        if not path.is_relative_to(out):
            raise RenderError(f"helm wrote an unexpected {path.name}")
        name = path.relative_to(out).as_posix()
        if name not in files:
            with path.open("rb") as file:
                data = file.read(room + 1)
            room -= len(data)
            if room < 0:
                raise RenderError(f"the chart renders to more than {max_bytes} bytes; make it render less")
            files[name] = _documents(name, data.decode())
        if not files[name]:
            raise RenderError(f"{name}: helm wrote fewer documents than it reported")
        found.append(files[name].pop(0))
    if any(files.values()):
        raise RenderError("helm wrote more documents than it reported")
    return "".join(found)


def _documents(name: str, text: str) -> list[str]:
    """Return the documents in one file, first to last, each with its header."""
    head = f"---\n# Source: {name}\n"
    _, *documents = re.split(rf"^{re.escape(head)}", text, flags=re.MULTILINE)
    return [head + document for document in documents]
