"""Packages that are stuck, each in its own way, brought about for real: what `wharfinger why` is asked about.

A situation has a name (its golden file), the package that is asked about, what brings it about, and when it has come about.
Situations that do not disturb each other share a world: names of packages are theirs alone. A task that failed waits a minute for
its next attempt, so each is seen after its first.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import trio
import trio.testing

from tests.packages.charts import write
from tests.runtime.objects import repository
from tests.runtime.test_crd_tasks import BOAT
from tests.runtime.test_hook_runs import bash
from tests.runtime.world import World
from wharfinger.formats.json_value import JsonObject
from wharfinger.runtime.gates import Facts
from wharfinger.runtime.inspector import PackageSnapshot
from wharfinger.runtime.scheduler import FactsChanged
from wharfinger.runtime.snapshots import RuntimeInspector

ON_STARTUP = "{configVersion: v1, onStartup: 1}"
SLEEPING = "exec sleep 1000"
PATIENCE_S = 30
TEMPLATE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: of-{name}}}\n"
SETTINGS = "type: object\nproperties: {size: {type: integer, minimum: 1}}\n"
NEVER_READY = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: main, annotations: {wharfinger.dev/never-ready: "true"}}
spec:
  replicas: 2
  selector: {matchLabels: {app: main}}
  template:
    metadata: {labels: {app: main}}
    spec: {containers: [{name: main, image: example/main}]}
"""

Begin = Callable[[World], Awaitable[None]]
Holds = Callable[[PackageSnapshot], bool]


@dataclass(frozen=True, slots=True)
class Situation:
    """``subject`` is asked about once it ``holds`` of it, and ``is_so`` of another package that has to be as wanted, too."""

    name: str
    subject: str
    begin: Begin
    holds: Holds
    other: str = ""
    is_so: Holds = bool


async def push(
    world: World,
    name: str,
    *needs: str,
    kind: str = "Application",
    more: str = "",
    top: str = "",
    hooks: dict[str, str] | None = None,
    files: dict[str, str] | None = None,
    version: str = "1.0.0",
) -> None:
    """A package.yaml package that needs Modules, each ``name constraint``; ``more`` goes into its requirements."""
    wanted = ", ".join("{{name: {}, constraint: '{}'}}".format(*need.split(" ", 1)) for need in needs)
    text = (
        f"apiVersion: v1\ntype: {kind}\nname: {name}\nversion: {version}\n{top}"
        f"requirements: {{modules: {{mandatory: [{wanted}]{more}}}}}\n"
    )
    folder = write(
        world.folder / "made" / f"{name}-{version}",
        {
            "package.yaml": text,
            "openapi/settings.yaml": SETTINGS,
            "templates/out.yaml": TEMPLATE.format(name=name),
            **{f"hooks/{hook}": body for hook, body in (hooks or {}).items()},
            **(files or {}),
        },
    )
    for script in (*(folder / "hooks").glob("*"), *folder.glob("enabled")):
        script.chmod(0o755)
    await world.push_folder(folder, name, version)


async def app(world: World, name: str, *needs: str, more: str = "", spec: JsonObject | None = None) -> None:
    """An Application in ``prod`` of a package of its own."""
    await push(world, name, *needs, more=more)
    await world.create("prod", name, package=name, more=spec)


async def mod(
    world: World,
    name: str,
    *needs: str,
    hooks: dict[str, str] | None = None,
    files: dict[str, str] | None = None,
    spec: JsonObject | None = None,
    top: str = "",
) -> None:
    """A Module of a package of its own."""
    await push(world, name, *needs, kind="Module", hooks=hooks, files=files, top=top)
    await world.create_module(name, spec=spec)


def says(reason: str) -> Holds:
    """A condition has this reason."""
    return lambda package: any(each.reason == reason for each in package.conditions)


def backs_off(text: str) -> Holds:
    """A task of it failed with this in its error, and waits for its next attempt."""
    return lambda package: any(task.retry_in_s is not None and text in task.error for task in package.queue.tasks)


def parked(reason: str) -> Holds:
    """A task of it failed for good for this reason."""
    return lambda package: any(task.parked and task.error.startswith(reason) for task in package.queue.tasks)


def runs(task: str) -> Holds:
    """A task of it is at work."""
    return lambda package: any(each.running and each.name == task for each in package.queue.tasks)


def said(text: str) -> Holds:
    """Its summary names this."""
    return lambda package: text in package.message


def state(wanted: str) -> Holds:
    """Its summary's state."""
    return lambda package: package.state == wanted and not package.queue.tasks


