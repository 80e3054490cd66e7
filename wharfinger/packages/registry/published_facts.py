"""The facts about a package that a registry provides without the package's files: requirements and changelog.

They are copied from ``package.yaml`` and ``changelog.yaml`` into the configuration of the pushed image, so that a scan of a
repository reads them with one small request. A changelog is a list of texts, or an object of such lists (``features``,
``fixes``). If one of its keys is the pushed version, only the part below this key is copied. A broken changelog is left out,
because it must not prevent a push.
"""

from pathlib import Path
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json, find_object
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.definition.package_file import MAX_BYTES, PACKAGE_FILE

CHANGELOGS: Final = ("changelog.yaml", "changelog.yml")
MAX_FACTS: Final = 64 * 1024
"""The largest size in bytes of each of the two facts: the requirements, and the changelog. A larger fact is left out."""


def published_facts(folder: Path, version: str) -> JsonObject:
    """Return the requirements and the changelog of the package in ``folder``, which is pushed as ``version``. A fact that is
    missing, or larger than MAX_FACTS, is left out. Blocking.
    """
    facts: JsonObject = {}
    package = _document(folder / PACKAGE_FILE)
    if isinstance(package, dict) and (needs := find_object(package, "requirements")):
        facts["requirements"] = needs
    for name in CHANGELOGS:
        if changes := _of_version(_document(folder / name), version):
            facts["changelog"] = changes
            break
    return {name: fact for name, fact in facts.items() if len(encode_json(fact)) <= MAX_FACTS}


def _of_version(changelog: JsonValue, version: str) -> JsonValue:
    if isinstance(changelog, dict):
        for key in (version, f"v{version}", version.removeprefix("v")):
            if key in changelog:
                return changelog[key]
    return changelog


def _document(path: Path) -> JsonValue:
    """Return the content of a YAML file; None if it is missing or cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        return read_yaml(data, what=path.name) if len(data) <= MAX_BYTES else None
    except (OSError, FormatError):
        return None
