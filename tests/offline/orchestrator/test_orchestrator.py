"""The life of an orchestrator (spec/schedulers §B.1), and its determinism (part F)."""

from pathlib import Path

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
from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.discovery.walk import TreeError
from wharfinger.offline.orchestrator.orchestrator import Config, StoppedError, open_orchestrator
from wharfinger.offline.orchestrator.result import Result
from wharfinger.offline.output.documents import yaml_documents
from wharfinger.runtime.fixpoint.model import Id

FILES = {"ks.yaml": kustomization("one", "./one"), "one/map.yaml": config_map("one")}


async def test_bootstrap_again_does_nothing(tmp_path: Path) -> None:
    async with opened(write_tree(tmp_path / "tree", FILES), tmp_path) as orchestrator:
        await orchestrator.bootstrap()
        tree, objects = orchestrator.tree, orchestrator.store.list()
        write_tree(tmp_path / "tree", {"two.yaml": config_map("two")})
        await orchestrator.bootstrap()
        assert orchestrator.tree is tree
        assert orchestrator.store.list() == objects


async def test_bootstrap_can_be_repeated_after_a_failure(tmp_path: Path) -> None:
    async with opened(tmp_path / "tree", tmp_path) as orchestrator:
        with pytest.raises(TreeError):
            await orchestrator.bootstrap()
        assert orchestrator.store.list() == ()
        with pytest.raises(RuntimeError, match="after bootstrap"):
            _ = orchestrator.tree
        orchestrator.with_fetcher("Bucket", None)  # nothing is frozen yet
        write_tree(tmp_path / "tree", FILES)
        assert names(await orchestrator.render()) == ["one"]


async def test_render_is_cached(tmp_path: Path) -> None:
    async with opened(write_tree(tmp_path / "tree", FILES), tmp_path) as orchestrator:
        first = await orchestrator.render()
        assert await orchestrator.render() is first


async def test_an_error_of_render_is_cached_and_stops(tmp_path: Path) -> None:
    async with opened(tmp_path / "absent", tmp_path) as orchestrator:
        with pytest.raises(TreeError) as first:
            await orchestrator.render()
        with pytest.raises(TreeError) as second:
            await orchestrator.render()
        assert first.value is second.value
        with pytest.raises(StoppedError):
            await orchestrator.bootstrap()


async def test_stop_is_once_and_ends_everything(tmp_path: Path) -> None:
    async with opened(write_tree(tmp_path / "tree", FILES), tmp_path) as orchestrator:
        await orchestrator.stop()
        await orchestrator.stop()
        with pytest.raises(StoppedError):
            await orchestrator.run()


async def test_a_cancelled_run_judges_nothing(tmp_path: Path) -> None:
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


async def test_an_object_that_the_caller_adds_counts(tmp_path: Path) -> None:
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


@pytest.mark.sampled
@pytest.mark.parametrize("workers", [1, 2, 4])
async def test_the_sample_tree_is_built_to_the_same_bytes(workers: int, tmp_path: Path) -> None:
    made = [await built_fleet(tmp_path, workers) for _ in range(3)] + [await built_fleet(tmp_path, 8)]
    assert {yaml_documents(result.objects) for result in made} == {yaml_documents(made[0].objects)}
    assert not made[0].failed
    assert len(made[0].objects) >= 60


async def built_fleet(scratch: Path, workers: int) -> Result:
    """Build the sample tree."""
    async with open_test_tools(scratch, ROOT / "examples") as tools:
        config = Config(FLEET / "clusters" / "production", OPTIONS, root=FLEET, concurrency=workers)
        async with open_orchestrator(config, tools) as orchestrator:
            return await orchestrator.render()


@pytest.mark.slow
async def test_of_two_producers_the_first_wins_whatever_the_timing(tmp_path: Path) -> None:
    """Both build the values of a release, with another text each."""
    files = {
        "ks.yaml": "---\n".join(kustomization(name, f"./{name}") for name in ("a", "b")),
        "a/map.yaml": config_map("vars", "flux-system", text="a"),
        "b/map.yaml": config_map("vars", "flux-system", text="b"),
        "c.yaml": kustomization("c", "./c", "  postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}\n"),
        "c/map.yaml": config_map("seen", text="${text}"),
    }
    seen = set()
    for number in range(10):
        tree = write_tree(tmp_path / str(number), dict(reversed(files.items()) if number % 2 else files.items()))
        result = await built(tree, tmp_path, concurrency=1 + number % 4)
        seen.add(str(result.manifests[flux_id("Kustomization", "c")][0].object["data"]))
        assert any(
            "made by Kustomization flux-system/a, Kustomization flux-system/b" in str(each) for each in result.warnings
        )
    assert seen == {"{'text': 'a'}"}


@pytest.mark.slow
async def test_a_chain_of_forty_that_each_render_the_next(tmp_path: Path) -> None:
    files = {"ks.yaml": kustomization("k0", "./k0")}
    for number in range(40):
        files[f"k{number}/next.yaml"] = kustomization(f"k{number + 1}", f"./k{number + 1}", depends=(f"k{number}",))
    files["k40/map.yaml"] = config_map("deep")
    result = await built(write_tree(tmp_path / "tree", files), tmp_path)
    assert names(result) == ["deep"]
    assert not result.failed
    assert Id("ConfigMap", "apps", "deep") in {each.id for each in result.objects}
