"""A chart's notes for people, out of the same run of Helm that renders its objects.

``helm template`` renders ``templates/NOTES.txt`` with everything else, and keeps it to itself; ``helm install --dry-run`` would
tell it, but takes no versions of the API, and would be a second run. So Helm gets the chart as a folder of links with a template
more. That includes the notes in an object that says it is a test, so that Helm does not sort it among the others and never looks
for it in a cluster, and whose content is Base64, so that no text can break it.

Files of a folder are rendered from the last name to the first, those of sub-charts before; ours comes last, so that notes which
change values, and are rendered twice now, do so when nobody is left to see it.
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
"""What Go's templates write for nothing, and Helm takes out of each file."""


def has_notes(chart: Path) -> bool:
    """Whether Helm would render notes: there are some, and ``.helmignore`` does not leave them out. Blocking."""
    if not (chart / TEMPLATES_FOLDER / NOTES_FILE).is_file():
        return False
    ignore = chart / FILE_NAME
    try:
        with ignore.open("rb") as file:
            rules = read_rules(file.read(MAX_BYTES).decode("utf-8-sig", "replace"))
    except FileNotFoundError:
        return True
    except (OSError, ArtifactError):
        return False  # Helm will say what is wrong with it
    return not any(
        is_ignored(rules, path, is_folder=path == TEMPLATES_FOLDER)
        for path in (TEMPLATES_FOLDER, f"{TEMPLATES_FOLDER}/{NOTES_FILE}")
    )


def is_notes(source: str) -> bool:
    """Whether a document came from our template, by the ``# Source`` above it."""
    return is_added(source, TEMPLATE_FILE)


def read_notes(obj: JsonObject) -> str:
    """The notes in the object that our template rendered to; "" where a chart made it something else."""
    try:
        text = base64.b64decode(find_str(obj, "data", "notes"), validate=True).decode()
    except (FormatError, binascii.Error, UnicodeDecodeError):
        return ""
    return text.replace(_NO_VALUE, "")
