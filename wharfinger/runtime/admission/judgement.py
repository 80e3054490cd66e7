"""The judgement of an Application, a Module or a PackageRepository that is about to be stored.

A resource is refused only for one of these reasons:

* a spec that cannot be read, or an unsuitable name: one that is too long for a release, or the name of a Module with a dot;
* a release that belongs to another package, or a Module whose release would have to move to another namespace;
* settings that violate the schema or a rule of the loaded version, if the resource asks for that version and contains all of
  its settings itself;
* a cycle of dependencies.

Requirements that are not met now cause only a warning, because the missing package may be created next. A removal, a disable
or a version change that would break dependents causes only a warning, too, and the daemon holds it back later (see
:mod:`wharfinger.runtime.controllers.guard`). A resource that is being deleted is always admitted, and so is a change that leaves
the spec and the annotations as they are: finalizers and statuses must be writable in any case.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, assert_never

from wharfinger.formats.json.value import JsonObject, find, find_object, find_str
from wharfinger.formats.schemas.problem import Problem
from wharfinger.packages.errors import PackageError
from wharfinger.runtime.controllers.holds import is_ignoring, is_version
from wharfinger.runtime.controllers.holds import judge as judge_hold
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.inspector import InvalidSettings, UnknownSettings, ValidSettings
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.resources.identity import IdentityError, ModuleId, PackageId
from wharfinger.runtime.resources.release_claims import moved_text, taken_text
from wharfinger.runtime.resources.repositories import read_repository
from wharfinger.runtime.resources.resources import (
    IGNORE_DEPENDENTS,
    PackageSpec,
    SpecError,
    is_deleting,
    read_application,
    read_module,
)
from wharfinger.runtime.scheduler.graph import CycleError, Node
from wharfinger.runtime.scheduler.package_node import node_of
from wharfinger.runtime.scheduler.scheduler import ConstraintsError

SHOWN: Final = 10
"""The largest number of problems, and of warnings, that an answer lists."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a resource that a user writes. ``refusal`` is the reason why it is refused; "" if it is admitted."""

    refusal: str = ""
    warnings: tuple[str, ...] = ()


ADMITTED: Final = Judgement()