async def until_known(world: World, name: str, holds: Holds) -> None:
    """Wait until a package is as wanted; the error shows how it was last."""
    found: PackageSnapshot | None = None
    inspector = RuntimeInspector("here", world.runtime.now(), world.runtime)
    with trio.move_on_after(PATIENCE_S):
        while (found := await inspector.package(name)) is None or not holds(found):
            await trio.testing.wait_all_tasks_blocked(0.01)
        return
    raise AssertionError(f"{name} did not become as wanted; last: {found}")


async def come_about(world: World, situation: Situation) -> None:
    """Bring a situation about, and return when it is there."""
    await situation.begin(world)
    if situation.other:
        await until_known(world, situation.other, situation.is_so)
    await until_known(world, situation.subject, situation.holds)


def left_alone(package: PackageSnapshot) -> bool:
    """It is in maintenance, and ready again."""
    return bool(package.maintenance) and state("Ready")(package)


# What packages require


async def missing_dependency(world: World) -> None:
    await app(world, "lonely", "database >=1.0")


async def wrong_version(world: World) -> None:
    await mod(world, "pump")
    await app(world, "well", "pump >=2.0")


async def cycle(world: World) -> None:
    await mod(world, "ham", "eggs >=1")
    await mod(world, "eggs", "ham >=1")


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


async def paused_by_lost_dependency(world: World) -> None:
    await mod(world, "lamp")
    await app(world, "desk", "lamp >=1.0")
    await world.until_state("prod", "desk", "Ready")
    await world.change("", "lamp", {"enabled": False})
    await world.until_state("", "lamp", "Disabled")


async def two_things_missing(world: World) -> None:
    await app(world, "demanding", "absent-a >=1.0", "absent-b >=1.0")


REQUIREMENTS = (
    Situation("missing_dependency", "prod.lonely", missing_dependency, says("DependencyNotEnabled")),
    Situation("wrong_version", "prod.well", wrong_version, says("DependencyVersionMismatch"), "pump", state("Ready")),
    Situation("cycle", "ham", cycle, says("DependencyNotEnabled"), "eggs", says("DependencyCycle")),
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
    Situation("paused_by_lost_dependency", "prod.desk", paused_by_lost_dependency, state("Suspended")),
    Situation("two_things_missing", "prod.demanding", two_things_missing, says("DependencyNotEnabled")),
)


# What goes wrong while a package is brought and run


async def failed_three_levels_down(world: World) -> None:
    await mod(world, "ground", hooks={"10-init.sh": bash(ON_STARTUP, "exit 3")})
    await mod(world, "walls", "ground >=1.0")
    await mod(world, "roof", "walls >=1.0")
    await app(world, "house", "roof >=1.0")


async def hook_failing(world: World) -> None:
    await mod(world, "clumsy", hooks={"10-init.sh": bash(ON_STARTUP, "exit 3")})


async def hook_hanging(world: World) -> None:
    await mod(world, "slow", hooks={"10-init.sh": bash(ON_STARTUP, SLEEPING)})


async def event_hook_failing(world: World) -> None:
    config = "configVersion: v1\nkubernetes: [{name: maps, kind: ConfigMap, nameSelector: {matchNames: [told]}}]"
    body = 'jq -e ".[0].type == \\"Synchronization\\"" "$BINDING_CONTEXT_PATH" >/dev/null || exit 4'
    await mod(world, "nervous", hooks={"watch.sh": bash(config, body)})
    await world.until_state("", "nervous", "Ready")
    told: JsonObject = {"name": "told", "namespace": "prod"}
    await world.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": told})


async def waits_for_one_at_work(world: World) -> None:
    await mod(world, "busy", hooks={"a.sh": bash("{configVersion: v1, beforeHelm: 1}", SLEEPING)})
    await app(world, "patient", "busy >=1.0")


async def registry_down(world: World) -> None:
    await world.client.create(repository("127.0.0.1:1/packages", name="down"))
    await world.create("prod", "offline", package="offline", repository="down")


async def downloading(world: World) -> None:
    """From a registry that takes the call and says nothing."""
    await world.create("prod", "heavy", package="heavy", repository="silent")


async def artifact_not_found(world: World) -> None:
    await world.create("prod", "unpublished", package="unpublished")


async def artifact_invalid(world: World) -> None:
    await push(world, "misread", hooks={"a.sh": bash("configVersion: v1\nkubernetes: [{kid: Pod}]", ":")})
    await world.create("prod", "misread", package="misread")


async def repository_missing(world: World) -> None:
    await world.create("prod", "homeless", package="homeless", repository="nowhere")


async def settings_invalid(world: World) -> None:
    await app(world, "misset", spec={"settings": {"size": 0}})


async def settings_source_missing(world: World) -> None:
    await app(world, "unsettled", spec={"settingsFrom": [{"kind": "Secret", "name": "not-there"}]})


async def spec_invalid(world: World) -> None:
    source: JsonObject = {"kind": "Secret", "name": "login", "key": "password", "path": "database..password"}
    await app(world, "misspelt", spec={"settingsFrom": [source]})


