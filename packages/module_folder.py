"""Module folders in addon-operator's layout: how one is known, what its name means, and what is its own in its values.

A module folder has no file that says what it is. It is known by what only such a folder has: ``hooks/``, ``openapi/`` or
``enabled``; and where there is no Chart.yaml that would make a plain chart of it, by ``templates/``, ``crds/``, or a
``values.yaml`` with a section named after the module.

The name is in kebab-case, the key of its values is the same name in camelCase, and one must lead back to the other, because
hooks and templates know only the key. A number before the name is a weight: ``002-sysctl-tuner`` is sysctl-tuner, and runs
before what has a higher one.
"""

import re
from typing import Final

from wharfinger.formats.json_value import JsonObject, type_name
from wharfinger.packages.chart import CHART_FILE
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.package_files import PackageFiles

VALUES_FILE: Final = "values.yaml"
HOOKS_FOLDER: Final = "hooks"
SCHEMA_FOLDER: Final = "openapi"
ENABLED_SCRIPT: Final = "enabled"
TEMPLATES_FOLDER: Final = "templates"
CRDS_FOLDER: Final = "crds"

_WEIGHTED: Final = re.compile(r"([0-9]{1,6})-(.+)\Z", re.ASCII)
_KEBAB: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}\Z")


def camel_name(kebab: str) -> str:
    """The key of a package's values: ``sysctl-tuner`` is ``sysctlTuner``."""
    first, *rest = kebab.split("-")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def split_weight(folder: str) -> tuple[int | None, str]:
    """The weight before a module folder's name, and the name: ``002-web`` is 2 and ``web``."""
    match = _WEIGHTED.match(folder)
    return (int(match[1]), match[2]) if match else (None, folder)


def check_module_name(name: str) -> None:
    """Raises ArtifactError for a name that its key in the values would not lead back to."""
    kebab = re.sub("[A-Z]", lambda letter: "-" + letter[0].lower(), camel_name(name))
    if not _KEBAB.match(name) or kebab != name:
        raise ArtifactError(
            f"module {name[:80]!r}: its name must be kebab-case that can be restored from its key in the values "
            f"({camel_name(name)[:80]}): lower-case words joined by single '-', each but the first beginning with a letter"
        )


def is_module_folder(files: PackageFiles, name: str) -> bool:
    """Whether a folder without ``package.yaml`` is a module folder rather than a plain chart, or nothing."""
    if files.has_folder(HOOKS_FOLDER) or files.has_folder(SCHEMA_FOLDER) or files.has_file(ENABLED_SCRIPT):
        return True
    if files.has_file(CHART_FILE):
        return False
    if files.has_folder(TEMPLATES_FOLDER) or files.has_folder(CRDS_FOLDER):
        return True
    return camel_name(name) in (files.read_object(VALUES_FILE) or {})


def own_section(values: JsonObject, name: str) -> JsonObject:
    """The module's section of its ``values.yaml``; the other keys are the operator's, or Helm's.

    Raises ArtifactError where the section is no object.
    """
    key = camel_name(name)
    section = values.get(key)
    if section is None:
        return {}
    if not isinstance(section, dict):
        raise ArtifactError(f"{VALUES_FILE}: {key}: expected an object, found {type_name(section)}")
    return section
