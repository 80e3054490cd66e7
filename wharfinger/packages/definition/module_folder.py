"""Module folders in addon-operator's layout: how one is known, what its name means, and what is its own in its values.

A module folder has no file that says what it is. It is known by what only such a folder has: ``hooks/``, ``openapi/`` or
``enabled``; and where there is no Chart.yaml that would make a plain chart of it, by ``templates/``, ``crds/``, or a
``values.yaml`` with a section named after the module.

Its ``values.yaml`` is spelled in one of two ways: with a section under the module's key (``sysctlTuner:``), beside which only the
operator's own keys are read; or flat, all of it the module's, where there is no such section, no flag of the module
(``sysctlTunerEnabled``) and no ``global``.

The name is in kebab-case, the key of its values is the same name in camelCase, and one must lead back to the other, because
hooks and templates know only the key. A number before the name is a weight: ``002-sysctl-tuner`` is sysctl-tuner, and runs
before what has a higher one.
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
"""The key of what all modules see; no module has this name."""

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
    if not _KEBAB.match(name) or kebab_name(camel_name(name)) != name:
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


def kebab_name(camel: str) -> str:
    """The module behind a key of values: ``sysctlTuner`` is ``sysctl-tuner``; `check_module_name` says whether it is one."""
    return re.sub("[A-Z]", lambda letter: "-" + letter[0].lower(), camel)


def own_section(values: JsonObject, name: str) -> JsonObject:
    """What is the module's own in its ``values.yaml``, in either spelling; in the first the other keys are the operator's.

    Raises ArtifactError where the section is no object.
    """
    key = camel_name(name)
    if values.keys().isdisjoint((key, f"{key}{ENABLED_SUFFIX}", GLOBAL_NAME)):
        return values
    return section_of(values, key)


def section_of(values: JsonObject, key: str, what: str = VALUES_FILE) -> JsonObject:
    """An object under a key; {} where nothing is there. Raises ArtifactError for anything else."""
    section = values.get(key)
    if section is None:
        return {}
    if not isinstance(section, dict):
        raise ArtifactError(f"{what}: {key}: expected an object, found {type_name(section)}")
    return section


def enabled_flag(values: JsonObject, name: str, what: str = VALUES_FILE) -> bool | None:
    """What a ``values.yaml`` says under ``<key>Enabled``; None where it says nothing. Raises ArtifactError for no boolean."""
    key = f"{camel_name(name)}{ENABLED_SUFFIX}"
    flag = values.get(key)
    if flag is not None and not isinstance(flag, bool):
        raise ArtifactError(f"{what}: {key}: expected true or false, found {type_name(flag)}")
    return flag
