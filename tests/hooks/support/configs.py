"""Configurations of hooks for the tests, and functions that read them."""

import json

import pytest

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.hooks.config.bindings import HookConfig, KubernetesBinding, WatchVerb
from wharfinger.hooks.config.config import read_hook_config
from wharfinger.hooks.config.problems import HookConfigError

NOTHING = HookConfig(None, None, None, None, None, (), (), None, 1)
PODS = KubernetesBinding(
    name="kubernetes",
    kind="Pod",
    api_version="",
    verbs=frozenset(WatchVerb),
    on_synchronization=True,
    wait_for_synchronization=True,
    keep_full_objects=True,
    jq_filter="",
    allow_failure=False,
    queue="main",
    group="",
    include_snapshots_from=(),
    names=None,
    label_selector="",
    field_selector="",
    namespaces=None,
)
FULL = b"""
configVersion: v1
onStartup: 10
settings: {executionMinInterval: 5s, executionBurst: 2}
schedule:
- {name: every-5m, crontab: "*/5 * * * *", queue: cron, includeSnapshotsFrom: [pods]}
kubernetes:
- name: pods
  apiVersion: v1
  kind: Pod
  namespace: {labelSelector: {matchLabels: {team: a}}}
  jqFilter: "{n: .metadata.name, p: .status.phase}"
  keepFullObjectsInMemory: false
  executeHookOnEvent: [Added, Deleted]
  queue: pods
  group: main
"""


def read(document: str | bytes | JsonObject) -> HookConfig:
    if isinstance(document, dict):
        document = json.dumps(document)
    return read_hook_config(document if isinstance(document, bytes) else document.encode(), hook="hooks/x.sh")


def refused(document: str | bytes | JsonObject) -> tuple[str, ...]:
    with pytest.raises(HookConfigError) as caught:
        read(document)
    assert str(caught.value).startswith("hook hooks/x.sh: its configuration is refused: ")
    assert not caught.value.transient
    return caught.value.problems


def kubernetes(**fields: JsonValue) -> KubernetesBinding:
    """Return the kubernetes binding that is read from a document with these fields. The binding watches Pods."""
    return kubernetes_of(fields)


def kubernetes_of(fields: JsonObject) -> KubernetesBinding:
    (binding,) = read({"configVersion": "v1", "kubernetes": [{"kind": "Pod", **fields}]}).kubernetes
    return binding


def kubernetes_refused(**fields: JsonValue) -> tuple[str, ...]:
    return refused({"configVersion": "v1", "kubernetes": [{"kind": "Pod", **fields}]})
