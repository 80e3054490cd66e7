"""Random values of a chart. They stay the same as long as no input of the templates changes, even if users write revisions of the
release.
"""

import base64
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.packages.support.charts import chart
from tests.programs import run
from tests.runtime.core.test_global_rounds import begin as begin_round
from tests.runtime.core.test_global_rounds import global_hooks, hook
from tests.runtime.core.test_release_events import OWNER, instance_of, until, warnings_of
from tests.runtime.daemon.test_daemon import control_plane, daemon
from tests.runtime.support.killing import Kubectl, application
from tests.runtime.support.notes import put
from tests.runtime.support.world import PATIENCE_S, Ground, World, open_ground
from tests.runtime.tasks.test_applying import look_again
from tests.runtime.tasks.test_recorded_render import DRAWING, DRAWN, NOW, begin, drawn, elsewhere, history_of, verified
from wharfinger.cluster.records.release import Release, ReleaseStatus, from_secret, to_secret
from wharfinger.formats.json.value import JsonObject, find_int, find_object, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.runtime.resources.manifests import UNMANAGED_LABEL
from wharfinger.runtime.resources.resources import APPLICATION, MODULE, SECRET
from wharfinger.runtime.tasks.recorded_render import RENDER_LABEL

pytestmark = pytest.mark.unmeasured

FRONT: Final = (
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: front}\nspec:\n  replicas: 1\n"
    "  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n"
    "    spec: {containers: [{name: main, image: example/a}]}\n"
)
FILES: Final = {**DRAWING, "templates/front.yaml": FRONT}
DEPLOYMENT: Final = ResourceType("apps", "v1", "Deployment", "deployments", namespaced=True)
FRONT_KEY: Final = ObjectKey(DEPLOYMENT, "prod", "front")
MAINTENANCE: Final = "NoResourceReconciliation"


def record_key(revision: int) -> ObjectKey:
    return ObjectKey(SECRET, "prod", f"sh.helm.release.v1.shop.v{revision}")


def replicas(number: int) -> Callable[[JsonObject], bool]:
    return lambda obj: find_int(obj, "spec", "replicas") == number


async def ask_for_replicas(world: World, number: int | None) -> None:
    """Override the number of replicas of the chart's Deployment. None removes the override."""
    override: JsonObject = {"kind": "Deployment", "name": "front", "replicas": number}
    await world.change("prod", "shop", {"resourceRequests": [override] if number else None})


async def settled(world: World, revision: int) -> None:
    """Wait until a revision is deployed, and the package is Ready."""
    with trio.fail_after(PATIENCE_S):
        while True:
            last = (await history_of(world))[-1]
            if last.revision >= revision and last.status is ReleaseStatus.DEPLOYED:
                break
            await trio.lowlevel.checkpoint()
    await world.until_state("prod", "shop", "Ready")


async def forced(world: World, word: str) -> None:
    """Request a forced reconciliation, and wait until all its tasks have ended. ``word`` differs for each request."""
    await world.annotate("prod", "shop", "wharfinger.dev/force-requested-at", word)
    await until(lambda: instance_of(world).desired.directives.forced == word)
    await world.until_state("prod", "shop", "Ready")
    await world.runtime.queues.wait_idle("prod.shop")


# -- overrides and maintenance


