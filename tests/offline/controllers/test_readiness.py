"""Expressions for the readiness of dependencies, in real workers and in a tree."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.offline.support import built, failures, flux_id, kustomization, names, write_tree
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.offline.controllers.gate import Need, ReconcileError
from wharfinger.offline.controllers.readiness import MAX_EXPRESSION, Readiness
from wharfinger.offline.store.store import ObjectStore, Stored
from wharfinger.packages.settings.cel_pool import open_cel_pool

WHO = flux_id("Kustomization", "a")
DEP = flux_id("Kustomization", "b")
FIELD = "spec.dependsOn[0]"


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[Readiness, ObjectStore]]:
    store = ObjectStore()
    async with open_cel_pool(None, workers=1) as rules:
        yield Readiness(store, rules), store


def labelled(version: str, expression: str = "") -> JsonObject:
    entry: JsonValue = {"name": "b", "readyExpr": expression} if expression else {"name": "b"}
    return {"metadata": {"name": "x", "labels": {"version": version}}, "spec": {"dependsOn": [entry], "path": "./p"}}


TRUE = (
    "dep.metadata.labels['version'] == self.metadata.labels['version']",
    (
        "dep.status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True') && "
        "dep.metadata.generation == dep.status.observedGeneration"
    ),
    "self.spec.path == './p' && !has(dep.spec.suspend)",
    "true // and a comment",
)
UNKNOWN = ("dep.status.lastAppliedRevision == 'main'", "dep.status.conditions.exists(e, e.type == 'Healthy')")


async def test_ready_expressions_compare_a_node_with_its_dependency() -> None:
    async with opened() as (readiness, store):
        store.add(DEP, labelled("1"))

        async def judged(expression: str, version: str = "1") -> tuple[str, ...]:
            stored = Stored(WHO, labelled(version, expression), "")
            return await readiness.of_dependencies(stored, [Need(DEP, FIELD)])

        for expression in TRUE:
            assert await judged(expression) == (), expression
        for expression in UNKNOWN:
            (warning,) = await judged(expression)
            assert warning.startswith(f"{FIELD}.readyExpr: "), expression
            assert warning.endswith("Kustomization flux-system/b is assumed to be ready")
        assert await judged("") == ()
        with pytest.raises(ReconcileError, match="it is never true for Kustomization flux-system/b"):
            await judged(TRUE[0], "2")
        for wrong in ("dep.metadata.", "nobody == 1", "'text'"):
            with pytest.raises(ReconcileError, match=r"readyExpr: .*; correct the expression"):
                await judged(wrong)
        with pytest.raises(ReconcileError, match=f"more than {MAX_EXPRESSION} characters"):
            await judged("true" + " " * MAX_EXPRESSION)


async def test_ready_expressions_read_the_fields_of_one_object() -> None:
    obj: JsonObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "gate", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x"}},
        "data": {"gate": "opened"},
        "namespace": "a reserved word",
    }
    async with opened() as (readiness, _):
        found = Stored(DEP, obj, "")
        for expression in (
            "data.gate == 'opened' && kind == 'ConfigMap'",
            "metadata.generation == status.observedGeneration && !has(spec.x)",
            "metadata.annotations.size() == 0",
        ):
            assert await readiness.of_object(found, expression, FIELD) == (), expression
        with pytest.raises(ReconcileError, match="never true"):
            await readiness.of_object(found, "data.gate == 'closed'", FIELD)


async def test_ready_expressions_decide_builds_in_a_tree(tmp_path: Path) -> None:
    def depending(name: str, expression: str) -> str:
        return kustomization(name, f"./{name}", f'  dependsOn:\n    - {{name: base, readyExpr: "{expression}"}}\n')

    maps = {
        f"{name}/map.yaml": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"
        for name in ("base", "good", "bad", "unknown")
    }
    tree = write_tree(
        tmp_path / "tree",
        {
            "c/base.yaml": kustomization("base", "./base"),
            "c/good.yaml": depending("good", "dep.metadata.name == 'base' && self.metadata.name == 'good'"),
            "c/bad.yaml": depending("bad", "dep.metadata.name == 'other'"),
            "c/unknown.yaml": depending("unknown", "dep.status.x == 1"),
            **maps,
        },
    )
    result = await built(tree, tmp_path)
    assert names(result) == ["base", "good", "unknown"]
    assert failures(result) == {
        "Kustomization bad": "c/bad.yaml:1: Kustomization flux-system/bad: spec.dependsOn[0].readyExpr: it is never true for "
        "Kustomization flux-system/base; correct the expression, or that object"
    }
    assert [each.id for each in result.warnings] == [flux_id("Kustomization", "unknown")]
