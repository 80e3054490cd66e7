"""Cached renders of the real Helm, and of a renderer that counts its calls."""

from dataclasses import replace
from pathlib import Path

import pytest
import trio

from tests.packages.support.charts import tool
from tests.packages.support.renders import ASKED, CountingRenderer
from wharfinger.packages.errors import RenderError
from wharfinger.packages.rendering.entry_cache import CacheLimits, EntryCache
from wharfinger.packages.rendering.helm_renderer import HelmRenderer
from wharfinger.packages.rendering.render_cache import CachingRenderer
from wharfinger.packages.rendering.render_entry import entry_key, write_entry
from wharfinger.packages.rendering.renderer import RenderRequest


@pytest.fixture
def inner() -> CountingRenderer:
    return CountingRenderer()


async def test_equal_requests_are_rendered_once(inner: CountingRenderer, tmp_path: Path) -> None:
    cache = CachingRenderer(inner, EntryCache(tmp_path / "renders"))
    first = await cache.render(ASKED)
    assert await cache.render(ASKED) == first
    assert inner.asked == [ASKED]
    assert (await cache.render(replace(ASKED, release="other"))).objects != first.objects
    said = cache.statistics()
    assert (said.hits, said.disk_hits, said.misses, said.uncached, said.entries) == (1, 0, 2, 0, 2)
    assert 0 < said.bytes < said.disk.bytes


async def test_cached_renders_are_used_after_a_restart(inner: CountingRenderer, tmp_path: Path) -> None:
    first = await CachingRenderer(inner, EntryCache(tmp_path / "renders")).render(ASKED)
    again = CachingRenderer(inner, EntryCache(tmp_path / "renders"))
    assert [await again.render(ASKED), await again.render(ASKED)] == [first, first]
    assert len(inner.asked) == 1
    said = again.statistics()
    assert (said.hits, said.disk_hits, said.misses) == (1, 1, 0)


async def test_modified_results_do_not_change_the_cache(inner: CountingRenderer, tmp_path: Path) -> None:
    cache = CachingRenderer(inner, EntryCache(tmp_path / "renders"))
    for _ in range(3):
        found = (await cache.render(ASKED)).objects[0]
        assert found["data"] == {"text": ""}
        found["data"] = {}


async def test_another_helm_version_renders_again(inner: CountingRenderer, tmp_path: Path) -> None:
    cache = CachingRenderer(inner, EntryCache(tmp_path / "renders"))
    await cache.render(ASKED)
    inner.version = "helm v5"
    await cache.render(ASKED)
    assert len(inner.asked) == 2


@pytest.mark.parametrize(
    "asked",
    [replace(ASKED, chart_digest=""), replace(ASKED, values={"a": float("nan")}), replace(ASKED, release="live")],
)
async def test_renders_without_an_identity_are_not_cached(
    asked: RenderRequest, inner: CountingRenderer, tmp_path: Path
) -> None:
    if asked.release == "live":
        inner.version = None
    cache = CachingRenderer(inner, EntryCache(tmp_path / "renders"))
    await cache.render(asked)
    await cache.render(asked)
    assert len(inner.asked) == 2
    said = cache.statistics()
    assert (said.uncached, said.misses, said.entries) == (2, 0, 0)
    assert not (tmp_path / "renders").exists()


async def test_errors_are_not_cached(inner: CountingRenderer, tmp_path: Path) -> None:
    cache = CachingRenderer(inner, EntryCache(tmp_path / "renders"))
    inner.error = RenderError("no")
    for _ in range(2):
        with pytest.raises(RenderError, match="no"):
            await cache.render(ASKED)
    inner.error = None
    await cache.render(ASKED)
    await cache.render(ASKED)
    assert len(inner.asked) == 3


async def test_concurrent_equal_requests_are_rendered_once(inner: CountingRenderer, tmp_path: Path) -> None:
    cache = CachingRenderer(inner, EntryCache(tmp_path / "renders"))
    inner.gate = trio.Event()
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(cache.render, ASKED)
        nursery.start_soon(cache.render, replace(ASKED, release="other"))
        while len(inner.asked) < 2:  # The other request does not wait for the equal ones.
            await trio.lowlevel.checkpoint()
        inner.gate.set()
    assert len(inner.asked) == 2
    assert (cache.statistics().hits, cache.statistics().misses) == (19, 2)


