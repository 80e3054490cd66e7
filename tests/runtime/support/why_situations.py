"""Packages whose requirements are not met. They are created for real, and `wharfinger why` then explains them.

Situations that do not disturb each other share one control plane and one daemon, so the packages of each situation have names
of their own.
"""

from tests.runtime.support.stuck import (
    ON_STARTUP,
    SLEEPING,
    Situation,
    app,
    backs_off,
    mod,
    push,
    runs,
    said,
    says,
    state,
    until_known,
)
from tests.runtime.support.world import World
from tests.runtime.tasks.test_crd_tasks import BOAT
from tests.runtime.tasks.test_hook_runs import bash
from wharfinger.formats.json.value import JsonObject
from wharfinger.runtime.resources.resources import IGNORE_DEPENDENTS
from wharfinger.runtime.scheduler.events import FactsChanged
from wharfinger.runtime.scheduler.rules import Facts

# Requirements of packages


async def missing_dependency(world: World) -> None:
    await app(world, "lonely", "database >=1.0")


async def missing_application(world: World) -> None:
    """Create an Application that requires an Application which does not exist.

    The requirement is in the resource. The package has no requirements.
    """
    needs: JsonObject = {"kind": "Application", "name": "backend", "version": ">=1.0"}
    await app(world, "frontend", spec={"dependsOn": [needs]})


async def wrong_version(world: World) -> None:
    await mod(world, "pump")
    await app(world, "well", "pump >=2.0")


async def cycle(world: World) -> None:
    await mod(world, "ham", "eggs >=1")
    await until_known(world, "ham", says("DependencyNotEnabled"))
    await mod(world, "eggs", "ham >=1")


async def cycle_by_resource(world: World) -> None:
    """Create ``egg``, whose resource requires ``hen``. Once both are on, let the resource of ``hen`` require ``egg``."""
    await app(world, "hen")
    await app(world, "egg", spec={"dependsOn": [{"kind": "Application", "name": "hen", "version": ">=1.0"}]})
    await world.until_state("prod", "egg", "Ready")
    await world.change("prod", "hen", {"dependsOn": [{"kind": "Application", "name": "egg", "version": ">=1.0"}]})


async def wrong_version_by_resource(world: World) -> None:
    await mod(world, "valve")
    await app(world, "pipe", spec={"dependsOn": [{"kind": "Module", "name": "valve", "version": ">=2.0"}]})


async def any_of_applications_unmet(world: World) -> None:
    await app(world, "chalk")
    members = "[{name: chalk, constraint: '>=2.0'}, {name: crayon}]"
    await app(world, "painter", more=f"}}, applications: {{anyOf: [{{name: colours, applications: {members}}}]")


async def unwanted_and_lacking(world: World) -> None:
    await mod(world, "attic", "absent-ladder >=1.0", spec={"enabled": False})


async def disable_failing(world: World) -> None:
    await mod(world, "clingy", hooks={"z.sh": bash("{configVersion: v1, beforeDeleteHelm: 1}", "exit 3")})
    await world.until_state("", "clingy", "Ready")
    await world.change("", "clingy", {"enabled": False})


async def waits_for_a_disable_that_fails(world: World) -> None:
    await mod(world, "stubborn", hooks={"z.sh": bash("{configVersion: v1, beforeDeleteHelm: 1}", "exit 3")})
    await world.until_state("", "stubborn", "Ready")
    await world.change("", "stubborn", {"enabled": False})
    await until_known(world, "stubborn", backs_off("PackageHookFailed"))
    await app(world, "hopeful", "stubborn >=1.0")


async def any_of_unmet(world: World) -> None:
    await mod(world, "ink", spec={"enabled": False})
    await app(world, "writer", more=", anyOf: [{name: tools, modules: [{name: ink}, {name: pencil}]}]")


async def none_of_violated(world: World) -> None:
    await mod(world, "cat")
    await app(world, "mouse", more=", noneOf: [{name: hunters, modules: [{name: cat}]}]")


async def kubernetes_version(world: World) -> None:
    await app(world, "modern", more="}, kubernetes: {constraint: '>=99.0'")


async def platform_not_known(world: World) -> None:
    await app(world, "placed", more="}, platform: {constraint: '>=2.0'")


async def disabled_by_user(world: World) -> None:
    await mod(world, "unwanted", spec={"enabled": False})


async def disabled_dependency(world: World) -> None:
    await mod(world, "switched", spec={"enabled": False})
    await app(world, "reader", "switched >=1.0")


async def suspended_dependency(world: World) -> None:
    await mod(world, "asleep", spec={"suspend": True})
    await app(world, "waker", "asleep >=1.0")