async def release_name_conflict(world: World) -> None:
    await app(world, "twin")
    await world.until_state("prod", "twin", "Ready")
    await push(world, "twin-module", kind="Module")
    await world.create_module("twin", package="twin-module", spec={"namespace": "prod"})


async def not_ready(world: World) -> None:
    await push(world, "starting", files={"templates/main.yaml": NEVER_READY})
    await world.create("prod", "starting", package="starting")


async def suspended(world: World) -> None:
    await app(world, "resting", spec={"suspend": True})


async def in_maintenance(world: World) -> None:
    await app(world, "by-hand")
    await world.until_state("prod", "by-hand", "Ready")
    await world.change("prod", "by-hand", {"maintenance": "NoResourceReconciliation"})


async def nothing_keeps_it(world: World) -> None:
    await app(world, "fine")


async def removal_failing(world: World) -> None:
    await push(world, "sticky", hooks={"z.sh": bash("{configVersion: v1, beforeDeleteHelm: 1}", "exit 5")})
    await world.create("prod", "sticky", package="sticky")
    await world.until_state("prod", "sticky", "Ready")
    await world.delete("prod", "sticky")


async def somebody_elses_object(world: World) -> None:
    labels: JsonObject = {"app.kubernetes.io/managed-by": "Helm"}
    annotations: JsonObject = {"meta.helm.sh/release-name": "other", "meta.helm.sh/release-namespace": "prod"}
    metadata: JsonObject = {"name": "of-jealous", "namespace": "prod", "labels": labels, "annotations": annotations}
    await world.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    await app(world, "jealous")


async def definition_refused(world: World) -> None:
    await mod(world, "undefined", files={"crds/wrong.yaml": WRONG_CRD})


WRONG_CRD = (
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: wrong}\nspec: {group: x}\n"
)

RUNNING = (
    Situation(
        "failed_three_levels_down",
        "prod.house",
        failed_three_levels_down,
        said("Configured"),
        "ground",
        backs_off("PackageHookFailed"),
    ),
    Situation("hook_failing", "clumsy", hook_failing, backs_off("PackageHookFailed")),
    Situation("hook_hanging", "slow", hook_hanging, said("running hooks/10-init.sh")),
    Situation("event_hook_failing", "nervous", event_hook_failing, backs_off("exit status 4")),
    Situation("waits_for_one_at_work", "prod.patient", waits_for_one_at_work, said("Configured"), "busy", runs("Run")),
    Situation("downloading", "prod.heavy", downloading, runs("Download:1.0.0")),
    Situation("registry_down", "prod.offline", registry_down, backs_off("RegistryFailed")),
    Situation("artifact_not_found", "prod.unpublished", artifact_not_found, backs_off("ArtifactNotFound")),
    Situation("artifact_invalid", "prod.misread", artifact_invalid, parked("HookInvalid")),
    Situation("repository_missing", "prod.homeless", repository_missing, said("does not exist")),
    Situation("settings_invalid", "prod.misset", settings_invalid, parked("SettingsInvalid")),
    Situation("settings_source_missing", "prod.unsettled", settings_source_missing, said("not-there")),
    Situation("spec_invalid", "prod.misspelt", spec_invalid, said("is no path")),
    Situation("release_name_conflict", "twin", release_name_conflict, said("choose another name")),
    Situation("not_ready", "prod.starting", not_ready, says("NotReady")),
    Situation("suspended", "prod.resting", suspended, state("Suspended")),
    Situation("in_maintenance", "prod.by-hand", in_maintenance, left_alone),
    Situation("nothing_keeps_it", "prod.fine", nothing_keeps_it, state("Ready")),
    Situation("removal_failing", "prod.sticky", removal_failing, backs_off("PackageHookFailed")),
    Situation("somebody_elses_object", "prod.jealous", somebody_elses_object, backs_off("ConflictingOwner")),
    Situation("definition_refused", "undefined", definition_refused, parked("ApplyFailed")),
)


# What waits for others, in worlds of their own


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


SLOTS = (Situation("slot_limit", "hungry", slot_limit, lambda package: bool(package.waits_for)),)


async def has_definitions(world: World) -> None:
    """In the life of an earlier daemon: a Module that brings definitions, and whose hook answers."""
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
    await tell_facts(world, platform="1.0.0")
    await app(world, "ahead", more="}, platform: {constraint: '>=2.0'")


FACTS = (Situation("platform_version", "prod.ahead", platform_version, says("PlatformRequirementsUnmet")),)


async def tell_facts(world: World, *, platform: str) -> None:
    """What a daemon is told about the cluster."""
    kubernetes = await world.client.server_version()
    world.runtime.operations.tell_scheduler(FactsChanged(Facts(kubernetes=kubernetes, platform=platform)))