async def test_a_waiting_request_renders_after_the_first_is_cancelled(inner: CountingRenderer, tmp_path: Path) -> None:
    cache = CachingRenderer(inner, EntryCache(tmp_path / "renders"))
    inner.gate = trio.Event()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cache.render, ASKED)
            while not inner.asked:
                await trio.lowlevel.checkpoint()
            scope.cancel()
    assert scope.cancelled_caught
    inner.gate = None
    assert await cache.render(ASKED) == await cache.render(ASKED)
    assert len(inner.asked) == 2


async def test_the_least_recently_used_render_is_evicted_from_memory(inner: CountingRenderer, tmp_path: Path) -> None:
    limits = CacheLimits(memory_entries=2, disk_entries=0)
    cache = CachingRenderer(inner, EntryCache(tmp_path / "renders", limits))
    asked = [replace(ASKED, release=name) for name in ("a", "b", "c")]
    await cache.render(asked[0])
    await cache.render(asked[1])
    await cache.render(asked[0])
    await cache.render(asked[2])
    assert len(inner.asked) == 3
    await cache.render(asked[0])
    assert len(inner.asked) == 3
    await cache.render(asked[1])
    assert len(inner.asked) == 4
    assert cache.statistics().entries == 2


async def test_the_bytes_in_memory_are_bounded(inner: CountingRenderer, tmp_path: Path) -> None:
    cache = CachingRenderer(inner, EntryCache(tmp_path / "renders", CacheLimits(memory_bytes=700, disk_entries=0)))
    for number in range(10):
        await cache.render(replace(ASKED, release=f"web-{number}"))
    said = cache.statistics()
    assert 0 < said.entries < 10
    assert said.bytes <= 700
    small = CachingRenderer(inner, EntryCache(tmp_path / "renders", CacheLimits(memory_bytes=10)))
    first = await small.render(ASKED)
    assert (small.statistics().entries, small.statistics().disk.entries) == (0, 1)
    assert await small.render(ASKED) == first


async def test_a_large_render_is_unpacked_in_a_thread(
    inner: CountingRenderer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wharfinger.packages.rendering.render_cache.THREAD_BYTES", 10)
    cache = CachingRenderer(inner, EntryCache(tmp_path / "renders"))
    assert await cache.render(ASKED) == await cache.render(ASKED)
    assert cache.statistics().hits == 1


async def test_an_oversized_render_is_not_cached(
    inner: CountingRenderer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wharfinger.packages.rendering.render_entry.MAX_TEXT", 100)
    cache = CachingRenderer(inner, EntryCache(tmp_path / "renders"))
    await cache.render(ASKED)
    await cache.render(ASKED)
    assert cache.statistics().misses == len(inner.asked) == 2


async def test_a_file_without_a_valid_render_is_replaced(inner: CountingRenderer, tmp_path: Path) -> None:
    key = entry_key(ASKED, "helm v4.0.0")
    folder = tmp_path / "renders"
    folder.mkdir(mode=0o700)
    path = folder / f"{key}.render"
    path.write_bytes(write_entry(key, b"whole, and no render"))
    path.chmod(0o600)
    cache = CachingRenderer(inner, EntryCache(folder))
    await cache.render(ASKED)
    assert len(inner.asked) == 1
    assert (await CachingRenderer(inner, EntryCache(folder)).render(ASKED)).notes == "read this"
    assert len(inner.asked) == 1


@pytest.mark.parametrize("program", ["helm", "helm3"])
async def test_renders_of_the_real_helm_are_cached_per_version(program: str, tmp_path: Path) -> None:
    helm = HelmRenderer(tool(program), tmp_path / "scratch")
    cache = CachingRenderer(helm, EntryCache(tmp_path / "renders"))
    rendered = await cache.render(ASKED)
    assert rendered == await helm.render(ASKED)
    assert rendered.notes
    assert await cache.render(ASKED) == rendered
    assert cache.statistics().hits == 1
    helms = {await HelmRenderer(tool(name), tmp_path / "scratch").identity(ASKED) for name in ("helm", "helm3")}
    assert len(helms) == 2
    with pytest.raises(RenderError, match="replicas"):
        await cache.render(replace(ASKED, values={"replicas": "many"}))