@pytest.mark.slow
async def test_resource_overrides_change_no_generated_values(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground, ground.open_world() as world:
        before = await begin(world, FILES)
        first = (await history_of(world))[0]
        for number in (2, 3):
            await ask_for_replicas(world, number)
            await world.until_object(FRONT_KEY, replicas(number))
            assert await drawn(world) == before
        await ask_for_replicas(world, None)
        await world.until_object(FRONT_KEY, replicas(1))
        await settled(world, 4)
        last = (await history_of(world))[-1]
        assert (await drawn(world), last.manifest) == (before, first.manifest)


@pytest.mark.slow
async def test_maintenance_changes_no_generated_values(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground, ground.open_world() as world:
        before = await begin(world, FILES)
        first = (await history_of(world))[0]
        await world.change("prod", "shop", {"maintenance": MAINTENANCE})
        await world.until_object(FRONT_KEY, lambda obj: UNMANAGED_LABEL in find_object(obj, "metadata", "labels"))
        await settled(world, 2)
        assert await drawn(world) == before
        await world.change("prod", "shop", {"maintenance": None})
        await world.until_object(FRONT_KEY, lambda obj: UNMANAGED_LABEL not in find_object(obj, "metadata", "labels"))
        await settled(world, 3)
        assert (await drawn(world), (await history_of(world))[-1].manifest) == (before, first.manifest)


@pytest.mark.slow
async def test_overrides_of_the_first_revision_survive_a_restart_without_new_random_values(tmp_path: Path) -> None:
    """The objects have overrides from the first revision on. When the overrides change, a daemon on another host applies them
    to the original render in the record, and does not render again.
    """
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.push("web", "1.0.0", FILES)
            await world.repository()
            override: JsonObject = {"kind": "Deployment", "name": "front", "replicas": 2}
            await world.create("prod", "shop", more={"resourceRequests": [override], "maintenance": MAINTENANCE})
            await world.until_state("prod", "shop", "Ready")
            before = await drawn(world)
        async with elsewhere(ground, "second").open_world() as world:
            await verified(world)
            assert (await drawn(world), len(await history_of(world))) == (before, 1)
            await world.change("prod", "shop", {"maintenance": None})
            await world.until_object(
                FRONT_KEY, lambda obj: UNMANAGED_LABEL not in find_object(obj, "metadata", "labels")
            )
            await settled(world, 2)
            assert find_int(await world.client.get(FRONT_KEY), "spec", "replicas") == 2
        async with elsewhere(ground, "third").open_world() as world:
            await verified(world)
            assert (await drawn(world), len(await history_of(world))) == (before, 2)
        await ground.client.merge_patch(ObjectKey(APPLICATION, "prod", "shop"), {"spec": {"resourceRequests": None}})
        async with elsewhere(ground, "fourth").open_world() as world:
            await world.until_object(FRONT_KEY, replicas(1))
            await settled(world, 3)
            assert await drawn(world) == before
            assert find_str((await history_of(world))[-1].document, "manifest").count("replicas: 1") == 1


@pytest.mark.slow
async def test_later_runs_in_the_installing_process_generate_nothing(tmp_path: Path) -> None:
    """The render cache contains only the render of the install. A later render would be for an upgrade, and would generate new
    values.
    """
    async with open_ground(tmp_path) as ground, ground.open_world() as world:
        before = await begin(world, FILES)
        for word in ("one", "two", "three"):
            put(instance_of(world), applied={"brought": None})
            look_again(world, "prod.shop")
            await world.runtime.queues.wait_idle("prod.shop")
            await forced(world, word)
        assert (await drawn(world), len(await history_of(world))) == (before, 1)


@pytest.mark.slow
def test_a_generated_password_survives_other_changes_of_the_spec(tmp_path: Path) -> None:
    """The spec changes four times: overrides are set, maintenance begins and ends, and the overrides are removed. Each change
    is processed by another daemon, which starts with an empty state folder.
    """
    packages = tmp_path / "packages"
    chart(packages / "web", "web", "1.0.0", FILES)
    with control_plane(tmp_path) as kubeconfig:
        kubectl = Kubectl(kubeconfig)

        def ask(number: int, revision: int, spec: str = "") -> str:
            """Patch the spec while a new daemon runs, and return the password once the change is applied."""
            state = tmp_path / f"daemon-{number}"
            state.mkdir()
            with daemon(state, kubeconfig, "--local-packages", str(packages)) as running:
                running.wait_line("ready:")
                if spec:
                    kubectl("patch", "application/app", "--type=merge", f"--patch={spec}")
                else:
                    kubectl.apply(tmp_path / "manifest", application("web", f"{{folder: {{path: '{packages}'}}}}"))
                kubectl.wait("application/app", f"{{.status.release.revision}}={revision}")
                kubectl("wait", "--for=condition=Ready", "application/app", "--timeout=50s")
                running.process.terminate()
                assert running.wait() == 0
            return kubectl.value("secret/app-drawn", ".data.password")

        before = ask(1, 1)
        override = '{"spec": {"resourceRequests": [{"kind": "Deployment", "name": "front", "replicas": 2}]}}'
        assert ask(2, 2, override) == before
        assert kubectl.value("deployment/front", ".spec.replicas") == "2"
        assert ask(3, 3, f'{{"spec": {{"maintenance": "{MAINTENANCE}"}}}}') == before
        kubectl.wait("deployment/front", "{.spec.replicas}=2")
        assert UNMANAGED_LABEL in kubectl("get", "deployment/front", "--output=json")
        assert ask(4, 4, '{"spec": {"maintenance": null}}') == before
        assert UNMANAGED_LABEL not in kubectl("get", "deployment/front", "--output=json")
        assert ask(5, 5, '{"spec": {"resourceRequests": null}}') == before
        assert kubectl.value("deployment/front", ".spec.replicas") == "1"
        env = {"KUBECONFIG": str(kubeconfig)}
        first, last = (run("helm", "get", "manifest", "app", f"--revision={number}", env=env) for number in (1, 5))
        assert first == last
        run("helm", "rollback", "app", "2", env=env)
        assert kubectl.value("secret/app-drawn", ".data.password") == before


# -- records of other writers


async def helm_upgrade(world: World, revision: int, text: str) -> None:
    """Write the records that a user's ``helm upgrade`` writes.

    The new record has the labels of the former one. The former record is written again, without the daemon's annotations.
    """
    ours = from_secret(await world.client.get(record_key(revision - 1)))
    older = replace(ours.with_status(ReleaseStatus.SUPERSEDED, ours.description), holder="")
    written: JsonObject = {**to_secret(older, NOW)}
    metadata = find_object(await world.client.get(record_key(revision - 1)), "metadata")
    version = find_str(metadata, "resourceVersion")
    await world.client.replace(
        {**written, "metadata": {**find_object(written, "metadata"), "resourceVersion": version}}
    )
    manifest = ours.manifest.replace("none", text)
    assert manifest != ours.manifest
    document: JsonObject = {**ours.document, "version": revision, "manifest": manifest}
    await world.client.create(to_secret(replace(ours, document=document, holder=""), NOW))


@pytest.mark.slow
async def test_a_users_helm_upgrade_does_not_hide_our_records(tmp_path: Path) -> None:
    """The user's revision stays until the package runs again. Then the daemon restores its own objects and random values."""
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            before = await begin(world, FILES)
            await helm_upgrade(world, 2, "theirs")
            await world.until("prod", "shop", lambda obj: "(revision 2)" in warnings_of(obj))
            theirs = base64.b64encode(b"theirs").decode()
            await set_drawn(world, {"password": theirs, "text": theirs})
            await forced(world, "now")
            assert (await drawn(world), (await history_of(world))[-1].revision) == (before, 3)
            assert find_str(await world.client.get(DRAWN), "data", "text") == "bm9uZQ=="
            await helm_upgrade(world, 4, "theirs")
        async with elsewhere(ground, "second").open_world() as world:
            await world.until("prod", "shop", lambda obj: "(revision 4)" in warnings_of(obj))
            await ask_for_replicas(world, 2)
            await world.until_object(FRONT_KEY, replicas(2))
            await settled(world, 5)
            assert await drawn(world) == before


async def set_drawn(world: World, data: JsonObject) -> None:
    """Write other data into the chart's Secret, with the field manager ``helm``, as a helm command of a user does."""
    metadata: JsonObject = {"name": DRAWN.name, "namespace": DRAWN.namespace}
    obj: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
    await world.client.apply(obj, field_manager="helm", force=True)
    await until(lambda: bool(world.runtime.tools.releases.drifts(OWNER)))


# -- records of older daemons


async def without_label(ground: Ground) -> None:
    """Make the first record one of an older daemon: remove the label with the fingerprint of the inputs."""
    await ground.client.merge_patch(record_key(1), {"metadata": {"labels": {RENDER_LABEL: None}}})


def label_of(release: Release) -> str:
    return release.labels.get(RENDER_LABEL, "")


@pytest.mark.slow
async def test_a_record_of_an_older_daemon_is_labelled_on_first_use(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            before = await begin(world, FILES)
            label = label_of((await history_of(world))[0])
        await without_label(ground)
        async with elsewhere(ground, "second").open_world() as world:
            await verified(world)
            (record,) = await history_of(world)
            assert label
            assert (await drawn(world), label_of(record)) == (before, label)
            await ask_for_replicas(world, 2)
            await world.until_object(FRONT_KEY, replicas(2))
            await settled(world, 2)
            assert await drawn(world) == before
        async with elsewhere(ground, "third").open_world() as world:
            await verified(world)
            await forced(world, "now")
            assert (await drawn(world), len(await history_of(world))) == (before, 2)


@pytest.mark.slow
async def test_an_older_record_with_overrides_is_used_while_they_are_unchanged(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.push("web", "1.0.0", FILES)
            await world.repository()
            override: JsonObject = {"kind": "Deployment", "name": "front", "replicas": 2}
            await world.create("prod", "shop", more={"resourceRequests": [override]})
            await world.until_state("prod", "shop", "Ready")
            before = await drawn(world)
            (ours,) = await history_of(world)
        chart: JsonObject = {**find_object(ours.document, "chart"), "files": []}
        older = to_secret(replace(ours, document={**ours.document, "chart": chart}, labels={}), NOW)
        await ground.client.merge_patch(record_key(1), {"data": find_object(older, "data")})
        await without_label(ground)
        async with elsewhere(ground, "second").open_world() as world:
            await verified(world)
            for _ in range(2):
                put(instance_of(world), applied={"brought": None})
                look_again(world, "prod.shop")
                await world.runtime.queues.wait_idle("prod.shop")
                (record,) = await history_of(world)
                assert (await drawn(world), label_of(record)) == (before, "")
            await ask_for_replicas(world, None)
            await world.until_object(FRONT_KEY, replicas(1))


@pytest.mark.slow
async def test_changed_global_values_outside_the_chart_keep_an_older_record(tmp_path: Path) -> None:
    """The global values change while no daemon runs, so the next daemon runs all packages again. The chart does not read these
    values, so its recorded render is still used.
    """
    notes = tmp_path / "notes"
    global_hooks(tmp_path, {"all.sh": hook(notes, '"afterAll": 1')})
    chart(tmp_path / "modules" / "web", "web", "1.0.0", FILES)
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await begin_round(world)
            await world.create("prod", "shop")
            await world.until_state("prod", "shop", "Ready")
            await world.until_notes(notes, {"all.sh:afterAll"})
            before = await drawn(world)
        await without_label(ground)
        await ground.client.merge_patch(ObjectKey(MODULE, "", "global"), {"spec": {"settings": {"colour": "red"}}})
        notes.unlink()
        async with elsewhere(ground, "second").open_world() as world:
            await world.until_notes(notes, {"all.sh:afterAll"})
            assert find_str(world.runtime.packages.global_values(), "colour") == "red"
            (record,) = await history_of(world)
            assert (await drawn(world), bool(label_of(record))) == (before, True)


@pytest.mark.slow
async def test_an_older_record_with_other_values_is_not_used(tmp_path: Path) -> None:
    """The record has no label with a fingerprint of its inputs, and its values differ from those of the package. So the chart
    is rendered again.
    """
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await begin(world, FILES)
            (ours,) = await history_of(world)
        older = to_secret(replace(ours, document={**ours.document, "config": {"text": "older"}}, labels={}), NOW)
        await ground.client.merge_patch(record_key(1), {"data": find_object(older, "data")})
        await without_label(ground)
        async with elsewhere(ground, "second").open_world() as world:
            await verified(world)
            assert [label_of(record) != "" for record in await history_of(world)] == [False, True]


@pytest.mark.slow
@pytest.mark.parametrize("helm", ["helm", "helm3"])
def test_a_generated_password_survives_a_users_helm_upgrade(tmp_path: Path, helm: str) -> None:
    """The user's revision stays until the package runs again. A later daemon then restores the value that the first daemon
    generated.
    """
    packages = tmp_path / "packages"
    chart(packages / "web", "web", "1.0.0", FILES)
    with control_plane(tmp_path) as kubeconfig:
        kubectl = Kubectl(kubeconfig)
        passwords = []
        for number in (1, 2):
            state = tmp_path / f"daemon-{number}"
            state.mkdir()
            with daemon(state, kubeconfig, "--local-packages", str(packages)) as running:
                running.wait_line("ready:")
                if number == 1:
                    kubectl.apply(tmp_path / "manifest", application("web", f"{{folder: {{path: '{packages}'}}}}"))
                    kubectl.wait("application/app", "{.status.release.revision}=1")
                else:
                    kubectl("annotate", "application/app", "wharfinger.dev/force-requested-at=now")
                    kubectl.wait("application/app", "{.status.release.revision}=3")
                kubectl("wait", "--for=condition=Ready", "application/app", "--timeout=50s")
                passwords.append(kubectl.value("secret/app-drawn", ".data.password"))
                running.process.terminate()
                assert running.wait() == 0
            if number == 1:
                env = {"KUBECONFIG": str(kubeconfig)}
                run(helm, "upgrade", "app", str(packages / "web"), "--set", "text=theirs", env=env)
                assert kubectl.value("secret/app-drawn", ".data.password") != passwords[0]
        assert passwords[0] == passwords[1]
        assert kubectl.value("secret/app-drawn", ".data.text") == "bm9uZQ=="
