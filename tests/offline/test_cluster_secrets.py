"""Trees whose objects read Secrets that are not in the tree, because an operator in the cluster creates them."""

import json
from pathlib import Path

import pytest

from tests.offline.support import (
    built,
    cli,
    config_map,
    failures,
    kustomization,
    names,
    release,
    with_chart,
    write_tree,
)
from wharfinger.formats.json.value import find
from wharfinger.offline.output.nodes import NodeState, nodes_of
from wharfinger.runtime.fixpoint.model import Id

EXTERNAL = (
    "apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: login, namespace: NAMESPACE}\n"
    "spec: {data: [{secretKey: text}, {secretKey: values.yaml}]}\n"
)
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: apps}\nstringData: {text: real}\n"
ONE_VALUE = "  valuesFrom: [{kind: Secret, name: login, valuesKey: text, targetPath: text}]\n"
LOGIN = Id("Secret", "apps", "login")
WARNING = "Secret apps/login is made in the cluster only, by ExternalSecret login; its values are left out, or have placeholders"


def files(more: str, external: str = EXTERNAL, namespace: str = "apps") -> dict[str, str]:
    tree = {"ks.yaml": kustomization("apps", "./apps"), "apps/web.yaml": release("web", more)}
    return with_chart({**tree, "apps/external.yaml": external.replace("NAMESPACE", namespace)})


async def test_a_single_value_from_a_cluster_secret_is_a_placeholder(tmp_path: Path) -> None:
    result = await built(write_tree(tmp_path / "tree", files(ONE_VALUE)), tmp_path)
    assert not result.failed, failures(result)
    assert [find(each.object, "data", "text") for each in result.objects if each.id.kind == "ConfigMap"] == [
        "..PLACEHOLDER_text.."
    ]
    assert [each.message for each in result.warnings] == [WARNING]
    assert LOGIN not in {each.id for each in result.objects}
    assert {each.id: (each.state, each.made_by) for each in nodes_of(result)}[LOGIN] == (
        NodeState.DATA,
        Id("Kustomization.kustomize.toolkit.fluxcd.io", "flux-system", "apps"),
    )


async def test_values_files_in_cluster_secrets_are_left_out(tmp_path: Path) -> None:
    more = "  valuesFrom: [{kind: Secret, name: login}]\n"
    result = await built(write_tree(tmp_path / "tree", files(more)), tmp_path)
    assert not result.failed, failures(result)
    assert [find(each.object, "data", "text") for each in result.objects if each.id.kind == "ConfigMap"] == ["none"]
    assert [each.message for each in result.warnings] == [WARNING]


async def test_variables_from_cluster_secrets_have_placeholders_or_defaults(tmp_path: Path) -> None:
    substitute = "  postBuild: {substituteFrom: [{kind: Secret, name: login}]}\n"
    tree = {
        "external.yaml": EXTERNAL.replace("NAMESPACE", "flux-system"),
        "ks.yaml": kustomization("apps", "./apps", substitute),
        "apps/map.yaml": config_map("x", one="${text}", two="${other:=default}"),
    }
    result = await built(write_tree(tmp_path / "tree", tree), tmp_path)
    assert [find(each.object, "data") for each in result.objects if each.id.kind == "ConfigMap"] == [
        {"one": "..PLACEHOLDER_text..", "two": "default"}
    ]
    assert names(result, "Secret") == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize("place", ["apps/secret.yaml", "aaa/secret.yaml", "zzz/secret.yaml", "secret.yaml"])
async def test_a_secret_of_the_tree_wins_over_a_placeholder(place: str, tmp_path: Path) -> None:
    """The Secret may come from the Kustomization that also has the ExternalSecret, from another Kustomization (with an earlier or
    a later name), or from a file that no Kustomization builds.
    """
    more = {place: SECRET, **{f"{name}.yaml": kustomization(name, f"./{name}") for name in ("aaa", "zzz")}}
    tree = write_tree(tmp_path / "tree", {**files(ONE_VALUE), "aaa/x.yaml": "", "zzz/x.yaml": "", **more})
    result = await built(tree, tmp_path)
    assert not result.failed, failures(result)
    assert [find(each.object, "data", "text") for each in result.objects if each.id.kind == "ConfigMap"] == ["real"]
    assert LOGIN in {each.id for each in result.objects}
    assert not result.warnings
    assert not result.internal


async def test_a_secret_without_a_maker_is_missing(tmp_path: Path) -> None:
    result = await built(write_tree(tmp_path / "tree", files(ONE_VALUE, namespace="other")), tmp_path)
    assert "Secret apps/login does not exist" in failures(result)["HelmRelease web"]


def test_a_reference_to_a_cluster_secret_is_not_dangling(tmp_path: Path) -> None:
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: apps}\n"
        "spec: {containers: [{name: x, image: x, envFrom: [{secretRef: {name: SECRET}}]}]}\n"
    )
    tree = {
        "one.yaml": pod.replace("SECRET", "login"),
        "two.yaml": pod.replace("SECRET", "absent").replace("name: web", "name: two"),
        "external.yaml": EXTERNAL.replace("NAMESPACE", "apps"),
    }
    done = cli("check", str(write_tree(tmp_path / "tree", tree)), "-o", "json", cache=tmp_path / "cache")
    found = [each for each in json.loads(done.stdout)["findings"] if each["rule"] == "dangling-reference"]
    assert [each["object"] for each in found] == ["Pod apps/two"]
