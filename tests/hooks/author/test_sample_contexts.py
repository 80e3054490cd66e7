"""Sample contexts of a hook: `wharfinger hook context`."""

import json
from pathlib import Path

import pytest

from tests.hooks.support.linting import asking
from tests.hooks.support.python_filters import PythonFilters
from tests.hooks.support.scripts import write_hook
from wharfinger.__main__ import main
from wharfinger.formats.json.value import JsonValue, find, find_list, find_object, find_str
from wharfinger.hooks.author.sample_contexts import sample_contexts
from wharfinger.hooks.config.config import read_hook_config
from wharfinger.hooks.watching.filters import FilterError

ALL = """\
configVersion: v1
onStartup: 1
beforeHelm: 1
afterDeleteHelm: 1
schedule:
- crontab: "@daily"
  name: daily
  includeSnapshotsFrom: [pods]
kubernetes:
- name: pods
  kind: Pod
  nameSelector: {matchNames: [one, two]}
  namespace: {nameSelector: {matchNames: [prod]}}
  labelSelector: {matchLabels: {app: web}, matchExpressions: [{key: b, operator: Exists}]}
  executeHookOnEvent: [Added, Deleted]
  jqFilter: "{n: .metadata.name}"
- name: grouped
  kind: Deployment
  apiVersion: apps/v1
  group: g
- name: small
  kind: Node
  keepFullObjectsInMemory: false
  jqFilter: .status.capacity | keys
  executeHookOnSynchronization: false
  executeHookOnEvent: [Modified]
- name: silent
  kind: Pod
  executeHookOnEvent: []
  executeHookOnSynchronization: false
kubernetesValidating:
- name: a.example.com
  rules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [DELETE]}]
  includeSnapshotsFrom: [silent]
- name: b.example.com
kubernetesMutating:
- name: c.example.com
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: ["*"]}]
kubernetesCustomResourceConversion:
- name: up
  crdName: pages.example.com
  conversions: [{fromVersion: v1, toVersion: example.com/v2}]
"""


def told(tmp_path: Path, capsys: pytest.CaptureFixture[str], config: str, *arguments: str) -> list[JsonValue]:
    hook = write_hook(tmp_path, asking(config))
    assert main(["hook", "context", str(hook), "-o", "json", *arguments]) == 0
    found: list[JsonValue] = json.loads(capsys.readouterr().out)
    return found


def test_each_binding_of_a_hook_gets_its_sample_contexts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(tmp_path, capsys, ALL)
    assert [(find_str(one, "binding"), find_str(one, "type"), find_str(one, "watchEvent")) for one in found] == [
        ("onStartup", "", ""),
        ("pods", "Synchronization", ""),
        ("pods", "Event", "Added"),
        ("pods", "Event", "Deleted"),
        ("grouped", "Group", ""),
        ("small", "Event", "Modified"),
        ("daily", "Schedule", ""),
        ("beforeHelm", "", ""),
        ("afterDeleteHelm", "", ""),
        ("a.example.com", "Validating", ""),
        ("b.example.com", "Validating", ""),
        ("c.example.com", "Mutating", ""),
        ("up", "Conversion", ""),
    ]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "one",
            "namespace": "prod",
            "uid": "00000000-0000-0000-0000-000000000000",
            "labels": {"app": "web"},
        },
    }
    assert find(found, 1, "objects") == [{"object": pod, "filterResult": {"n": "one"}}]
    assert (find(found, 3, "object"), find(found, 3, "filterResult")) == (pod, {"n": "one"})
    assert find(found, 4, "snapshots", "grouped", 0, "object", "apiVersion") == "apps/v1"
    # The filter fails on a sample object without the fields it reads, and the binding does not keep full objects.
    assert found[5] == {"binding": "small", "type": "Event", "watchEvent": "Modified", "filterResult": None}
    assert list(find_object(found, 6, "snapshots")) == ["pods"]
    assert sorted(find_object(found, 7, "snapshots")) == ["grouped", "pods", "silent", "small"]


def test_webhook_samples_are_admission_or_conversion_reviews(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = told(tmp_path, capsys, ALL)[9:]
    assert find_str(found[0], "review", "kind") == "AdmissionReview"
    assert find(found[0], "review", "request", "operation") == "DELETE"
    assert find(found[0], "review", "request", "object") is None
    assert find(found[0], "review", "request", "oldObject", "apiVersion") == "apps/v1"
    assert find(found[0], "snapshots", "silent", 0, "object", "kind") == "Pod"
    assert (
        find(found[1], "review", "request", "operation") == find(found[2], "review", "request", "operation") == "CREATE"
    )
    assert find(found[2], "review", "request", "object", "apiVersion") == "v1"
    assert (find(found[3], "fromVersion"), find(found[3], "toVersion")) == ("v1", "example.com/v2")
    assert find(found[3], "review", "request", "desiredAPIVersion") == "example.com/v2"
    assert find_list(found[3], "review", "request", "objects")[0] == {
        "apiVersion": "example.com/v1",
        "metadata": {"name": "sample", "namespace": "default"},
    }


def test_binding_and_type_options_select_the_printed_contexts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(told(tmp_path, capsys, ALL, "--binding", "pods")) == 3
    assert len(told(tmp_path, capsys, ALL, "--binding", "pods", "--type", "Event")) == 2
    assert len(told(tmp_path, capsys, ALL, "--type", "Validating")) == 2
    hook = write_hook(tmp_path, asking(ALL))
    assert main(["hook", "context", str(hook), "--binding", "none"]) == 1
    assert "has no such binding" in capsys.readouterr().err


def test_global_and_version_0_hooks_get_contexts_of_their_own_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = told(tmp_path, capsys, "configVersion: v1\nbeforeAll: 1\nafterAll: 2", "--global")
    assert found == [{"binding": "beforeAll", "snapshots": {}}, {"binding": "afterAll", "snapshots": {}}]
    found = told(tmp_path, capsys, "onKubernetesEvent: [{kind: Pod, event: [add]}]\nschedule: [{crontab: '@daily'}]")
    assert found == [
        {
            "binding": "onKubernetesEvent",
            "resourceEvent": "add",
            "resourceKind": "Pod",
            "resourceName": "sample",
            "resourceNamespace": "default",
        },
        {"binding": "schedule"},
    ]


def test_sample_contexts_can_be_passed_to_hook_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hook = write_hook(tmp_path, asking(ALL, rest='jq -c "[.[].binding]" "$BINDING_CONTEXT_PATH"'))
    assert main(["hook", "context", str(hook)]) == 0
    (tmp_path / "contexts.yaml").write_text(capsys.readouterr().out)
    assert main(["hook", "run", str(hook), "--context", str(tmp_path / "contexts.yaml")]) == 0
    assert len(json.loads(capsys.readouterr().err)) == 13


def test_a_refused_hook_gets_no_sample_contexts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hook", "context", str(write_hook(tmp_path, asking("configVersion: v2")))]) == 1
    assert "'configVersion' value 'v2' is unsupported" in capsys.readouterr().err


async def test_a_failing_filter_is_an_error_instead_of_null() -> None:
    class Dying(PythonFilters):
        async def apply_text(self, program: str, text: bytes) -> bytes:
            raise FilterError(program, "its worker died", transient=True)

    config = read_hook_config(b"{configVersion: v1, kubernetes: [{kind: Pod, jqFilter: .a}]}", hook="a")
    with pytest.raises(FilterError, match="died"):
        await sample_contexts(config, Dying({}))
