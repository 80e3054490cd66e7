"""The render of a chart is stored in the record of its release, so the same inputs never lead to new random values."""

import zlib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.runtime.core.test_release_events import instance_of, until
from tests.runtime.support.world import PATIENCE_S, Ground, World, open_ground
from tests.runtime.tasks.test_applying import Looking, look_again
from wharfinger.cluster.records.release import Release, ReleaseStatus, from_secret, new_release, to_secret
from wharfinger.cluster.releases.hooks import hook_entry, parse_hooks
from wharfinger.formats.json.value import JsonObject, find_object, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.definition.definition import Layout
from wharfinger.packages.rendering.chart_use import EVERYTHING, ChartUse
from wharfinger.packages.rendering.renderer import Rendered, RenderRequest
from wharfinger.runtime.lifecycle.journal import Journal
from wharfinger.runtime.resources.resources import SECRET
from wharfinger.runtime.tasks.recorded_render import (
    RENDER_LABEL,
    has_looked,
    is_sealed,
    matching,
    pack_base,
    read_recorded,
    render_inputs,
    seal,
    unsealed,
)

DRAWN: Final = ObjectKey(SECRET, "prod", "shop-drawn")
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
MANIFEST: Final = "---\n# Source: web/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
OBJECT: Final[JsonObject] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
HOOK: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "h", "annotations": {"helm.sh/hook": "pre-install"}},
}
RENDERED: Final = Rendered((), (HOOK,), (OBJECT,), MANIFEST, "notes")
INPUTS: Final = "a" * 30
OTHERS: Final = "b" * 30


def asked(
    values: JsonObject | None = None, *, versions: tuple[str, ...] = ("v1",), kube: str = "v1.36.0"
) -> RenderRequest:
    return RenderRequest(Path("chart"), "sha256:1", "web", "prod", values or {}, kube, versions, is_upgrade=False)


def inputs(request: RenderRequest, use: ChartUse = ChartUse(), layout: Layout = Layout.CHART) -> str:  # noqa: B008 - frozen
    return render_inputs(request, use, layout)


def record(
    revision: int,
    status: ReleaseStatus = ReleaseStatus.DEPLOYED,
    label: str = "",
    *,
    holder: str = "ours",
    manifest: str = MANIFEST,
    base: bytes = b"",
) -> Release:
    return new_release(
        name="web",
        namespace="prod",
        revision=revision,
        status=status,
        description="",
        chart={},
        values={"a": 1},
        manifest=manifest,
        hooks=[hook_entry(hook) for hook in parse_hooks([HOOK])],
        now=NOW,
        labels={RENDER_LABEL: label} if label else {},
        holder=holder,
        notes="notes",
        base=base,
    )


def test_inputs_are_the_dependencies_of_a_render() -> None:
    same = inputs(asked({"a": 1, "b": 2}))
    assert same == inputs(replace(asked({"b": 2, "a": 1}), is_upgrade=True, chart=Path("elsewhere")))
    for other in (
        asked({"a": 1, "b": 3}),
        replace(asked({"a": 1, "b": 2}), chart_digest="sha256:2"),
        replace(asked({"a": 1, "b": 2}), release="shop"),
        replace(asked({"a": 1, "b": 2}), namespace="test"),
    ):
        assert inputs(other) != same


def test_versions_of_the_cluster_are_inputs_of_charts_that_use_them() -> None:
    plain, careful = ChartUse(), ChartUse(asked=frozenset({"example.com/v1"}))
    more, theirs = asked(versions=("v1", "other.org/v1")), asked(versions=("v1", "example.com/v1"))
    assert inputs(asked(), plain) == inputs(theirs, plain) == inputs(asked(kube="v1.37.0"), plain)
    assert inputs(asked(), careful) == inputs(more, careful) != inputs(theirs, careful)
    assert inputs(asked(), ChartUse(kube_version=True)) != inputs(asked(kube="v1.37.0"), ChartUse(kube_version=True))
    assert inputs(asked(), EVERYTHING) != inputs(more, EVERYTHING)


def test_values_of_the_platform_are_inputs_of_packages_that_use_them() -> None:
    def on(*modules: str) -> RenderRequest:
        platform: JsonObject = {"enabledModules": [*modules], "own": 1}
        return asked({"global": platform, "Platform": platform, "a": 1})

    for layout in (Layout.PACKAGE, Layout.MODULE_FOLDER):
        reading = ChartUse(words=frozenset({"enabledModules"}))
        assert inputs(on("a"), layout=layout) == inputs(on("a", "b"), layout=layout)
        assert inputs(on("a"), reading, layout) != inputs(on("a", "b"), reading, layout)
    assert inputs(on("a")) != inputs(on("a", "b"))  # for a plain chart, these values are settings


