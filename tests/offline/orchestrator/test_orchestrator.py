"""The life cycle of an orchestrator (spec/schedulers §B.1), and its determinism (part F)."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import trio

from tests.offline.support import (
    FLEET,
    OPTIONS,
    built,
    config_map,
    flux_id,
    kustomization,
    names,
    open_test_tools,
    opened,
    write_tree,
)
from tests.programs import ROOT
from tests.scale import scaled
from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.discovery.walk import TreeError
from wharfinger.offline.orchestrator.filter import parse_filter
from wharfinger.offline.orchestrator.orchestrator import Config, StoppedError, open_orchestrator
from wharfinger.offline.orchestrator.result import Result
from wharfinger.offline.orchestrator.selection import SelectionError
from wharfinger.offline.output.documents import yaml_documents
from wharfinger.offline.store.status import State
from wharfinger.offline.store.store import Change
from wharfinger.runtime.fixpoint.model import Id

FILES = {"ks.yaml": kustomization("one", "./one"), "one/map.yaml": config_map("one")}


async def test_a_second_bootstrap_changes_nothing(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "tree", FILES)
    config = Config(root, OPTIONS, root=root, filters=(parse_filter("ConfigMap/one"),))
    async with open_test_tools(tmp_path) as tools, open_orchestrator(config, tools) as orchestrator:
        await orchestrator.bootstrap()
        tree, objects, chosen = orchestrator.tree, orchestrator.store.list(), orchestrator.filter
        write_tree(tmp_path / "tree", {"two.yaml": config_map("two")})
        await orchestrator.bootstrap()
        assert orchestrator.tree is tree
        assert orchestrator.filter is chosen
        assert orchestrator.store.list() == objects


async def test_bootstrap_can_be_repeated_after_a_failure(tmp_path: Path) -> None:
    async with opened(tmp_path / "tree", tmp_path) as orchestrator:
        with pytest.raises(TreeError):
            await orchestrator.bootstrap()
        assert orchestrator.store.list() == ()
        with pytest.raises(RuntimeError, match="after bootstrap"):
            _ = orchestrator.tree
        orchestrator.with_fetcher("Bucket", None)  # The fetchers are not frozen yet.
        write_tree(tmp_path / "tree", FILES)
        assert names(await orchestrator.render()) == ["one"]


async def test_render_is_cached(tmp_path: Path) -> None:
    async with opened(write_tree(tmp_path / "tree", FILES), tmp_path) as orchestrator:
        first = await orchestrator.render()
        assert await orchestrator.render() is first


async def test_an_error_of_render_is_cached_and_stops_the_orchestrator(tmp_path: Path) -> None:
    async with opened(tmp_path / "absent", tmp_path) as orchestrator:
        with pytest.raises(TreeError) as first:
            await orchestrator.render()
        with pytest.raises(TreeError) as second:
            await orchestrator.render()
        assert first.value is second.value
        with pytest.raises(StoppedError):
            await orchestrator.bootstrap()


async def test_render_returns_only_objects_chosen_by_filters(tmp_path: Path) -> None:
    files = {**FILES, "one/two.yaml": config_map("two")}
    root = write_tree(tmp_path / "tree", files)
    config = Config(root, OPTIONS, root=root, filters=(parse_filter("ConfigMap/two"),))
    async with open_test_tools(tmp_path) as tools:
        async with open_orchestrator(config, tools) as orchestrator:
            assert names(await orchestrator.render()) == ["two"]
        wrong = replace(config, filters=(parse_filter("ConfigMap/too"),))
        async with open_orchestrator(wrong, tools) as orchestrator:
            with pytest.raises(SelectionError, match=r"nearest: two"):
                await orchestrator.render()


async def test_stop_can_be_repeated_and_prevents_further_runs(tmp_path: Path) -> None:
    async with opened(write_tree(tmp_path / "tree", FILES), tmp_path) as orchestrator:
        await orchestrator.stop()
        await orchestrator.stop()
        with pytest.raises(StoppedError):
            await orchestrator.run()


async def test_a_cancelled_run_has_no_verdicts(tmp_path: Path) -> None:
    async with opened(write_tree(tmp_path / "tree", FILES), tmp_path) as orchestrator:
        with trio.CancelScope() as scope:
            scope.cancel()
            await orchestrator.run()
        assert scope.cancelled_caught
        assert orchestrator.store.statuses() == ()


async def test_two_orchestrators_can_share_their_tools(tmp_path: Path) -> None:
    one = write_tree(tmp_path / "one", FILES)
    two = write_tree(tmp_path / "two", {**FILES, "one/more.yaml": config_map("more")})
    async with open_test_tools(tmp_path) as tools:
        results = []
        for path in (one, two):
            async with open_orchestrator(Config(path, OPTIONS, root=path), tools) as orchestrator:
                results.append(names(await orchestrator.render()))
    assert results == [["one"], ["more", "one"]]


async def test_an_object_added_by_the_caller_is_part_of_the_build(tmp_path: Path) -> None:
    files = {"ks.yaml": kustomization("one", "./one", depends=("given",)), "one/map.yaml": config_map("one")}
    async with opened(write_tree(tmp_path / "tree", files), tmp_path) as orchestrator:
        await orchestrator.bootstrap()
        given = flux_id("Kustomization", "given")
        spec: JsonObject = {
            "sourceRef": {"kind": "GitRepository", "name": "flux-system"},
            "path": "./one",
            "suspend": True,
        }
        orchestrator.store.add(given, {"kind": "Kustomization", "spec": spec})
        result = await orchestrator.run()
    assert not result.failed
    assert names(result) == ["one"]


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("workers", [1, 2, 4])
async def test_the_sample_tree_is_always_built_to_the_same_bytes(workers: int, tmp_path: Path) -> None:
    made = [await built_fleet(tmp_path, workers) for _ in range(3)] + [await built_fleet(tmp_path / "cold", 8)]
    assert {yaml_documents(result.objects) for result in made} == {yaml_documents(made[0].objects)}
    assert not made[0].failed
    assert len(made[0].objects) >= 60


async def built_fleet(scratch: Path, workers: int) -> Result:
    """Build the sample tree, with a cache below ``scratch``."""
    async with open_test_tools(scratch, ROOT / "examples") as tools:
        config = Config(FLEET / "clusters" / "production", OPTIONS, root=FLEET, concurrency=workers)
        async with open_orchestrator(config, tools) as orchestrator:
            return await orchestrator.render()


@pytest.mark.slow
async def test_the_first_of_two_producers_always_wins(tmp_path: Path) -> None:
    """Two Kustomizations build the same ConfigMap with different texts, and a third one reads it. The ConfigMap of the
    Kustomization ``a`` is used in every build.
    """
    files = {
        "ks.yaml": "---\n".join(kustomization(name, f"./{name}") for name in ("a", "b")),
        "a/map.yaml": config_map("vars", "flux-system", text="a"),
        "b/map.yaml": config_map("vars", "flux-system", text="b"),
        "c.yaml": kustomization("c", "./c", "  postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}\n"),
        "c/map.yaml": config_map("seen", text="${text}"),
    }
    seen = set()
    for number in range(scaled(50, 10)):
        tree = write_tree(tmp_path / str(number), dict(reversed(files.items()) if number % 2 else files.items()))
        result = await built(tree, tmp_path, concurrency=1 + number % 4)
        seen.add(str(result.manifests[flux_id("Kustomization", "c")][0].object["data"]))
        assert any(
            "made by Kustomization flux-system/a, Kustomization flux-system/b" in str(each) for each in result.warnings
        )
    assert seen == {"{'text': 'a'}"}


@pytest.mark.slow
async def test_a_chain_of_forty_kustomizations_is_built(tmp_path: Path) -> None:
    files = {"ks.yaml": kustomization("k0", "./k0")}
    for number in range(40):
        files[f"k{number}/next.yaml"] = kustomization(f"k{number + 1}", f"./k{number + 1}", depends=(f"k{number}",))
    files["k40/map.yaml"] = config_map("deep")
    tree = write_tree(tmp_path / "tree", files)
    results = [await built(tree, tmp_path, concurrency=workers) for workers in (1, 2, 4)]
    assert names(results[0]) == ["deep"]
    assert not results[0].failed
    assert Id("ConfigMap", "apps", "deep") in {each.id for each in results[0].objects}
    assert len({yaml_documents(each.objects) for each in results}) == 1


@pytest.mark.slow
async def test_results_do_not_depend_on_the_distribution_of_documents_over_files(tmp_path: Path) -> None:
    """The same documents are distributed over files at random and in any order, so that a file may have several of them."""
    documents = [kustomization(name, f"./{name}") for name in ("a", "b", "c")]
    documents += [config_map(f"map-{number}", "flux-system", text=f"value {number}") for number in range(6)]
    documents += [kustomization("d", "./d", "  postBuild: {substituteFrom: [{kind: ConfigMap, name: map-1}]}\n")]
    built_files = {f"{name}/map.yaml": config_map(name, text="${text}") for name in ("a", "b", "c", "d")}
    texts = set()
    for seed in range(6):
        draw = Random(seed)  # noqa: S311 - an order, no secret
        spread: dict[str, list[str]] = {}
        for document in draw.sample(documents, len(documents)):
            spread.setdefault(f"{draw.randrange(4)}-{draw.randrange(2)}.yaml", []).append(document)
        files = {**built_files, **{name: "---\n".join(listed) for name, listed in spread.items()}}
        tree = write_tree(tmp_path / str(seed), dict(draw.sample(sorted(files.items()), len(files))))
        result = await built(tree, tmp_path, concurrency=1 + seed % 4)
        assert not result.failed
        texts.add(yaml_documents(result.objects))
    assert len(texts) == 1
    assert "name: d\n  namespace: apps\ndata:\n  text: value 1\n" in texts.pop()


@pytest.mark.slow
async def test_a_node_that_is_refired_too_often_fails(tmp_path: Path) -> None:
    async with opened(write_tree(tmp_path / "tree", FILES), tmp_path) as orchestrator:
        await orchestrator.bootstrap()
        one = flux_id("Kustomization", "one")

        def refire(change: Change, who: Id) -> None:
            if change is Change.STATUS and who == one and orchestrator.store.status(one).is_ready:
                orchestrator.store.refire(one)

        with orchestrator.store.subscribed(refire):
            result = await orchestrator.run()
    assert str(result.failed[one]) == (
        "ks.yaml:1: Kustomization flux-system/one: was refired more than 32 times in one run; "
        "a listener must not refire it each time"
    )


async def test_one_refire_runs_a_node_again(tmp_path: Path) -> None:
    async with opened(write_tree(tmp_path / "tree", FILES), tmp_path) as orchestrator:
        await orchestrator.bootstrap()
        one, seen = flux_id("Kustomization", "one"), list[State]()

        def refire(change: Change, who: Id) -> None:
            if change is Change.STATUS and who == one:
                seen.append(orchestrator.store.status(one).state)
                if seen == [State.READY]:
                    orchestrator.store.refire(one)

        with orchestrator.store.subscribed(refire):
            result = await orchestrator.run()
    assert seen == [State.READY, State.READY]
    assert not result.failed