async def script_veto(world: World) -> None:
    no = 'echo false >"$MODULE_ENABLED_RESULT"; echo "no licence" >"$MODULE_ENABLED_REASON"'
    await mod(world, "licensed", files={"enabled": f"#!/usr/bin/env bash\n{no}\n"})


async def script_error(world: World) -> None:
    await mod(world, "confused", files={"enabled": "#!/usr/bin/env bash\nexit 7\n"})


async def newer_version_is_read(world: World) -> None:
    """Create a Module whose enabled script fails. Then update it to a version with a hook that never prints its configuration."""
    await mod(world, "quota", files={"enabled": "#!/usr/bin/env bash\nexit 7\n"})
    await until_known(world, "quota", says("EnabledScriptError"))
    await push(world, "quota", kind="Module", hooks={"a.sh": f"#!/usr/bin/env bash\n{SLEEPING}\n"}, version="2.0.0")
    await world.change("", "quota", {"packageVersion": "2.0.0"})


async def paused_by_lost_dependency(world: World) -> None:
    await mod(world, "lamp")
    await app(world, "run", "lamp >=1.0")
    await world.until_state("prod", "run", "Ready")
    await world.annotate("", "lamp", IGNORE_DEPENDENTS, "true")
    await world.change("", "lamp", {"enabled": False})
    await world.until_state("", "lamp", "Disabled")


async def two_things_missing(world: World) -> None:
    await app(world, "demanding", "absent-a >=1.0", "absent-b >=1.0")


async def removal_would_break(world: World) -> None:
    await mod(world, "floor")
    await app(world, "chair", "floor >=1.0")
    await world.until_state("prod", "chair", "Ready")
    await world.delete("", "floor")


async def disable_would_break(world: World) -> None:
    await mod(world, "kitchen")
    await app(world, "cook", "kitchen >=1.0")
    await world.until_state("prod", "cook", "Ready")
    await world.change("", "kitchen", {"enabled": False})


async def version_would_break(world: World) -> None:
    await mod(world, "engine")
    await push(world, "engine", kind="Module", version="2.0.0")
    await app(world, "driver", "engine ~1.0")
    await world.until_state("prod", "driver", "Ready")
    await world.change("", "engine", {"packageVersion": "2.0.0"})


async def removal_held_by_dependents(world: World) -> None:
    await mod(world, "head")
    await push(world, "tail", "head >=1.0", hooks={"z.sh": bash("{configVersion: v1, beforeDeleteHelm: 1}", "exit 5")})
    await world.create("prod", "tail", package="tail")
    await world.until_state("prod", "tail", "Ready")
    await world.delete("prod", "tail")
    await until_known(world, "prod.tail", backs_off("PackageHookFailed"))
    await world.delete("", "head")


REQUIREMENTS = (
    Situation("missing_dependency", "prod.lonely", missing_dependency, says("DependencyNotEnabled")),
    Situation("missing_application", "prod.frontend", missing_application, says("DependencyNotEnabled")),
    Situation("wrong_version", "prod.well", wrong_version, says("DependencyVersionMismatch"), "pump", state("Ready")),
    Situation("cycle", "ham", cycle, says("DependencyNotEnabled"), "eggs", says("DependencyCycle")),
    Situation("cycle_by_resource", "prod.hen", cycle_by_resource, says("DependencyCycle"), "prod.egg", state("Ready")),
    Situation(
        "wrong_version_by_resource",
        "prod.pipe",
        wrong_version_by_resource,
        says("DependencyVersionMismatch"),
        "valve",
        state("Ready"),
    ),
    Situation(
        "any_of_applications_unmet",
        "prod.painter",
        any_of_applications_unmet,
        says("AnyOfDependenciesUnmet"),
        "prod.chalk",
        state("Ready"),
    ),
    Situation("unwanted_and_lacking", "attic", unwanted_and_lacking, state("Disabled")),
    Situation("disable_failing", "clingy", disable_failing, backs_off("PackageHookFailed")),
    Situation(
        "waits_for_a_disable_that_fails",
        "prod.hopeful",
        waits_for_a_disable_that_fails,
        says("DependencyNotEnabled"),
        "stubborn",
        backs_off("PackageHookFailed"),
    ),
    Situation("any_of_unmet", "prod.writer", any_of_unmet, says("AnyOfDependenciesUnmet"), "ink", state("Disabled")),
    Situation(
        "none_of_violated", "prod.mouse", none_of_violated, says("NoneOfDependenciesUnmet"), "cat", state("Ready")
    ),
    Situation("kubernetes_version", "prod.modern", kubernetes_version, says("KubernetesRequirementsUnmet")),
    Situation("platform_not_known", "prod.placed", platform_not_known, says("VersionLookupFailed")),
    Situation("disabled_by_user", "unwanted", disabled_by_user, state("Disabled")),
    Situation(
        "disabled_dependency",
        "prod.reader",
        disabled_dependency,
        says("DependencyNotEnabled"),
        "switched",
        state("Disabled"),
    ),
    Situation(
        "suspended_dependency",
        "prod.waker",
        suspended_dependency,
        says("DependencyNotEnabled"),
        "asleep",
        state("Suspended"),
    ),
    Situation("script_veto", "licensed", script_veto, state("Disabled")),
    Situation("script_error", "confused", script_error, says("EnabledScriptError")),
    Situation("newer_version_is_read", "quota", newer_version_is_read, said("reading the package")),
    Situation("paused_by_lost_dependency", "prod.run", paused_by_lost_dependency, state("Suspended")),
    Situation("removal_would_break", "floor", removal_would_break, says("WouldBreakDependents")),
    Situation("disable_would_break", "kitchen", disable_would_break, says("WouldBreakDependents")),
    Situation("version_would_break", "engine", version_would_break, says("WouldBreakDependents")),
    Situation("removal_held_by_dependents", "head", removal_held_by_dependents, says("WaitingForDependents")),
    Situation("two_things_missing", "prod.demanding", two_things_missing, says("DependencyNotEnabled")),
)