def test_a_seal_covers_inputs_and_output() -> None:
    label = seal(INPUTS, RENDERED)
    assert label.startswith(INPUTS)
    assert is_sealed(record(1, label=label))
    assert not is_sealed(record(1))
    assert not is_sealed(record(1, label=seal(INPUTS, replace(RENDERED, manifest="---\n"))))
    assert not is_sealed(record(1, label=seal(INPUTS, replace(RENDERED, hooks=()))))
    looked = seal(INPUTS, replace(RENDERED, looked=True))
    assert (len(looked) <= 63, is_sealed(record(1, label=looked))) == (True, True)
    assert has_looked(record(1, label=looked))
    assert not has_looked(record(1, label=label))


def test_a_record_contains_the_rendered_output() -> None:
    found = read_recorded(record(1, label=seal(INPUTS, RENDERED)), ())
    assert (found.rendered, found.values, found.label) == (RENDERED, {"a": 1}, seal(INPUTS, RENDERED))
    assert read_recorded(record(1), (OBJECT,)).rendered.crds == (OBJECT,)


def test_a_record_with_overrides_contains_the_original_render() -> None:
    label, base = seal(INPUTS, RENDERED), pack_base(RENDERED)
    overlaid = record(1, label=label, manifest=MANIFEST + "data: {a: b}\n", base=base)
    found = read_recorded(overlaid, ())
    assert is_sealed(overlaid)
    assert (found.rendered, found.label, found.base) == (RENDERED, label, base)
    other = pack_base(replace(RENDERED, manifest="---\n"))
    for wrong in (
        other,
        b"none",
        base[:-1],
        zlib.compress(b"[]"),
        zlib.compress(b'{"manifest": 1}'),
        zlib.compress(b"{"),
    ):
        assert not is_sealed(record(1, label=label, base=wrong))


def test_the_newest_render_is_used_unless_another_was_deployed_later() -> None:
    mine, other = seal(INPUTS, RENDERED), seal(OTHERS, RENDERED)
    done, failed, old = ReleaseStatus.DEPLOYED, ReleaseStatus.FAILED, ReleaseStatus.SUPERSEDED

    def found(*history: Release) -> int:
        return next((release.revision for release in matching(history, INPUTS)), 0)

    def all_found(*history: Release) -> list[int]:
        return [release.revision for release in matching(history, INPUTS)]

    theirs = record(2, done, mine, holder="")
    assert all_found(record(1, old, mine, holder=""), theirs) == [2, 1]
    assert all_found(record(1, old, mine), record(2, old, other), record(3, done, mine)) == [3]
    assert found() == 0
    assert found(record(1, done, mine)) == 1
    assert found(record(1, done, mine), record(2, failed, other)) == 1
    assert found(record(1, done, other), record(2, failed, mine)) == 2
    assert found(record(1, old, mine), record(2, done, other)) == 0
    assert found(record(1, old, mine), record(2, done)) == 0
    # a user wrote the last revision
    assert found(record(1, old, mine, holder=""), record(2, done, other, holder="")) == 1
    assert found(record(1, failed, mine), record(2, ReleaseStatus.PENDING_INSTALL, mine)) == 2


def test_a_record_of_an_older_daemon_has_no_label() -> None:
    assert unsealed([]) is None
    last = record(2)
    assert unsealed([record(1), last]) is last
    for other in (record(1, ReleaseStatus.FAILED), record(1, holder=""), record(1, label=seal(INPUTS, RENDERED))):
        assert unsealed([other]) is None


# -- in a runtime

DRAWING: Final = {
    "templates/drawn.yaml": (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Release.Name }}-drawn}\n"
        "stringData: {password: {{ randAlphaNum 12 }}, text: {{ .Values.text | default `none` }}}\n"
    ),
    "templates/first.yaml": (
        "{{ if .Release.IsInstall }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-first}\n{{ end }}\n"
    ),
}
FAILING: Final = {
    "templates/job.yaml": (
        "apiVersion: batch/v1\nkind: Job\n"
        'metadata: {name: late, annotations: {helm.sh/hook: post-install, wharfinger.dev/fail: "true"}}\n'
        "spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}\n"
    )
}


def elsewhere(ground: Ground, name: str) -> Ground:
    """Return the parts of a daemon on another host, which has neither the renders nor the journal of the earlier daemon."""
    (ground.folder / name).mkdir()
    return replace(ground, renders=ground.folder / name / "renders", journal=Journal(None))