@dataclass(frozen=True, slots=True)
class Judge:
    """The checks of resources that are about to be stored. Local repositories must be in a folder of ``local_packages``."""

    runtime: Runtime
    local_packages: Sequence[Path] = ()
    enabled_by_default: bool | None = True
    token_folders: Sequence[Path] = ()

    async def judge(self, obj: JsonObject, old: JsonObject | None) -> Judgement:
        """Judge an object that is about to be stored; ``old`` is the stored object, None if the object is new."""
        if is_deleting(obj) or (old is not None and _asks_for_the_same(obj, old)):
            return ADMITTED
        try:
            match find_str(obj, "kind"):
                case "PackageRepository":
                    read_repository(obj, self.local_packages, self.token_folders)
                    return ADMITTED
                case "Application":
                    spec = read_application(obj)
                case _:
                    spec = read_module(obj, enabled_by_default=self.enabled_by_default)
            self._check_identity(spec.id, old)
            warnings = (*self._check_requirements(spec), *self._held(spec, obj, old))
        except (SpecError, IdentityError, PackageError) as error:
            return Judgement(str(error))
        settings = await self._judge_settings(spec)
        return Judgement(settings.refusal, (*warnings, *settings.warnings)[:SHOWN])

    def judge_removal(self, obj: JsonObject) -> Judgement:
        """Return the judgement on a removal. It is always admitted, with a warning if the daemon will hold the removal back."""
        try:
            match find_str(obj, "kind"):
                case "Application":
                    identity: PackageId = read_application(obj).id
                case "Module":
                    identity = read_module(obj, enabled_by_default=self.enabled_by_default).id
                case _:
                    return ADMITTED
        except (SpecError, IdentityError):
            return ADMITTED
        if is_deleting(obj) or is_ignoring(obj):
            return ADMITTED
        return Judgement(warnings=self._would_break(identity.name, "the removal", None))

    def _held(self, spec: PackageSpec, obj: JsonObject, old: JsonObject | None) -> tuple[str, ...]:
        """Return a warning if the daemon will hold back a disable or a version change, because it would break dependents."""
        name, scheduler = spec.id.name, self.runtime.scheduler
        instance, node = self.runtime.instances.get(name), scheduler.node(name)
        if old is None or instance is None or node is None or is_ignoring(obj):
            return ()
        if spec.enabled is False:
            return self._would_break(name, "spec.enabled: false", None) if scheduler.enabled(name) else ()
        if spec.version in {"", instance.desired.version} or not is_version(spec.version):
            return ()
        return self._would_break(name, f"version {spec.version}", replace(node, version=spec.version))

    def _would_break(self, name: str, what: str, node: Node | None) -> tuple[str, ...]:
        broken = self.runtime.scheduler.would_break(name, node)
        hold = judge_hold(what, [each for each in broken if not self.runtime.lifecycle.is_removing(each.name)], ())
        if hold is None:
            return ()
        how = f"to make the change nevertheless, set the annotation {IGNORE_DEPENDENTS}=true"
        return (f"the change is held back: {hold.message}; {how}",)

    def _check_identity(self, identity: PackageId, old: JsonObject | None) -> None:
        """Check that the package's release belongs to no other package, and stays in its namespace. Raises IdentityError and
        SpecError.
        """
        if isinstance(identity, ModuleId) and "." in identity.name:
            raise IdentityError(f"Module {identity}: expected a name without a dot; choose another name")
        placed = find_str(old, "status", "release", "namespace") if old is not None else ""
        if placed and placed != identity.namespace:
            raise SpecError(moved_text(placed))
        owner = self.runtime.claims.owner_of(identity.namespace, identity.release)
        if owner is not None and owner.name != identity.name:
            raise SpecError(taken_text(identity, owner))

    def _check_requirements(self, spec: PackageSpec) -> tuple[str, ...]:
        """Return a warning if a requirement is not met, otherwise (). Raises SpecError for a cycle of dependencies."""
        instance = self._loaded(spec)
        if instance is None or instance.files.definition is None:
            return ()
        try:
            self.runtime.scheduler.check_constraints(node_of(spec.id, instance.files.definition, spec.directives))
        except ConstraintsError as error:
            return (f"the package is paused for now: {error.reason}: {error}",)
        except CycleError as error:
            raise SpecError(f"spec.dependsOn: {error}") from error
        return ()

    async def _judge_settings(self, spec: PackageSpec) -> Judgement:
        instance = self._loaded(spec)
        if instance is None or spec.settings_from:
            return ADMITTED
        version = spec.directives.settings_version
        answer = await self.runtime.validate_settings(spec.id.name, spec.settings, version)
        match answer:
            case None | UnknownSettings():
                return ADMITTED
            case ValidSettings(warnings=warnings):
                return Judgement(warnings=_shown(warnings))
            case InvalidSettings():
                problems = "; ".join(_shown(answer.problems))
                why = f"version {answer.version} of {spec.package} refuses these settings: {problems}"
                return Judgement(why, _shown(answer.warnings))
            case _:
                assert_never(answer)

    def _loaded(self, spec: PackageSpec) -> Instance | None:
        """Return the package if it is loaded in the version that the resource asks for; None otherwise."""
        instance = self.runtime.instances.get(spec.id.name)
        if instance is None or instance.files.definition is None:
            return None
        same = (instance.desired.package, instance.desired.version) == (spec.package, spec.version)
        return instance if same and instance.files.definition.version == spec.version else None


def _shown(problems: Sequence[Problem]) -> tuple[str, ...]:
    """Return problems of settings as texts that begin with their place in the resource."""
    return tuple(f"spec.settings{'.' if one.path else ''}{one.path}: {one.message}" for one in problems[:SHOWN])


def _asks_for_the_same(obj: JsonObject, old: JsonObject) -> bool:
    annotations = [find_object(one, "metadata", "annotations") for one in (obj, old)]
    return find(obj, "spec") == find(old, "spec") and annotations[0] == annotations[1]
