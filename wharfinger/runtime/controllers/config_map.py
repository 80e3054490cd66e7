"""The ConfigMap of settings in addon-operator's format: settings and switches of all modules in one object. Pure.

::

    data:
      global: |                             # the global settings, YAML
        domain: example.com
      sysctlTuner: |                        # a module's settings, under its key
        sleep: 300
      sysctlTunerEnabled: "true"            # or "false"; overrides the module's files
      sysctlTunerMaintenance: NoResourceReconciliation

Each key is a module's name in camelCase, alone or with one of two suffixes (spec hook-protocol §5.5). A ConfigMap with a
mistake is not adopted at all, because a wrong part may change the meaning of the other parts; ``problems`` lists every mistake.
A key that names an unknown module causes only a warning, because the module may have been removed, or may be added later.

Settings must be objects, because they are merged with other objects. A list under a module's key is refused, although
addon-operator accepts it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, type_name
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.definition.module_folder import (
    ENABLED_SUFFIX,
    GLOBAL_NAME,
    camel_name,
    check_module_name,
    kebab_name,
)
from wharfinger.packages.errors import ArtifactError
from wharfinger.runtime.resources.resources import NO_RECONCILIATION

MAINTENANCE_SUFFIX: Final = "Maintenance"
_FLAGS: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class ModuleSettings:
    """The part of the ConfigMap about one module.

    ``enabled`` is None if the ConfigMap has no switch for the module; ``maintenance`` is NO_RECONCILIATION or empty.
    """

    settings: JsonObject = field(default_factory=dict)
    enabled: bool | None = None
    maintenance: str = ""


@dataclass(frozen=True, slots=True)
class ConfigMapSettings:
    """The content of a ConfigMap; empty if there are ``problems``. ``modules`` maps the names of known modules to their
    settings.
    """

    global_settings: JsonObject = field(default_factory=dict)
    modules: Mapping[str, ModuleSettings] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def read_config_map(data: Mapping[str, JsonValue], known: Collection[str]) -> ConfigMapSettings:
    """Read the ConfigMap's ``data``; ``known`` are the names of all existing modules."""
    reading = _Reading()
    for key in sorted(data):
        reading.read(key, data[key])
    if reading.problems:
        return ConfigMapSettings(problems=tuple(reading.problems))
    names = sorted(reading.settings.keys() | reading.enabled.keys() | reading.maintenance.keys())
    modules = {
        name: ModuleSettings(
            reading.settings.get(name, {}), reading.enabled.get(name), reading.maintenance.get(name, "")
        )
        for name in names
        if name in known
    }
    strangers = [f"{camel_name(name)[:80]}: there is no module {name[:80]}" for name in names if name not in known]
    return ConfigMapSettings(reading.global_settings, modules, (), tuple(strangers))


class _Reading:
    """A reading in progress: the settings, switches and problems found so far."""

    def __init__(self) -> None:
        self.global_settings: JsonObject = {}
        self.settings: dict[str, JsonObject] = {}
        self.enabled: dict[str, bool] = {}
        self.maintenance: dict[str, str] = {}
        self.problems: list[str] = []

    def read(self, key: str, text: JsonValue) -> None:
        """Read one key of the ConfigMap with its text, and record the problem if it is invalid."""
        try:
            if not isinstance(text, str):
                raise FormatError(f"expected a text, found {type_name(text)}")
            self._take(key, text)
        except (ArtifactError, FormatError) as error:
            self.problems.append(f"{key[:80]}: {error}")

    def _take(self, key: str, text: str) -> None:
        if key == GLOBAL_NAME:
            self.global_settings = _settings(text)
            return
        suffix = next((each for each in (ENABLED_SUFFIX, MAINTENANCE_SUFFIX) if key.endswith(each)), "")
        name = _module_name(key.removesuffix(suffix))
        if suffix == ENABLED_SUFFIX:
            self.enabled[name] = _flag(text)
        elif suffix == MAINTENANCE_SUFFIX:
            self.maintenance[name] = _mode(text)
        else:
            self.settings[name] = _settings(text)


def _module_name(camel: str) -> str:
    """Return the module that a key names. Raises FormatError or ArtifactError."""
    name = kebab_name(camel)
    if camel_name(name) != camel:
        raise FormatError(
            "expected a module's name in camelCase (sysctlTuner for the module sysctl-tuner), alone or followed by "
            f"{ENABLED_SUFFIX} or {MAINTENANCE_SUFFIX}"
        )
    check_module_name(name)
    if name == GLOBAL_NAME:
        raise FormatError("the global settings cannot be switched on or off; remove this key")
    return name


def _settings(text: str) -> JsonObject:
    settings = read_yaml(text, what="its text")
    if settings is None:
        return {}
    if not isinstance(settings, dict):
        raise FormatError(f"expected an object with settings, found {type_name(settings)}")
    return settings


def _flag(text: str) -> bool:
    flag = _FLAGS.get(text.strip())
    if flag is None:
        raise FormatError(f'expected "true" or "false", found {text.strip()[:60]!r}')
    return flag


def _mode(text: str) -> str:
    mode = text.strip()
    if mode not in ("", NO_RECONCILIATION):
        raise FormatError(f"expected {NO_RECONCILIATION}, found {mode[:60]!r}")
    return mode
