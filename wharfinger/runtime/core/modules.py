"""The Modules that are on: their names, and the global values that packages and hooks get."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from wharfinger.formats.json.value import JsonObject
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.resources.identity import GLOBAL, ModuleId, is_global
from wharfinger.runtime.resources.manifests import global_values
from wharfinger.runtime.scheduler.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class Modules:
    """A read-only view of the packages of one cluster. It answers which Modules are on, and has the global values."""

    instances: Mapping[str, Instance]
    scheduler: Scheduler
    kubernetes_version: str
    elsewhere: list[Callable[[], tuple[str, ...]]] = field(default_factory=list)
    """Functions that return the names of Modules that are on, but managed by another daemon."""

    def global_values(self) -> JsonObject:
        """Return the values that every package gets under ``global``: the Modules that are on, the version of Kubernetes, and
        the values of the Module ``global``, if it exists.
        """
        modules = [self.instances[name] for name in sorted(self.instances) if "." not in name]
        on = [each for each in modules if self.scheduler.enabled(each.id.name) and not is_global(each.id)]
        own = self.instances.get(GLOBAL)
        known: dict[str, Collection[str] | None] = {each.id.name: each.crds.established for each in on}
        known |= dict.fromkeys((name for names in self.elsewhere for name in names()), None)
        values = None
        if own is not None and own.configuration.configured_by is not None:
            values = own.configuration.values
        return global_values(self.kubernetes_version, dict(sorted(known.items())), values)

    def global_settings(self) -> JsonObject:
        """Return the part of the global values that a user set; hooks read it from the file that CONFIG_VALUES_PATH names."""
        own = self.instances.get(GLOBAL)
        return own.configuration.configured.settings if own is not None else {}

    def global_secrets(self) -> tuple[str, ...]:
        """Return the secret texts of the global values."""
        own = self.instances.get(GLOBAL)
        return own.secrets if own is not None else ()

    def before(self, instance: Instance) -> tuple[str, ...]:
        """Return the names of the Modules that are on and come before the package by order, then by name."""
        if instance.files.definition is None:
            return ()
        place = instance.files.definition.weight, instance.id.name
        return tuple(
            name
            for name, each in sorted(self.instances.items())
            if isinstance(each.id, ModuleId)
            and each.files.definition is not None
            and (each.files.definition.weight, name) < place
            and self.scheduler.enabled(name)
        )
