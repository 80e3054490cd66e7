"""The confirmation of an unchanged release after a restart, without an upgrade."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from trio.testing import MockClock

from tests.cluster.support.client_contract import key, widget_crd
from tests.cluster.support.release_bench import WIDGET, cluster, open_engine
from tests.cluster.support.release_requests import config_map, deployment, objects_of, request
from wharfinger.cluster.api.errors import UnknownKindError
from wharfinger.cluster.objects.drift_policy import DriftMode, DriftPolicy
from wharfinger.cluster.objects.ownership import ForeignObjectError, Owner
from wharfinger.cluster.objects.scope import OutsideNamespaceError
from wharfinger.cluster.releases.engine import ReleaseEngine
from wharfinger.cluster.releases.options import EngineOptions
from wharfinger.cluster.releases.request import Outcome, ReleaseRequest
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey

APPLIED = replace(request(config_map("b"), config_map("a", v="1")), inputs=b"{}", marks={"render": "x"})
WANTED = replace(APPLIED, objects=())
"""The request ``APPLIED`` before its objects were parsed."""


@asynccontextmanager
async def restarted(*, restores: bool = True) -> AsyncIterator[tuple[ReleaseEngine, list[str]]]:
    """Open an engine after a restart. Yield the engine and its write requests."""
    async with cluster() as (client, transport):
        async with open_engine(client) as engine:
            await engine.upgrade(APPLIED)
        transport.requests.clear()
        async with open_engine(client) as engine:
            engine.expect([APPLIED.owner])
            if restores:
                await engine.restore("web", "default")
            yield engine, transport.writes


async def test_an_unchanged_release_is_confirmed_like_an_upgrade(autojump_clock: MockClock) -> None:
    async with restarted() as (engine, writes):
        found = await engine.confirm(WANTED)
        assert found is not None
        assert (found.outcome, found.revision) == (Outcome.UNCHANGED, 1)
        assert engine.unchanged(WANTED) == found
        assert engine.as_applied(WANTED.owner, WANTED.fingerprint) == found
        again = await engine.upgrade(APPLIED)
        assert (again.outcome, again.revision, set(again.objects)) == (Outcome.UNCHANGED, 1, set(found.objects))
        assert await engine.confirm(WANTED) is None  # after an upgrade, the release no longer counts as just restored
        assert writes == []


async def test_a_release_that_was_not_restored_is_not_confirmed(autojump_clock: MockClock) -> None:
    async with restarted(restores=False) as (engine, _):
        assert await engine.confirm(WANTED) is None


@pytest.mark.parametrize(
    "other",
    [
        replace(WANTED, manifest=config_map("a", v="2")),
        replace(WANTED, values={"a": 1}),
        replace(WANTED, labels={"a": "b"}),
        replace(WANTED, marks={"render": "y"}),
        replace(WANTED, inputs=b"[]"),
        replace(WANTED, drift=DriftPolicy(mode=DriftMode.WARN)),
    ],
    ids=["manifest", "values", "labels", "marks", "inputs", "drift"],
)
async def test_a_different_request_is_not_confirmed(other: ReleaseRequest, autojump_clock: MockClock) -> None:
    async with restarted() as (engine, _):
        assert await engine.confirm(other) is None
        whole = replace(other, objects=objects_of(other.manifest))
        assert (await engine.upgrade(whole)).outcome in (Outcome.UNCHANGED, Outcome.UPGRADED)


@pytest.mark.parametrize("change", ["edited", "deleted"])
async def test_a_release_with_a_drifted_object_is_not_confirmed(change: str, autojump_clock: MockClock) -> None:
    async with cluster() as (client, _):
        async with open_engine(client) as engine:
            await engine.upgrade(APPLIED)
        if change == "edited":
            edited: JsonObject = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "a", "namespace": "default"},
                "data": {"v": "9"},
            }
            await client.apply(edited, field_manager="ann", force=True)
        else:
            await client.delete(key("a"))
        async with open_engine(client) as engine:
            engine.expect([APPLIED.owner])
            await engine.restore("web", "default")
            assert await engine.confirm(WANTED) is None
            assert (await engine.upgrade(APPLIED)).outcome is Outcome.UNCHANGED
            assert (await client.get(key("a")))["data"] == {"v": "1"}


async def test_desired_objects_of_some_kinds_are_returned(autojump_clock: MockClock) -> None:
    wanted = request(config_map("a", v="1"), deployment("web"))
    async with cluster() as (client, _), open_engine(client) as engine:
        await engine.upgrade(wanted)
        (found,) = engine.wanted(wanted.owner, {"ConfigMap", "Secret"})
        assert found["data"] == {"v": "1"}
        assert engine.wanted(wanted.owner, ()) == ()


async def test_a_release_with_an_object_of_an_unserved_kind_is_not_confirmed(autojump_clock: MockClock) -> None:
    applied = replace(request(config_map("a", v="1"), WIDGET), inputs=b"{}", marks={"render": "x"})
    async with cluster() as (client, _):
        async with open_engine(client) as engine:
            await engine.ensure_crds("other", "default", (widget_crd(),))
            await engine.upgrade(applied)
        definition = await client.resource_type("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        await client.delete(ObjectKey(definition, "", "widgets.example.test"))
        async with open_engine(client) as engine:
            engine.expect([applied.owner])
            await engine.restore("web", "default")
            assert await engine.confirm(replace(applied, objects=())) is None
            with pytest.raises(UnknownKindError, match="Widget"):
                await engine.upgrade(applied)


async def test_a_release_confined_since_then_is_not_confirmed(autojump_clock: MockClock) -> None:
    elsewhere = config_map("a", "namespace: kube-public", v="1")
    applied = replace(request(elsewhere), inputs=b"{}", marks={"render": "x"})
    confined: set[Owner] = set()
    async with cluster() as (client, _):
        async with open_engine(client) as engine:
            await engine.upgrade(applied)
        async with open_engine(client, EngineOptions(confined=confined.__contains__)) as engine:
            engine.expect([applied.owner])
            await engine.restore("web", "default")
            confined.add(applied.owner)  # the label of its namespace was removed before the first run
            assert await engine.confirm(replace(applied, objects=())) is None
            with pytest.raises(OutsideNamespaceError):
                await engine.upgrade(applied)


async def test_a_release_with_an_object_of_another_release_is_not_confirmed(autojump_clock: MockClock) -> None:
    async with cluster() as (client, _):
        async with open_engine(client) as engine:
            await engine.upgrade(APPLIED)
        moved: JsonObject = {"meta.helm.sh/release-name": "other", "meta.helm.sh/release-namespace": "default"}
        await client.merge_patch(key("a"), {"metadata": {"annotations": moved}})
        async with open_engine(client) as engine:
            await engine.upgrade(request(config_map("a", v="1"), name="other"))
            engine.expect([APPLIED.owner])
            await engine.restore("web", "default")
            assert await engine.confirm(WANTED) is None
            with pytest.raises(ForeignObjectError):
                await engine.upgrade(APPLIED)