# Packages that wait for other packages, each group with its own control plane and daemon


async def tier_barrier(world: World) -> None:
    await mod(world, "base", hooks={"a.sh": bash(ON_STARTUP, SLEEPING)}, top="weight: 10\ncritical: true\n")
    await until_known(world, "base", runs("Startup"))
    await mod(world, "broken-base", hooks={"a.sh": bash(ON_STARTUP, SLEEPING)}, top="weight: 10\ncritical: true\n")
    await until_known(world, "broken-base", runs("Startup"))
    await app(world, "tenant")


TIERS = (Situation("tier_barrier", "prod.tenant", tier_barrier, said("Configured")),)


async def slot_limit(world: World) -> None:
    await mod(world, "hog", hooks={"a.sh": bash(ON_STARTUP, SLEEPING)})
    await until_known(world, "hog", said("running hooks/a.sh"))
    await mod(world, "hungry", hooks={"a.sh": bash(ON_STARTUP, ":")})


SLOTS = (Situation("slot_limit", "hungry", slot_limit, lambda package: package.waits_for == ("hooks",)),)


async def has_definitions(world: World) -> None:
    """Create a Module with a CRD and a hook, and wait until it is Ready. Then make the hook hang when the next daemon asks for
    its configuration.
    """
    config = f'[ ! -e "{world.folder}/hang" ] || exec sleep 1000; echo "{ON_STARTUP}"; exit 0'
    hook = f'#!/usr/bin/env bash\nif [ "${{1:-}}" = --config ]; then {config}; fi\n'
    await mod(world, "harbour", hooks={"a.sh": hook}, files={"crds/boat.yaml": BOAT})
    await world.until_state("", "harbour", "Ready")
    (world.folder / "hang").touch()


async def waiting_for_crds(world: World) -> None:
    await app(world, "sailor")


CRDS = (
    Situation("waiting_for_crds", "prod.sailor", waiting_for_crds, says("WaitingForCRDs"), "harbour", said("reading")),
)


async def not_bootstrapped(world: World) -> None:
    await app(world, "early")


BOOTSTRAP = (Situation("not_bootstrapped", "prod.early", not_bootstrapped, says("BootstrapRequirementsUnmet")),)


async def platform_version(world: World) -> None:
    await tell_facts(world)
    await app(world, "ahead", more="}, platform: {constraint: '>=2.0'")


async def disabled_by_default(world: World) -> None:
    """Create a Module that is not part of the bundle, and that is not enabled in another way either."""
    await tell_facts(world)
    await mod(world, "extra")


FACTS = (
    Situation("platform_version", "prod.ahead", platform_version, says("PlatformRequirementsUnmet")),
    Situation("disabled_by_default", "extra", disabled_by_default, state("Disabled")),
)


async def tell_facts(world: World) -> None:
    """Set the facts about the cluster that a daemon gets, such as the version of the platform and a bundle."""
    kubernetes = await world.client.server_version()
    facts = Facts(kubernetes=kubernetes, platform="1.0.0", edition="ce", bundle="minimal")
    world.runtime.packages.send(FactsChanged(facts))