async def drawn(world: World) -> str:
    return find_str(await world.client.get(DRAWN), "data", "password")


async def begin(world: World, files: dict[str, str], state: str = "Ready") -> str:
    """Install a chart that generates a random password, and return the password."""
    await world.push("web", "1.0.0", files)
    await world.repository()
    await world.create("prod", "shop")
    await world.until_state("prod", "shop", state)
    return await drawn(world)


async def history_of(world: World) -> list[Release]:
    return await world.runtime.tools.releases.history("shop", "prod")


async def verified(world: World) -> None:
    await until(lambda: "prod.shop" in world.runtime.instances and instance_of(world).applied.verified)


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_failed_install_retains_its_random_values(tmp_path: Path) -> None:
    """The next attempt uses the same password, because a client may already use the password of the failed install."""
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            before = await begin(world, DRAWING | FAILING, "Failed")
            tried = (await history_of(world))[-1].revision
        async with elsewhere(ground, "second").open_world() as world:
            with trio.fail_after(PATIENCE_S):
                while (last := (await history_of(world))[-1]).revision == tried or last.status.pending:
                    await trio.lowlevel.checkpoint()
            assert last.status is ReleaseStatus.FAILED
            assert await drawn(world) == before


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_reverted_settings_restore_the_earlier_random_values(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            failing = FAILING["templates/job.yaml"].replace("post-install", "post-upgrade")
            before = await begin(world, DRAWING | {"templates/job.yaml": failing})
            await world.change("prod", "shop", {"settings": {"text": "other"}})
            await world.until_state("prod", "shop", "Degraded")
            assert (await drawn(world)) != before
        async with elsewhere(ground, "second").open_world() as world:
            await world.change("prod", "shop", {"settings": None})
            await world.until_object(DRAWN, lambda obj: find_str(obj, "data", "password") == before)
            assert (await world.config_map("prod", "shop-first")) is not None


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.unmeasured
@pytest.mark.parametrize("annotation", ["wharfinger.dev/force-requested-at", "wharfinger.dev/reconcile-requested-at"])
async def test_a_requested_reconciliation_draws_no_new_values(tmp_path: Path, annotation: str) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            before = await begin(world, DRAWING)
        async with elsewhere(ground, "second").open_world() as world:
            await verified(world)
            await world.annotate("prod", "shop", annotation, "now")
            await until(
                lambda: (
                    "now"
                    in {instance_of(world).desired.directives.forced, instance_of(world).desired.directives.requested}
                )
            )
            await world.until_state("prod", "shop", "Ready")
            await world.runtime.queues.wait_idle("prod.shop")
            assert (await drawn(world), len(await history_of(world))) == (before, 1)


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_record_of_an_older_daemon_is_used_without_a_seal(tmp_path: Path) -> None:
    key = ObjectKey(SECRET, "prod", "sh.helm.release.v1.shop.v1")
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            before = await begin(world, DRAWING)
        await ground.client.merge_patch(key, {"metadata": {"labels": {RENDER_LABEL: None}}})
        for name in ("second", "third"):
            async with elsewhere(ground, name).open_world() as world:
                await verified(world)
                assert (await drawn(world), len(await history_of(world))) == (before, 1)


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_record_changed_by_another_process_is_not_used(tmp_path: Path) -> None:
    key = ObjectKey(SECRET, "prod", "sh.helm.release.v1.shop.v1")
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await begin(world, DRAWING)
        ours = from_secret(await ground.client.get(key))
        changed = replace(ours, document={**ours.document, "manifest": ours.manifest.replace("none", "changed")})
        await ground.client.merge_patch(key, {"data": find_object(to_secret(changed, NOW), "data")})
        async with elsewhere(ground, "second").open_world() as world:
            await verified(world)
            assert len(await history_of(world)) == 2
            assert find_str(await world.client.get(DRAWN), "data", "text") == "bm9uZQ=="


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_chart_with_lookups_is_not_rendered_at_a_start(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            looking = Looking(world.runtime.tools.renderer)
            world.runtime.packages.tools = replace(world.runtime.tools, renderer=looking)
            before = await begin(world, DRAWING)
        async with elsewhere(ground, "second").open_world() as world:
            looking = Looking(world.runtime.tools.renderer)
            world.runtime.packages.tools = replace(world.runtime.tools, renderer=looking)
            await verified(world)
            assert (looking.renders, await drawn(world), len(await history_of(world))) == (0, before, 1)
            look_again(world, "prod.shop")
            await world.runtime.queues.wait_idle("prod.shop")
            assert (looking.renders, len(await history_of(world))) == (1, 2)
