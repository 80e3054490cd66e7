"""A chart's notes for users, from the same run of Helm that renders its objects.

``helm template`` renders ``templates/NOTES.txt`` with the other templates, but does not print it; ``helm install --dry-run``
would print the notes, but accepts no API versions, and would be a second run. So Helm gets the chart as a folder of links with an
additional template. That template includes the notes in an object that is marked as a test, so that Helm does not sort it among
the objects and never looks for it in a cluster. The content is Base64, so that no text can break it.

The files of a folder are rendered from the last name to the first, after those of sub-charts. The name of the added template
comes before the names of the chart's own files, so it is rendered after them. This matters for notes that change values: their
second rendering, by the added template, cannot affect the objects.
"""

import base64
import binascii
from pathlib import Path
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.packages.charts.helmignore import FILE_NAME, MAX_BYTES, is_ignored, read_rules
from wharfinger.packages.definition.module_folder import TEMPLATES_FOLDER
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.rendering.added_templates import is_added

NOTES_FILE: Final = "NOTES.txt"
TEMPLATE_FILE: Final = "!!wharfinger-notes.yaml"
TEMPLATE: Final = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: notes, annotations: {"helm.sh/hook": test}}
data: {notes: {{ include (print .Chart.Name "/templates/NOTES.txt") . | b64enc | quote }}}
"""
_NO_VALUE: Final = "<no value>"
"""The text that Go's templates write for a missing value, and that Helm removes from each file."""


def has_notes(chart: Path) -> bool:
    """Return whether Helm would render notes: they exist, and ``.helmignore`` does not exclude them. Blocking."""
    if not (chart / TEMPLATES_FOLDER / NOTES_FILE).is_file():
        return False
    ignore = chart / FILE_NAME
    try:
        with ignore.open("rb") as file:
            rules = read_rules(file.read(MAX_BYTES).decode("utf-8-sig", "replace"))
    except FileNotFoundError:
        return True
    except (OSError, ArtifactError):
        return False  # Helm will report the error
    return not any(
        is_ignored(rules, path, is_folder=path == TEMPLATES_FOLDER)
        for path in (TEMPLATES_FOLDER, f"{TEMPLATES_FOLDER}/{NOTES_FILE}")
    )


def is_notes(source: str) -> bool:
    """Return whether a rendered document comes from the template that was added to the chart for its notes; its ``# Source``
    line names the template.
    """
    return is_added(source, TEMPLATE_FILE)


def read_notes(obj: JsonObject) -> str:
    """Return the notes in the object of the added template; "" if a chart has changed it."""
    try:
        text = base64.b64decode(find_str(obj, "data", "notes"), validate=True).decode()
    except (FormatError, binascii.Error, UnicodeDecodeError):
        return ""
    return text.replace(_NO_VALUE, "")
