"""The chart in a package, as a folder of links for one run of Helm.

A package has more than its chart: hooks, schemas, a description of itself. Helm would read all of it into memory for
``.Files``, and refuse files that are too big for a chart (a hook may be a program of fifty megabytes). Helm would also take
defaults from the package's ``values.yaml``, although the values are complete already. This would restore values that a hook
removed. So Helm gets a separate folder: a ``Chart.yaml``, and links to the chart's files, but not to files that only Wharfinger
uses.

CRDs are not included: Helm's rules do not apply to ``crds/`` of a package (:mod:`wharfinger.packages.definition.crd_files`).
"""

import os
from pathlib import Path
from typing import Final

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.packages.charts.chart import CHART_FILE, MAX_FILES
from wharfinger.packages.definition.module_folder import (
    CRDS_FOLDER,
    ENABLED_SCRIPT,
    HOOKS_FOLDER,
    SCHEMA_FOLDER,
    VALUES_FILE,
)
from wharfinger.packages.definition.package_file import MODULE_FILE, PACKAGE_FILE
from wharfinger.packages.errors import RenderError

LEFT_OUT: Final = frozenset(
    {
        CHART_FILE,
        VALUES_FILE,
        CRDS_FOLDER,
        HOOKS_FOLDER,
        SCHEMA_FOLDER,
        ENABLED_SCRIPT,
        PACKAGE_FILE,
        MODULE_FILE,
        "images_digests.json",
        "version.json",
        "changelog.yaml",
        "changelog.yml",
    }
)
"""The files and folders of a package that are not linked into the chart's folder."""
NOT_IN_SYNTHETIC: Final = frozenset({"docs", "images", "lib"})
"""The folders that are not linked either if the package has no Chart.yaml of its own (spec hook-protocol §5.8)."""


def make_chart_folder(package: Path, chart_file: JsonObject, into: Path) -> None:
    """Make the new folder ``into``: ``chart_file`` as its Chart.yaml, and links to the chart's files in ``package``.

    Blocking. Raises RenderError.
    """
    try:
        source = package.resolve(strict=True)  # `package` may be a link that is about to change
        left_out = LEFT_OUT if (source / CHART_FILE).exists() else LEFT_OUT | NOT_IN_SYNTHETIC
        into.mkdir(mode=0o700)
        (into / CHART_FILE).write_text(write_yaml(chart_file))
        with os.scandir(source) as entries:
            for count, entry in enumerate(entries, 1):
                if count > MAX_FILES:
                    raise RenderError(f"the package has more than {MAX_FILES} files in its folder")
                if entry.name not in left_out:
                    (into / entry.name).symlink_to(entry.path)
    except FileNotFoundError as error:
        raise RenderError("the package's folder is missing; install the package again", transient=True) from error
    except OSError as error:
        raise RenderError(
            f"the chart's folder for helm cannot be made: {error.strerror}; check the disk", transient=True
        ) from error
