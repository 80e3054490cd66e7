"""ResourceSets in a tree, with the real chart engine."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.offline.support import OPTIONS, config_map, failures, kustomization, names, tool_options, write_tree
from tests.packages.rendering.test_chart_engine import engine_program
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.formats.yaml.writer import write_yaml, write_yaml_all
from wharfinger.offline.controllers.controller import RunOptions
from wharfinger.offline.orchestrator.orchestrator import Config, open_orchestrator
from wharfinger.offline.orchestrator.result import Result
from wharfinger.offline.orchestrator.toolbox import open_tools
from wharfinger.offline.output.documents import yaml_documents
from wharfinger.offline.output.nodes import nodes_of
from wharfinger.offline.output.nodes_text import nodes_mermaid

API = "fluxcd.controlplane.io/v1"


async def built(path: Path, scratch: Path, options: RunOptions = OPTIONS, *, workers: int = 4) -> Result:
    tools_options = replace(tool_options(scratch), engine=engine_program())
    async with (
        open_tools(tools_options) as tools,
        open_orchestrator(Config(path, options, root=path, concurrency=workers), tools) as orchestrator,
    ):
        return await orchestrator.render()


def resource_set(name: str, **spec: JsonValue) -> str:
    return write_yaml(
        {
            "apiVersion": API,
            "kind": "ResourceSet",
            "metadata": {"name": name, "namespace": "apps"},
            "spec": spec,
        }
    )


def made(name: str, **data: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {**data}}


def provider(name: str, values: JsonObject, kind: str = "Static", **labels: str) -> JsonObject:
    return {
        "apiVersion": API,
        "kind": "ResourceSetInputProvider",
        "metadata": {"name": name, "namespace": "apps", "labels": {**labels}},
        "spec": {"type": kind, "defaultValues": values},
    }


def data_of(result: Result) -> dict[str, object]:
    return {each.id.name: each.object.get("data") for each in result.objects if each.id.kind == "ConfigMap"}


async def test_each_input_makes_the_resources_with_common_metadata(tmp_path: Path) -> None:
    spec = resource_set(
        "web",
        commonMetadata={"labels": {"team": "x"}},
        inputs=[{"tenant": "team1"}, {"tenant": "team2"}],
        resources=[
            made("<< inputs.tenant >>", by="<< inputs.provider.namespace >>-<< inputs.provider.name >>"),
            {
                **made("only-<< inputs.tenant >>"),
                "metadata": {
                    "name": "only-<< inputs.tenant >>",
                    "annotations": {
                        "fluxcd.controlplane.io/reconcile": '<< if eq inputs.tenant "team1" >>enabled<< else >>disabled<< end >>'
                    },
                },
            },
        ],
    )
    result = await built(write_tree(tmp_path / "tree", {"set.yaml": spec}), tmp_path)
    assert failures(result) == {}
    assert names(result) == ["only-team1", "team1", "team2"]
    assert data_of(result)["team1"] == {"by": "apps-web"}
    maps = [each for each in result.objects if each.id.kind == "ConfigMap"]
    assert {each.id.namespace for each in maps} == {"apps"}
    assert {str(find(each.object, "metadata", "labels", "team")) for each in maps} == {"x"}


async def test_inputs_of_providers_by_name_and_label_are_flattened_or_permuted(tmp_path: Path) -> None:
    """The expected ids were made by the offline tool of the Flux Operator."""
    flat = resource_set(
        "flat",
        inputs=[{"id": "own", "tenant": "own"}],
        inputsFrom=[
            {"kind": "ResourceSetInputProvider", "name": "team1-apps"},
            {"selector": {"matchExpressions": [{"key": "env", "operator": "In", "values": ["dev", "test"]}]}},
        ],
        resources=[made("flat-<< inputs.tenant >>", id="<< inputs.id | quote >>")],
    )
    permuted = resource_set(
        "color-environments",
        inputStrategy={"name": "Permute"},
        inputs=[{"id": "blue"}, {"id": "green"}],
        inputsFrom=[{"name": "team1-apps"}],
        resources=[
            made("p-<< inputs.color_environments.id >>-<< inputs.team1_apps.tenant >>", id="<< inputs.id | quote >>")
        ],
    )
    providers = write_yaml_all(
        [
            provider("team1-apps", {"tenant": "team1"}, env="dev"),
            provider("other", {"tenant": "team2"}, env="test"),
            provider("third", {"tenant": "team3"}, env="prod"),
        ]
    )
    tree = write_tree(tmp_path / "tree", {"flat.yaml": flat, "permuted.yaml": permuted, "providers.yaml": providers})
    result = await built(tree, tmp_path)
    assert failures(result) == {}
    found = data_of(result)
    assert set(found) == {"flat-own", "flat-team1", "flat-team2", "p-blue-team1", "p-green-team1"}
    assert found["flat-team1"] == {"id": "340788154"}
    assert found["p-blue-team1"] == {"id": "3776973979"}
    assert found["p-green-team1"] == {"id": "3777891484"}


async def test_objects_of_sets_become_nodes_in_turn(tmp_path: Path) -> None:
    """A ResourceSet makes a Kustomization, which builds an input provider. A second ResourceSet selects this provider."""
    first = resource_set(
        "first", inputs=[{"name": "inner"}], resourcesTemplate=kustomization("<< inputs.name >>", "./inner")
    )
    second = resource_set(
        "second",
        inputsFrom=[{"selector": {"matchLabels": {"env": "dev"}}}],
        resources=[made("late-<< inputs.tenant >>")],
    )
    inner = write_yaml(provider("p", {"tenant": "team1"}, env="dev"))
    tree = write_tree(tmp_path / "tree", {"c/a.yaml": first, "c/b.yaml": second, "inner/p.yaml": inner})
    result = await built(tree, tmp_path)
    assert failures(result) == {}
    assert names(result) == ["late-team1"]
    edges = nodes_mermaid(nodes_of(result)).splitlines()
    assert sum(" --> " in line for line in edges) == 2, "one edge to the Kustomization's source, one to the provider"
    assert "Selection" not in "".join(edges)


@pytest.mark.slow
async def test_a_chain_of_forty_selections_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    """Each ResourceSet makes the input provider that the next one selects. The number of runs grows linearly with the length of
    the chain.
    """
    files = {
        f"{number:02}.yaml": resource_set(
            f"s{number:02}",
            inputsFrom=[{"selector": {"matchLabels": {"link": f"l{number}"}}}],
            resources=[
                provider(f"p{number + 1:02}", {"at": number + 1}, link=f"l{number + 1}"),
                made(f"m{number:02}", at="<< inputs.at | quote >>"),
            ],
        )
        for number in range(40)
    }
    files["first.yaml"] = write_yaml(provider("p00", {"at": 0}, link="l0"))
    tree = write_tree(tmp_path / "tree", files)
    outputs = set()
    for workers in (1, 2, 4):
        result = await built(tree, tmp_path, workers=workers)
        assert failures(result) == {}
        assert len(names(result)) == 40
        assert result.runs <= 3 * 40 + 10
        outputs.add(yaml_documents(result.objects))
    assert len(outputs) == 1


async def test_a_set_waits_for_dependencies_of_any_kind(tmp_path: Path) -> None:
    """A dependency may be a rendered object of a kind that no other node reads, such as a Service."""
    service: JsonObject = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db", "namespace": "apps"}}
    late = resource_set(
        "late",
        dependsOn=[
            {"apiVersion": "v1", "kind": "Service", "name": "db"},
            {"apiVersion": API, "kind": "ResourceSet", "name": "early", "ready": True},
        ],
        resources=[made("late")],
    )
    early = resource_set("early", resources=[service])
    for order in ({"a.yaml": late, "b.yaml": early}, {"a.yaml": early, "b.yaml": late}):
        folder = tmp_path / "-".join(each[-9:-1] for each in order.values())
        result = await built(write_tree(folder, order), tmp_path, workers=1)
        assert failures(result) == {}
        assert names(result) == ["late"]


async def test_invalid_and_blocked_sets_are_reported(tmp_path: Path) -> None:
    files = {
        "absent.yaml": resource_set("absent", dependsOn=[{"apiVersion": "v1", "kind": "Service", "name": "nobody"}]),
        "by-it.yaml": resource_set("by-it", dependsOn=[{"apiVersion": API, "kind": "ResourceSet", "name": "absent"}]),
        "typo.yaml": resource_set("typo", inputsFrom=[{"name": "team-1"}], resources=[made("x")]),
        "service.yaml": resource_set("service", inputsFrom=[{"name": "pulls"}], resources=[made("x")]),
        "selector.yaml": resource_set(
            "selector", inputsFrom=[{"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}}]
        ),
        "neither.yaml": resource_set("neither", inputsFrom=[{"kind": "ResourceSetInputProvider"}]),
        "strategy.yaml": resource_set("strategy", inputStrategy={"name": "Zip"}),
        "both.yaml": resource_set("both", steps=[{"name": "a", "resources": [made("x")]}], resources=[made("x")]),
        "twice.yaml": resource_set(
            "twice", steps=[{"name": each, "resources": [made("x")]} for each in ("one", "two")]
        ),
        "key.yaml": resource_set("key", inputs=[{"a": 1}], resources=[made("<< inputs.b >>")]),
        "definition.yaml": resource_set(
            "definition",
            dependsOn=[
                {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "name": "a.example.com"}
            ],
            resources=[made("defined")],
        ),
        "providers.yaml": write_yaml_all([provider("team1", {}), provider("pulls", {}, kind="GitHubPullRequest")]),
    }
    tree = write_tree(tmp_path / "tree", files)
    result = await built(tree, tmp_path)
    found = {
        name.partition(" ")[2]: message.partition(": ")[2].partition(": ")[2]
        for name, message in failures(result).items()
    }
    assert found == {
        "absent": "spec.dependsOn[0]: Service apps/nobody does not exist",
        "typo": "spec.inputsFrom[0]: ResourceSetInputProvider apps/team-1 does not exist; did you mean apps/team1?",
        "service": "spec.inputsFrom[0]: ResourceSetInputProvider apps/pulls gets its inputs from a service (type "
        "GitHubPullRequest), which is not queried here; write the inputs into its status.exportedInputs, or use the type Static",
        "selector": "spec.inputsFrom[0].selector: key 'a': operator In needs values",
        "neither": "spec.inputsFrom[0]: needs a name or a selector",
        "strategy": "spec.inputStrategy.name: expected Flatten or Permute, found 'Zip'",
        "both": "spec.steps: not allowed beside resources and resourcesTemplate; use one of them",
        "twice": "spec.steps: ConfigMap x is made by the steps one and two; keep it in one of them",
        "key": 'spec.resources[0] with input 0: template: resourceset:5:11: executing "resourceset" at <inputs>: '
        'map has no entry for key "b"',
        "definition": "spec.dependsOn[0]: CustomResourceDefinition a.example.com does not exist",
    }
    assert [each.name for each in result.blocked] == ["by-it"]
    allowed = await built(tree, tmp_path, replace(OPTIONS, allow_missing_crds=True))
    assert "defined" in names(allowed)
    assert "CustomResourceDefinition a.example.com is not in the tree; it is assumed to exist" in str(allowed.warnings)


async def test_sets_with_steps_exported_inputs_copies_and_expressions_are_built(tmp_path: Path) -> None:
    files = {
        "steps.yaml": resource_set(
            "steps",
            inputsFrom=[{"name": "pulls"}],
            dependsOn=[
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": "gate",
                    "readyExpr": "data.gate == 'opened' && metadata.generation == status.observedGeneration",
                },
                {
                    "apiVersion": "apiextensions.k8s.io/v1",
                    "kind": "CustomResourceDefinition",
                    "name": "helmreleases.helm.toolkit.fluxcd.io",
                },
            ],
            steps=[
                {"name": "one", "resources": [made("job-<< inputs.id >>", sha="<< inputs.sha >>")]},
                {"name": "two", "resourcesTemplate": write_yaml(made("deploy-<< inputs.id >>"))},
            ],
        ),
        "pulls.yaml": write_yaml(
            {
                **provider("pulls", {}, kind="GitHubPullRequest"),
                "status": {"exportedInputs": [{"id": "4", "sha": "bf5d"}, {"id": "3", "sha": "8492"}]},
            }
        ),
        "gate.yaml": config_map("gate", gate="opened"),
        "copy.yaml": resource_set(
            "copy",
            resources=[
                {
                    **made("copied"),
                    "metadata": {"name": "copied", "annotations": {"fluxcd.controlplane.io/copyFrom": "apps/gate"}},
                },
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": "copied", "annotations": {"fluxcd.controlplane.io/copyFrom": "apps/login"}},
                },
            ],
        ),
        "login.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: apps}\nstringData: {a: b}\n",
        "closed.yaml": resource_set(
            "closed",
            dependsOn=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "gate", "readyExpr": "data.gate == 'closed'"}],
        ),
        "paused.yaml": resource_set("paused", resources=[made("paused")]).replace(
            "metadata:\n", "metadata:\n  annotations: {fluxcd.controlplane.io/reconcile: disabled}\n", 1
        ),
    }
    result = await built(write_tree(tmp_path / "tree", files), tmp_path)
    assert names(result) == ["copied", "deploy-3", "deploy-4", "gate", "job-3", "job-4"]
    assert data_of(result)["copied"] == {"gate": "opened"}
    assert data_of(result)["job-4"] == {"sha": "bf5d"}
    secrets = {each.id.name: each.object for each in result.objects if each.id.kind == "Secret"}
    assert secrets["copied"]["data"] == {"a": "Yg=="}
    assert [each.name for each in result.skipped] == ["paused"]
    assert failures(result) == {
        "ResourceSet closed": "closed.yaml:1: ResourceSet apps/closed: spec.dependsOn[0].readyExpr: it is never true for "
        "ConfigMap apps/gate; correct the expression, or that object"
    }
