"""The digest of the inputs of a release."""

from pathlib import Path

import pytest

from tests.offline.support import OPTIONS, flux_id, write_tree
from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.controllers.controller import RunContext
from wharfinger.offline.controllers.gate import Gate
from wharfinger.offline.controllers.inputs import inputs_digest
from wharfinger.offline.discovery.tree import discover
from wharfinger.offline.store.store import ObjectStore
from wharfinger.runtime.fixpoint.model import Id, Level

RELEASE = flux_id("HelmRelease", "web")
OTHER = flux_id("HelmRelease", "other")
SOURCE = flux_id("HelmRepository", "charts")
LOGIN = Id("Secret", "flux-system", "login")
DATA = Id("ConfigMap", "flux-system", "values")
OBJECTS: dict[Id, JsonObject] = {
    RELEASE: {"metadata": {"name": "web"}, "spec": {"values": {"a": 1}}},
    OTHER: {"spec": {}},
    SOURCE: {"spec": {"url": "https://charts.example.com", "secretRef": {"name": "login"}}},
    LOGIN: {"data": {"password": "eA=="}},
    DATA: {"data": {"values.yaml": "a: 1"}},
}


def digest(tmp_path: Path, objects: dict[Id, JsonObject], *more: str) -> str:
    tree = discover(write_tree(tmp_path / "tree", {"x.yaml": ""}), root=tmp_path / "tree", namespace="default")
    store = ObjectStore()
    for who, obj in objects.items():
        store.add(who, obj)
    stored = store.get(RELEASE)
    assert stored is not None
    gate = Gate(RELEASE, Level.NONE, (), store, tree, reads={OTHER, SOURCE, DATA})
    return inputs_digest(RunContext(tree, store, OPTIONS, tmp_path), stored, gate, more)


@pytest.mark.parametrize("who", [RELEASE, SOURCE, LOGIN, DATA])
def test_objects_that_a_release_reads_change_its_digest(tmp_path: Path, who: Id) -> None:
    before = digest(tmp_path, OBJECTS)
    assert digest(tmp_path, {**OBJECTS, who: {**OBJECTS[who], "more": 1}}) != before
    assert digest(tmp_path, {**OBJECTS, who: {**OBJECTS[who], "metadata": {"labels": {"a": "b"}}}}) == before
    if who is not RELEASE:
        assert digest(tmp_path, {key: obj for key, obj in OBJECTS.items() if key != who}) != before


def test_other_releases_and_the_order_do_not_change_the_digest(tmp_path: Path) -> None:
    before = digest(tmp_path, OBJECTS)
    assert digest(tmp_path, {**OBJECTS, OTHER: {"spec": {"values": {"b": 2}}}}) == before
    assert digest(tmp_path, dict(reversed(OBJECTS.items()))) == before
    assert digest(tmp_path, OBJECTS, "a chart") != before
