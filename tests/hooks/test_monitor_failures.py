"""Filters that fail, and bindings that cannot or may not be watched."""

import pytest
from trio.testing import MockClock

from tests.cluster.support.client_contract import key, widget_crd
from tests.cluster.support.clusters import memory_cluster
from tests.hooks.support.bindings import binding
from tests.hooks.support.python_filters import PythonFilters
from tests.hooks.support.watching import ADDED, DELETED, HERE, VALUE, obj, settle, value_filters, watching, write
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.hooks.config.bindings import NamespaceSelector
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.watching.filters import FilterError

# -- filters that fail


async def test_a_filter_that_fails_on_the_list_fails_the_binding(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await write(client, *(obj(f"c-{number}", v="1") for number in range(20)), obj("z", bad="yes"))
        async with watching(client, VALUE) as watched:
            with pytest.raises(HookError) as caught:
                await watched.monitor.wait_listed()
            assert str(caught.value).startswith(
                "hook hooks/h.sh: binding watched: its filter fails on ConfigMap default/z: jq filter 'value': bad data"
            )
            assert caught.value.transient
            assert not watched.monitor.statistics().listed
            with pytest.raises(HookError):
                await watched.monitor.wait_listed()


async def test_a_filter_that_fails_on_a_change_drops_the_change(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with memory_cluster() as client:
        await write(client, obj("a", v="1"))
        async with watching(client, VALUE) as watched:
            await watched.monitor.wait_listed()
            watched.monitor.unlock()
            await write(client, obj("a", v="2", bad="yes"), obj("b", v="3", bad="yes"))
            await settle()
            assert watched.take() == []
            assert watched.shown() == ["1"]
            statistics = watched.monitor.statistics()
            assert statistics.dropped == 2
            assert statistics.last_error.startswith("Added ConfigMap default/b: ")
            assert "the filter fails on ConfigMap default/a: " in caplog.text
            # The first event of the object shows its first state that the filter accepts.
            await client.merge_patch(key("b"), {"data": {"bad": None}})
            await client.delete(key("a"))
            await settle()
            assert watched.take() == [(ADDED, "3"), (DELETED, "1")]
            assert watched.shown() == ["3"]


async def test_filter_is_retried_once_after_its_worker_died(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        filters = value_filters()
        async with watching(client, VALUE, filters) as watched:
            await watched.monitor.wait_listed()
            watched.monitor.unlock()
            for deaths, told in ((1, [(ADDED, "1")]), (2, [])):
                filters.deaths = deaths
                await write(client, obj("a", v=str(deaths)))
                await settle()
                assert watched.take() == told
            assert "its worker died" in watched.monitor.statistics().last_error


async def test_deletion_of_an_object_whose_filter_failed_is_not_reported(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, watching(client, VALUE) as watched:
        await watched.monitor.wait_listed()
        watched.monitor.unlock()
        await write(client, obj("a", bad="yes"))
        await client.delete(key("a"))
        await settle()
        assert watched.take() == []


async def test_an_invalid_filter_is_a_permanent_failure(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, watching(client, binding(jq_filter="nonsense")) as watched:
        with pytest.raises(HookError, match="binding watched: jq filter 'nonsense': no such program") as caught:
            await watched.monitor.wait_listed()
        assert not caught.value.transient


# -- bindings that cannot be watched


async def test_an_unknown_kind_is_a_transient_failure(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        wanted = binding(kind="widget")
        async with watching(client, wanted) as watched:
            with pytest.raises(HookError, match=r"binding watched: widget: .*CustomResourceDefinition") as caught:
                await watched.monitor.wait_listed()
            assert caught.value.transient
        await client.apply(widget_crd(), field_manager="test")
        await settle()
        async with watching(client, wanted) as watched:
            await watched.monitor.wait_listed()
            meta: JsonObject = {"name": "one", "namespace": "default"}
            await client.create({"apiVersion": "example.test/v1", "kind": "Widget", "metadata": meta})
            await settle()
            assert watched.shown() == ["one"]


async def test_a_selector_that_the_api_refuses_is_a_permanent_failure(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, watching(client, binding(fields="data.v=1")) as watched:
        with pytest.raises(HookError, match=r"binding watched: .*not a known field selector") as caught:
            await watched.monitor.wait_listed()
        assert not caught.value.transient


async def test_application_hook_sees_only_its_own_namespace(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await write(client, obj("a", v="1"), obj("b", "kube-public", v="2"))
        for asked in (None, NamespaceSelector(("kube-public",), ""), NamespaceSelector(None, "a=b")):
            wanted = binding(jq_filter="value", labels="app=x", namespaces=asked)
            async with watching(client, wanted, namespace="default") as watched:
                await watched.monitor.wait_listed()
                watched.monitor.unlock()
                await write(client, obj("c", "kube-public", v=str(asked)))
                await settle()
                assert watched.shown() == ["1"]
                assert watched.take() == []


async def test_application_hook_cannot_watch_cluster_scoped_objects(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client, watching(client, binding(kind="ns"), namespace="default") as watched:
        with pytest.raises(
            HookError, match="Namespace is cluster-scoped, and an Application's hooks see only"
        ) as caught:
            await watched.monitor.wait_listed()
        assert not caught.value.transient


@pytest.mark.parametrize(
    ("asked", "field"), [(HERE, "nameSelector"), (NamespaceSelector(None, "a=b"), "labelSelector")]
)
async def test_namespace_selector_for_a_cluster_scoped_kind_is_refused(
    autojump_clock: MockClock, asked: NamespaceSelector, field: str
) -> None:
    """If the selector were ignored, all objects of the kind would be watched and not only the selected ones."""
    wanted = binding(kind="ns", namespaces=asked)
    async with memory_cluster() as client, watching(client, wanted) as watched:
        expected = rf"binding watched: Namespace is cluster-scoped, so namespace\.{field} cannot .*; leave it out"
        with pytest.raises(HookError, match=expected) as caught:
            await watched.monitor.wait_listed()
        assert not caught.value.transient


async def test_module_hook_may_watch_cluster_scoped_objects(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        for asked in (None, NamespaceSelector((), "")):
            async with watching(client, binding(kind="namespaces", namespaces=asked)) as watched:
                await watched.monitor.wait_listed()
                assert "kube-public" in watched.shown()


async def test_a_binding_that_needs_too_many_watches_fails_permanently() -> None:
    wanted = binding(names=tuple(map(str, range(17))), namespaces=NamespaceSelector(tuple(map(str, range(16))), ""))
    async with memory_cluster() as client, watching(client, wanted) as watched:
        with pytest.raises(HookError, match="binding watched: 272 watches of ConfigMap would be needed") as caught:
            await watched.monitor.wait_listed()
        assert not caught.value.transient


async def test_filter_that_timed_out_is_not_retried_immediately(autojump_clock: MockClock) -> None:
    asked: list[str] = []

    def late(document: JsonValue) -> JsonValue:
        asked.append("x")
        raise FilterError("late", "it took longer than 5 s", transient=True)

    async with memory_cluster() as client:
        filters = PythonFilters({"late": late})
        await write(client, obj("a"))
        async with watching(client, binding(jq_filter="late", namespaces=HERE, labels="app=x"), filters) as watched:
            with pytest.raises(HookError, match="longer than 5 s") as caught:
                await watched.monitor.wait_listed()
            assert caught.value.transient
    assert asked == ["x"]
