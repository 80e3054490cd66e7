"""Additional templates in a chart: Helm gets the chart as a folder of links, with extra files in ``templates/``."""

import os
from collections.abc import Mapping
from pathlib import Path

from wharfinger.packages.charts.chart import MAX_FILES
from wharfinger.packages.definition.module_folder import TEMPLATES_FOLDER
from wharfinger.packages.errors import RenderError


def link_chart(chart: Path, into: Path) -> None:
    """Make the new folder ``into`` with links to everything in a chart's folder. Blocking. Raises OSError, RenderError."""
    into.mkdir(mode=0o700)
    _link_all(chart.resolve(strict=True), into, frozenset())


def add_templates(chart: Path, added: Mapping[str, str]) -> None:
    """Add files to ``templates`` of a chart that is a folder of links. ``added`` has their texts by name.

    Blocking. Raises OSError, RenderError.
    """
    templates = chart / TEMPLATES_FOLDER
    source = templates.resolve(strict=True)
    templates.unlink()
    templates.mkdir(mode=0o700)
    _link_all(source, templates, frozenset(added))
    for name, text in added.items():
        (templates / name).write_text(text)


def is_added(source: str, name: str) -> bool:
    """Return whether a document came from the template of that name, according to its ``# Source`` line."""
    return source.partition("/")[2] == f"{TEMPLATES_FOLDER}/{name}"


def _link_all(source: Path, into: Path, without: frozenset[str]) -> None:
    with os.scandir(source) as entries:
        for count, entry in enumerate(entries, 1):
            if count > MAX_FILES:
                raise RenderError(f"the chart has more than {MAX_FILES} files in its folder")
            if entry.name not in without:
                (into / entry.name).symlink_to(entry.path)
