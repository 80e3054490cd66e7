"""Whether a chart looks into the cluster while it renders (the template function ``lookup``), found in the text of its files.

A call of ``lookup`` is its name, white space, and an argument: text of a template that has no such thing cannot call it. What is
found need not be called: a helper that nobody includes, a comment. Then the answer is yes all the same, which costs a render that
asks the cluster, while a wrong no would render what is not so.

``tpl`` renders a text that comes from elsewhere, from values or from a file of the chart. Where a chart has that, these are
looked at, too.
"""

import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wharfinger.formats.json_value import JsonObject, encode_json
from wharfinger.packages.chart_folder import LEFT_OUT

MAX_FILES: Final = 10_000
MAX_FILE: Final = 16 * 1024 * 1024
MAX_TOTAL: Final = 128 * 1024 * 1024
"""Bytes that are looked at in one file, archives unpacked, and in all of them; what is beyond counts as a lookup."""

_ARCHIVES: Final = (".tgz", ".tar.gz")
_ARGUMENT: Final = rb"\s+[(\"`$.']"
_LOOKUP: Final = re.compile(rb"(?<![\w.$])lookup" + _ARGUMENT)
_TPL: Final = re.compile(rb"(?<![\w.$])tpl\b")


@dataclass(frozen=True, slots=True)
class LookupUse:
    """What the files of a chart say: ``calls`` a template's own call, ``tpl`` that texts from elsewhere are rendered."""

    calls: bool
    tpl: bool

    def with_values(self, values: JsonObject) -> bool:
        """Whether the chart may look into the cluster when it is rendered with these values. Raises ShapeError."""
        return self.calls or (self.tpl and b"lookup" in encode_json(values))


def lookup_use(chart: Path, *, is_package: bool) -> LookupUse:
    """Look through a chart, and all charts in it. ``is_package``: as Helm sees a package, without what is not its chart.

    What cannot be read is nothing that Helm could use. Blocking.
    """
    found = _Search(MAX_TOTAL)
    for name, path in _files(chart, is_package=is_package):
        found.add(name, path)
        if found.calls:
            break
    return LookupUse(found.calls or (found.tpl and found.elsewhere), found.tpl)


@dataclass(slots=True)
class _Search:
    room: int
    calls: bool = False
    tpl: bool = False
    elsewhere: bool = False
    files: int = 0

    def add(self, name: tuple[str, ...], path: Path) -> None:
        """Look at one file; ``name`` is where it is in the chart."""
        self.files += 1
        archive = name[-1].endswith(_ARCHIVES) and name[0] == "charts"
        data = _content(path, archive=archive)
        self.room -= len(data)
        if self.files > MAX_FILES or len(data) > MAX_FILE or self.room < 0:
            self.calls = True
        elif archive or _is_template(name):
            self.calls = self.calls or _LOOKUP.search(data) is not None
            self.tpl = self.tpl or _TPL.search(data) is not None
        else:
            self.elsewhere = self.elsewhere or b"lookup" in data


def _is_template(name: tuple[str, ...]) -> bool:
    """``templates/…``, and the same of a chart in ``charts/``."""
    return "templates" in (name[:1] if name[0] != "charts" else name)


def _files(chart: Path, *, is_package: bool) -> Iterator[tuple[tuple[str, ...], Path]]:
    root = os.fspath(chart)
    # Links are followed, as Helm does; a circle of them ends where there are too many files, or the name gets too long.
    for here, folders, files in os.walk(root, followlinks=True):
        above = () if here == root else Path(here).relative_to(chart).parts
        if not above and is_package:
            folders[:] = [name for name in folders if name not in LEFT_OUT]
            files = [name for name in files if name not in LEFT_OUT]  # noqa: PLW2901
        folders.sort()
        for name in sorted(files):
            yield (*above, name), Path(here, name)


def _content(path: Path, *, archive: bool) -> bytes:
    """At most one byte more than MAX_FILE."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            data = file.read(MAX_FILE + 1)
    except OSError:
        return b""
    if not archive:
        return data
    try:
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(data, MAX_FILE + 1)
    except zlib.error:
        return b""  # Helm cannot read it either
