"""Selections of input providers by labels."""

import pytest

from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.controllers.gate import ReconcileError
from wharfinger.offline.controllers.selections import Selections
from wharfinger.offline.store.identity import object_id
from wharfinger.offline.store.kinds import SELECTION
from wharfinger.offline.store.store import ObjectStore
from wharfinger.runtime.fixpoint.model import Id


def provider(name: str, namespace: str = "apps", **labels: str) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": namespace, "labels": {**labels}}
    return {"apiVersion": "fluxcd.controlplane.io/v1", "kind": "ResourceSetInputProvider", "metadata": metadata}


def added(store: ObjectStore, obj: JsonObject) -> None:
    store.add(object_id(obj), obj)


def test_a_selection_changes_only_with_its_selected_providers() -> None:
    store = ObjectStore()
    selections = Selections(store)
    added(store, provider("b", env="dev"))
    added(store, provider("elsewhere", "other", env="dev"))
    who, found = selections.read("apps", {"matchLabels": {"env": "dev"}}, "f")
    assert who == Id(SELECTION, "apps", "env=dev")
    assert [each.id.name for each in found] == ["b"]
    nobody, none = selections.read("apps", {"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]}, "f")
    assert none == ()
    before = {each.id: each.digest for each in selections.emissions()}
    assert set(before) == {who, nobody}
    added(store, provider("c", env="test"))
    added(store, provider("d", "other"))
    assert {each.id: each.digest for each in selections.emissions()} == before
    added(store, provider("a", env="dev"))
    after = {each.id: each.digest for each in selections.emissions()}
    assert after[who] != before[who]
    assert after[nobody] == before[nobody]
    assert [each.id.name for each in selections.read("apps", {"matchLabels": {"env": "dev"}}, "f")[1]] == ["a", "b"]


def test_an_empty_selector_selects_all_and_an_invalid_one_is_refused() -> None:
    store = ObjectStore()
    selections = Selections(store)
    added(store, provider("a"))
    assert len(selections.read("apps", {}, "f")[1]) == 1
    with pytest.raises(ReconcileError, match=r"f: key 'a': operator Exists takes no values"):
        selections.read("apps", {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}, "f")
