"""Module folders in addon-operator's layout: how to recognize one, the meaning of its name, and its own values.

A module folder has no file that names its kind. A folder without ``package.yaml`` and ``module.yaml`` is a module folder if it
has ``hooks/``, ``openapi/`` or ``enabled``, or a weight in its name. If it has no ``Chart.yaml`` either, ``templates/``,
``crds/``, or a ``values.yaml`` with a section named after the module is enough; with a ``Chart.yaml``, such a folder is a
plain chart.

Its ``values.yaml`` is written in one of two ways. Either it has a section under the module's key (``sysctlTuner:``), and other
keys are not values of the module. Or it is flat: it has no such section, no flag of the module (``sysctlTunerEnabled``) and no
``global``, and all of it belongs to the module.

The name is in kebab-case, and the key of its values is the same name in camelCase. Each must convert back to the other,
because hooks and templates know only the key. A number before the name is a weight: ``002-sysctl-tuner`` is sysctl-tuner,
and runs before modules with a higher weight.
"""

import re
from typing import Final

from wharfinger.formats.json.value import JsonObject, type_name
from wharfinger.packages.charts.chart import CHART_FILE
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.files.package_files import PackageFiles

VALUES_FILE: Final = "values.yaml"
HOOKS_FOLDER: Final = "hooks"
SCHEMA_FOLDER: Final = "openapi"
ENABLED_SCRIPT: Final = "enabled"
TEMPLATES_FOLDER: Final = "templates"
CRDS_FOLDER: Final = "crds"
ENABLED_SUFFIX: Final = "Enabled"
GLOBAL_NAME: Final = "global"
"""The key of the values that all modules see; no module has this name."""

_WEIGHTED: Final = re.compile(r"([0-9]{1,6})-(.+)\Z", re.ASCII)
_KEBAB: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}\Z")


def camel_name(kebab: str) -> str:
    """Return the key of a package's values, such as ``sysctlTuner`` for ``sysctl-tuner``."""
    first, *rest = kebab.split("-")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def split_weight(folder: str) -> tuple[int | None, str]:
    """Split a module folder's name into weight and name, such as ``002-web`` into 2 and ``web``. The weight of a name without a
    number is None.
    """
    match = _WEIGHTED.match(folder)
    return (int(match[1]), match[2]) if match else (None, folder)


def check_module_name(name: str) -> None:
    """Raise ArtifactError if the key that this name has in the values would not convert back to the name."""
    if not _KEBAB.match(name) or kebab_name(camel_name(name)) != name:
        raise ArtifactError(
            f"module {name[:80]!r}: expected a name in kebab-case of at most 63 characters: lower-case words joined by single "
            "'-'. Each word after the first must begin with a letter; otherwise, the name could not be restored from its key "
            f"in the values ({camel_name(name)[:80]})"
        )


def is_module_folder(files: PackageFiles, name: str) -> bool:
    """Return whether a folder without ``package.yaml`` is a module folder."""
    if files.has_folder(HOOKS_FOLDER) or files.has_folder(SCHEMA_FOLDER) or files.has_file(ENABLED_SCRIPT):
        return True
    if files.has_file(CHART_FILE):
        return False
    if files.has_folder(TEMPLATES_FOLDER) or files.has_folder(CRDS_FOLDER):
        return True
    return camel_name(name) in (files.read_object(VALUES_FILE) or {})


def kebab_name(camel: str) -> str:
    """Return the module's name for a key of values, such as ``sysctl-tuner`` for ``sysctlTuner``.

    The result need not be a valid name; `check_module_name` checks that.
    """
    return re.sub("[A-Z]", lambda letter: "-" + letter[0].lower(), camel)


def own_section(values: JsonObject, name: str) -> JsonObject:
    """Return the module's own values from its ``values.yaml``: those in the module's section, or all if the file is flat.

    Raises ArtifactError if the section is not an object.
    """
    key = camel_name(name)
    if values.keys().isdisjoint((key, f"{key}{ENABLED_SUFFIX}", GLOBAL_NAME)):
        return values
    return section_of(values, key)


def section_of(values: JsonObject, key: str, what: str = VALUES_FILE) -> JsonObject:
    """Return the object under a key; {} if it is missing. Raises ArtifactError for anything else."""
    section = values.get(key)
    if section is None:
        return {}
    if not isinstance(section, dict):
        raise ArtifactError(f"{what}: {key}: expected an object, found {type_name(section)}")
    return section


def enabled_flag(values: JsonObject, name: str, what: str = VALUES_FILE) -> bool | None:
    """Return the value of ``<key>Enabled``; None if it is missing. Raises ArtifactError if it is not a boolean."""
    key = f"{camel_name(name)}{ENABLED_SUFFIX}"
    flag = values.get(key)
    if flag is not None and not isinstance(flag, bool):
        raise ArtifactError(f"{what}: {key}: expected true or false, found {type_name(flag)}")
    return flag
