"""The cache that records whether fetched charts may make nodes (objects that have a controller)."""

from pathlib import Path

import pytest

from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.building.chart_makers import ChartMakers, fixed_chart
from wharfinger.packages.rendering.entry_cache import EntryCache


@pytest.mark.parametrize(
    ("source", "version", "is_fixed"),
    [
        ({"url": "https://charts.example.com"}, "1.2.3", True),
        ({"url": "https://charts.example.com"}, "v1.2.3-rc.1+x", True),
        ({"url": "https://charts.example.com"}, "1.x", False),
        ({"url": "https://charts.example.com"}, ">=1.2.3", False),
        ({"url": "https://charts.example.com"}, "", False),
        ({"url": "oci://r/x", "ref": {"tag": "1.2.3"}}, "", True),
        ({"url": "oci://r/x", "ref": {"tag": "latest"}}, "", False),
        ({"url": "oci://r/x", "ref": {"tag": "1.2.3", "semver": "1.x"}}, "", False),
        ({"url": "oci://r/x", "ref": {"digest": "sha256:1"}}, "", True),
        ({"url": "https://git", "ref": {"commit": "a" * 40}}, "", True),
        ({"url": "https://git", "ref": {"branch": "main"}}, "", False),
    ],
)
def test_only_charts_with_a_fixed_version_have_a_key(source: JsonObject, version: str, is_fixed: bool) -> None:
    assert (fixed_chart(source, "web", version) is not None) is is_fixed


def test_each_chart_has_its_own_key() -> None:
    url: JsonObject = {"url": "https://charts.example.com"}
    keys = {fixed_chart(url, *chart) for chart in (("web", "1.0.0"), ("web", "1.0.1"), ("api", "1.0.0"))}
    keys.add(fixed_chart({"url": "https://other.example.com"}, "web", "1.0.0"))
    assert len(keys - {None}) == 4


async def test_recorded_facts_are_read_by_the_next_command(tmp_path: Path) -> None:
    key, other = (fixed_chart({"url": "x"}, name, "1.0.0") for name in ("web", "api"))
    makers = ChartMakers(EntryCache(tmp_path, short_lived=True))
    assert await makers.known(key) is None
    await makers.learn(key, may_make_nodes=True)
    await makers.learn(other, may_make_nodes=False)
    later = ChartMakers(EntryCache(tmp_path, short_lived=True))
    assert (await later.known(key), await later.known(other)) == (True, False)
    await later.learn(None, may_make_nodes=True)
    assert await later.known(None) is None


async def test_an_unreadable_entry_is_deleted(tmp_path: Path) -> None:
    key = fixed_chart({"url": "x"}, "web", "1.0.0")
    assert key is not None
    entries = EntryCache(tmp_path, short_lived=True)
    await entries.put(key, b"damaged")
    assert await ChartMakers(entries).known(key) is None
    assert await entries.get(key) is None
