"""Problems while packages are installed, run and removed. They are created for real, and then explained by `wharfinger why`.

All situations share one control plane and one daemon, so the packages of each situation have names of their own.
"""

from tests.runtime.support.objects import repository
from tests.runtime.support.stuck import (
    NEVER_READY,
    ON_STARTUP,
    SLEEPING,
    Situation,
    app,
    backs_off,
    in_hook,
    left_alone,
    mod,
    parked,
    push,
    runs,
    said,
    says,
    state,
)
from tests.runtime.support.world import World
from tests.runtime.tasks.test_hook_runs import bash
from wharfinger.formats.json.value import JsonObject

# Problems while a package is installed and run


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
    """Create an Application whose registry accepts connections and never answers."""
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


async def ready_and_to_be_run_again(world: World) -> None:
    """Create ``reader``, which requires ``source`` and subscribes to it. Then update ``source`` to a version that fails."""
    await mod(world, "source")
    await push(world, "reader", "source >=1.0", top="subscriptions: [source]\n")
    await world.create("prod", "reader", package="reader")
    await world.until_state("prod", "reader", "Ready")
    hooks = {"10-init.sh": bash(ON_STARTUP, "exit 3")}
    await push(world, "source", kind="Module", version="2.0.0", hooks=hooks)
    await world.change("", "source", {"packageVersion": "2.0.0"})


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
    Situation("waits_for_one_at_work", "prod.patient", waits_for_one_at_work, said("Configured"), "busy", in_hook),
    Situation("downloading", "prod.heavy", downloading, runs("Download:1.0.0")),
    Situation("registry_down", "prod.offline", registry_down, backs_off("RegistryFailed")),
    Situation("artifact_not_found", "prod.unpublished", artifact_not_found, backs_off("ArtifactNotFound")),
    Situation("artifact_invalid", "prod.misread", artifact_invalid, parked("HookInvalid")),
    Situation("repository_missing", "prod.homeless", repository_missing, said("does not exist")),
    Situation("settings_invalid", "prod.misset", settings_invalid, parked("SettingsInvalid")),
    Situation("settings_source_missing", "prod.unsettled", settings_source_missing, said("not-there")),
    Situation("spec_invalid", "prod.misspelt", spec_invalid, said("is not a path")),
    Situation("release_name_conflict", "twin", release_name_conflict, said("choose another name")),
    Situation("not_ready", "prod.starting", not_ready, says("NotReady")),
    Situation("suspended", "prod.resting", suspended, state("Suspended")),
    Situation("in_maintenance", "prod.by-hand", in_maintenance, left_alone),
    Situation("nothing_keeps_it", "prod.fine", nothing_keeps_it, state("Ready")),
    Situation(
        "ready_and_to_be_run_again",
        "prod.reader",
        ready_and_to_be_run_again,
        state("Ready"),
        "source",
        backs_off("PackageHookFailed"),
    ),
    Situation("removal_failing", "prod.sticky", removal_failing, backs_off("PackageHookFailed")),
    Situation("somebody_elses_object", "prod.jealous", somebody_elses_object, backs_off("ConflictingOwner")),
    Situation("definition_refused", "undefined", definition_refused, parked("ApplyFailed")),
)
