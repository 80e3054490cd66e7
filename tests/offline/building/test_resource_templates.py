"""The objects that the templates of a ResourceSet make, with the real chart engine."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.packages.rendering.test_chart_engine import engine_program, opened, script
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.offline.building.resource_templates import (
    EngineMissingError,
    EngineTemplates,
    Executed,
    Template,
    TemplateError,
    objects_of,
)

MAP = {"apiVersion": "v1", "kind": "ConfigMap"}


@asynccontextmanager
async def engine(folder: Path) -> AsyncIterator[EngineTemplates]:
    async with opened(folder, engine_program()) as chart_engine:
        yield EngineTemplates(chart_engine)


def manifest(name: str, more: JsonObject | None = None, **annotations: str) -> JsonObject:
    metadata: JsonObject = {"name": name, "annotations": {**annotations}} if annotations else {"name": name}
    return {**MAP, "metadata": metadata, **(more or {})}


async def test_documented_template_functions_work(tmp_path: Path) -> None:
    template = Template(
        "spec.resources[0]",
        manifest(
            '<< get inputs "name" | default inputs.tenant >>',
            {
                "count": "<< inputs.replicas | int >>",
                "text": "<< inputs.version | quote >>",
                "slug": "<< inputs.version | slugify >>",
                "nested": "<< inputs.layer | toYaml | nindent 2 >>",
                "json": "<< inputs.layer | toJson >>",
                "helm": "{{ .Values.x }}",
            },
        ),
    )
    layer: JsonObject = {"a": "x\n---\ny", "b": [1]}
    inputs: list[JsonObject] = [{"tenant": "team1", "replicas": "2", "version": ">=1.0.0-rc.0", "layer": layer}]
    async with engine(tmp_path) as templates:
        (made,) = objects_of(await templates.execute([template], inputs))
    assert made == {
        **manifest("team1"),
        "count": 2,
        "text": ">=1.0.0-rc.0",
        "slug": "1-0-0-rc-0",
        "nested": layer,
        "json": layer,
        "helm": "{{ .Values.x }}",
    }


async def test_resources_precede_the_template_and_duplicates_are_dropped(tmp_path: Path) -> None:
    templates = [
        Template("spec.resources[0]", manifest("shared", {"by": "<< inputs.tenant >>"})),
        Template("spec.resources[1]", manifest("<< inputs.tenant >>")),
        Template(
            "spec.resourcesTemplate",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\nby: template\n"
            "<<- range $word := inputs.words >>\n---\napiVersion: v1\nkind: ConfigMap\n"
            "metadata: {name: << $word >>}\n<<- end >>\n",
        ),
    ]
    inputs: list[JsonObject] = [{"tenant": "team1", "words": ["a", "b"]}, {"tenant": "team2", "words": ["b", "c"]}]
    async with engine(tmp_path) as engine_templates:
        made = objects_of(await engine_templates.execute(templates, inputs))
        again = objects_of(await engine_templates.execute(templates, inputs))
    assert [find(each, "metadata", "name") for each in made] == ["shared", "team1", "team2", "a", "b", "c"]
    assert made[0]["by"] == "team1"
    assert again == made


async def test_errors_name_the_template_and_the_input(tmp_path: Path) -> None:
    wrong = {
        "<< inputs.nothing >>": 'spec.x with input 0: template: resourceset:1:3: executing "resourceset" at <inputs>: map has no '
        'entry for key "nothing"',
        "<< now >>": 'spec.x: template: resourceset:1: function "now" not defined',
        "a: [b": "spec.x: its output is not YAML: line 2, column 1",
        "a: b": "spec.x: it makes a document that is not an object: apiVersion and kind are needed",
        '<< repeat 20000000 "x" >>': "spec.x with input 0: the output has more than 16777216 bytes",
    }
    async with engine(tmp_path) as templates:
        for text, message in wrong.items():
            with pytest.raises(TemplateError) as caught:
                objects_of(await templates.execute([Template("spec.x", text)], [{"a": 1}]))
            assert message in str(caught.value), text
        # The errors have not damaged the engine.
        assert objects_of(await templates.execute([Template("spec.x", manifest("a"))], [])) == (manifest("a"),)


async def test_a_missing_or_outdated_engine_is_reported(tmp_path: Path) -> None:
    with pytest.raises(EngineMissingError, match="there is none; build it with `make engine`"):
        await EngineTemplates(None).execute([], [])
    async with opened(tmp_path, script(tmp_path, "cat")) as old:
        with pytest.raises(EngineMissingError, match="too old for templates"):
            await EngineTemplates(old).execute([], [])


def test_disabled_objects_are_left_out() -> None:
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {fluxcd.controlplane.io/reconcile: disabled}}\n"
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, annotations: {fluxcd.controlplane.io/reconcile: enabled}}\n"
    )
    made = objects_of([Executed(Template("t", text), text)])
    assert [find(each, "metadata", "name") for each in made] == ["b"]


def test_a_resource_that_makes_several_objects_is_refused() -> None:
    text = "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\napiVersion: v1\nkind: A\nmetadata: {name: b}\n"
    with pytest.raises(TemplateError, match=r"spec.resources\[0\]: it makes 2 objects; use resourcesTemplate"):
        objects_of([Executed(Template("spec.resources[0]", {}), text)])
    with pytest.raises(TemplateError, match="expected an object, found a string"):
        objects_of([Executed(Template("t", ""), "apiVersion: v1\nkind: A\nmetadata: {annotations: x}\n")])
