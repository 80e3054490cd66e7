"""Nodes as a table, as documents and as graphs."""

import json

import yaml

from tests.offline.output.test_nodes import RESULT
from wharfinger.formats.terminal_text import is_safe
from wharfinger.offline.output.nodes import Node, NodeState, nodes_of
from wharfinger.offline.output.nodes_text import (
    nodes_dot,
    nodes_json,
    nodes_mermaid,
    nodes_names,
    nodes_table,
    nodes_yaml,
)
from wharfinger.runtime.fixpoint.model import Id

NODES = nodes_of(RESULT)
HOSTILE = (Node(Id("Kustomization", "a", 'x"]; end\x1b[2J\n'), NodeState.FAILED, message='"\n\x1b[31m'),)


def test_nodes_are_printed_as_a_table() -> None:
    assert nodes_table(NODES, None).splitlines() == [
        "KIND            NAMESPACE     NAME   STATE     OBJECTS   FILE          MESSAGE",
        "HelmRelease     apps          web    failed    0         web.yaml:1    Secret apps/passwords does not exist",
        "Kustomization   flux-system   apps   built     2         apps.yaml:3",
        "Kustomization   flux-system   late   blocked   0         apps.yaml:3   needs HelmRelease apps/web",
        "Kustomization   flux-system   lost   orphan    0         lost.yaml:1   nothing builds the file that declares it",
        "Kustomization   flux-system   off    skipped   0         -             suspended",
    ]


def test_names_are_printed_one_per_line() -> None:
    assert nodes_names(NODES).splitlines()[:2] == ["HelmRelease apps/web", "Kustomization flux-system/apps"]


def test_documents_contain_all_nonempty_fields() -> None:
    document = json.loads(nodes_json(NODES))
    assert document == yaml.safe_load(nodes_yaml(NODES))
    assert document["nodes"][1] == {
        "kind": "HelmRelease",
        "group": "helm.toolkit.fluxcd.io",
        "namespace": "apps",
        "name": "web",
        "state": "failed",
        "objects": 0,
        "file": "web.yaml",
        "line": 1,
        "madeBy": "Kustomization flux-system/apps",
        "dependsOn": ["ConfigMap apps/settings", "Secret apps/passwords"],
        "message": "Secret apps/passwords does not exist",
    }
    assert document["nodes"][-1] == {
        "kind": "Secret",
        "namespace": "apps",
        "name": "passwords",
        "state": "absent",
        "objects": 0,
    }


def test_mermaid_and_dot_graphs_have_the_same_edges() -> None:
    numbers = {each.id: f"n{number}" for number, each in enumerate(NODES)}
    depends = {(numbers[each.id], numbers[other]) for each in NODES for other in each.depends_on}
    made = {(numbers[each.id], numbers[each.made_by]) for each in NODES if each.made_by is not None}
    lines = nodes_mermaid(NODES).splitlines()
    assert {f"  {one} --> {other}" for one, other in depends} == {line for line in lines if "-->" in line}
    assert {f"  {one} -.-> {other}" for one, other in made} == {line for line in lines if "-.->" in line}
    found = {line.strip().split(" [")[0] for line in nodes_dot(NODES).splitlines() if "->" in line}
    assert found == {f"{one} -> {other}" for one, other in depends | made}


def test_hostile_names_are_escaped_in_each_format() -> None:
    for text in (nodes_table(HOSTILE, None), nodes_names(HOSTILE), nodes_json(HOSTILE), nodes_yaml(HOSTILE)):
        assert is_safe(text.replace("\n", ""))
    dot = nodes_dot(HOSTILE)
    assert is_safe(dot.replace("\n", ""))
    assert '\\"]; end' in dot
    assert "end#92;" in nodes_mermaid(HOSTILE)
    assert len(nodes_mermaid(HOSTILE).splitlines()) == 3
