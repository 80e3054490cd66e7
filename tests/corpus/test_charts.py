"""The charts of the corpus. Each has two versions, and the second one adds, changes or removes objects or fields."""

import pytest

from tests.corpus.charts import NAMES
from tests.corpus.rendered import Charts, Prepared
from wharfinger.formats.json.value import JsonObject, find_object, find_str

MAKES = {
    "definitions in crds/": ("custom-resources", "umbrella", "layered", "assorted"),
    "definitions in crds/ of subcharts, and objects of them": ("observing",),
    "definitions among templates": ("templated-definitions", "admission"),
    "hooks": ("hooked", "assorted"),
    "subcharts": ("umbrella", "layered", "helpers"),
    "many objects": ("big",),
    "a manifest over one MiB": ("heavy",),
    "tests": ("tested",),
    "keep policies": ("keepsakes", "assorted", "admission"),
    "an autoscaler": ("autoscaled",),
    "webhooks": ("admission",),
    "a StatefulSet with claims": ("database",),
    "a library": ("helpers",),
    "lookups": ("remembering", "observing"),
    "Secrets from text": ("secretive",),
    "Lists": ("bundled",),
    "namespaces and rights": ("tenants",),
    "values that servers normalise": ("normalised",),
}


def test_every_make_is_there() -> None:
    assert sorted({name for names in MAKES.values() for name in names}) == list(NAMES)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
def test_the_second_version_differs(name: str, charts: Charts) -> None:
    first, second = (by_name(prepared) for prepared in charts(name))
    assert first != second
    assert first.keys() & second.keys()


def test_over_all_of_them_objects_come_go_and_change(charts: Charts) -> None:
    came, went, changed = 0, 0, 0
    for name in NAMES:
        first, second = (by_name(prepared) for prepared in charts(name))
        came += bool(second.keys() - first.keys())
        went += bool(first.keys() - second.keys())
        changed += any(first[key] != second[key] for key in first.keys() & second.keys())
    assert (came >= 10, went >= 10, changed >= 16) == (True, True, True)


def test_big_is_big_and_heavy_is_heavy(charts: Charts) -> None:
    assert len(charts("big")[0].rendered.objects) >= 300
    assert len(charts("heavy")[0].rendered.manifest) > 1024 * 1024


def by_name(prepared: Prepared) -> dict[str, JsonObject]:
    """Return all objects of a rendered chart by name."""
    rendered = prepared.rendered
    return {
        f"{find_str(obj, 'kind')} {find_str(find_object(obj, 'metadata'), 'namespace')}/{find_str(obj, 'metadata', 'name')}": obj
        for obj in (*rendered.crds, *rendered.hooks, *rendered.objects)
    }
