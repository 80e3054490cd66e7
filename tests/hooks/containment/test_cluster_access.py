"""Cluster access of hooks: real kubectl in a hook, with and without the daemon's credentials."""

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from tests.cluster.support.clusters import loopback_cluster
from tests.hooks.support.contained import LIMITS
from tests.hooks.support.scripts import bash, run_of
from tests.packages.support.charts import tool
from wharfinger.cluster.api.connection import (
    Connection,
    ConnectionConfigError,
    bearer,
    load_connection,
    load_service_account,
)
from wharfinger.hooks.containment.cluster_access import ClusterAccess, CredentialsPolicy
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.process_runner import ProcessHookRunner
from wharfinger.hooks.running.runner import HookOutcome

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443", "SECRET": "crown-jewel"}
CLUSTER = Connection("https://api.example:6443", bearer("crown-jewel"))


async def kubectl_in_a_hook(folder: Path, access: ClusterAccess | None, *, credentials: bool) -> HookOutcome:
    """Run a hook that lists namespaces with kubectl, and return the outcome."""
    environment = {"PATH": f"{tool('kubectl').parent}:{os.environ['PATH']}"}
    runner = ProcessHookRunner(folder / "scratch", LIMITS, environment=environment, cluster=access)
    hook = bash(folder, 'kubectl get namespaces --output name </dev/null 2>&1; stat -c "%a" "$KUBECONFIG"')
    return await runner.run(replace(run_of(hook), credentials=credentials))


async def test_kubectl_reaches_the_daemons_cluster(tmp_path: Path) -> None:
    async with loopback_cluster(tmp_path):
        connection = await trio.to_thread.run_sync(load_connection, tmp_path / "kubeconfig")
        outcome = await kubectl_in_a_hook(tmp_path, ClusterAccess(connection), credentials=True)
        assert "namespace/kube-system" in outcome.log_lines
        assert outcome.log_lines[-1] == "600"


async def test_kubectl_without_credentials_is_refused_by_the_cluster(tmp_path: Path) -> None:
    async with loopback_cluster(tmp_path):
        connection = await trio.to_thread.run_sync(load_connection, tmp_path / "kubeconfig")
        outcome = await kubectl_in_a_hook(tmp_path, ClusterAccess(connection), credentials=False)
        assert "namespace/kube-system" not in outcome.log_lines
        assert "Error from server (Forbidden)" in "\n".join(outcome.log_lines)


async def test_kubectl_without_cluster_access_finds_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/somebody/elses")
    outcome = await kubectl_in_a_hook(tmp_path, None, credentials=True)
    assert "localhost:8080 was refused" in "\n".join(outcome.log_lines)


async def test_pod_variables_are_passed_with_the_credentials_of_the_pod(tmp_path: Path) -> None:
    for name in ("token", "ca.crt", "namespace"):
        (tmp_path / name).write_text("-----BEGIN CERTIFICATE-----" if name == "ca.crt" else name)
    pod = ClusterAccess(load_service_account(tmp_path, POD), POD)
    assert pod.variables(credentials=True) == {name: POD[name] for name in POD if name != "SECRET"}
    assert pod.variables(credentials=False) == {}
    assert ClusterAccess(CLUSTER, POD).variables(credentials=True) == {}
    assert b'"token":"token"' in await pod.kubeconfig("hook", credentials=True)


async def test_kubeconfig_without_credentials_contains_no_secrets(tmp_path: Path) -> None:
    for name in ("client.crt", "client.key"):
        (tmp_path / name).write_text(name)
    connection = replace(
        CLUSTER,
        client_certificate=tmp_path / "client.crt",
        client_key=tmp_path / "client.key",
        headers=(("Impersonate-User", "ann"),),
        proxy="http://joe:jewel@proxy.example:3128",
    )
    given = await ClusterAccess(connection).kubeconfig("hook", credentials=False)
    assert b"api.example" in given
    assert b"http://proxy.example:3128" in given
    assert not [word for word in (b"jewel", b"client-", b"ann", b"joe") if word in given]


async def test_failing_credential_plugin_is_a_transient_failure() -> None:
    class Broken:
        def header(self, *, renew: bool) -> str:
            raise ConnectionConfigError("the exec plugin 'cloud' gave no credentials")

    with pytest.raises(HookError, match="kubeconfig cannot be created: the exec plugin 'cloud'") as caught:
        await ClusterAccess(replace(CLUSTER, authorization=Broken())).kubeconfig("hook", credentials=True)
    assert caught.value.transient


async def test_hanging_credential_plugin_is_a_transient_failure(tmp_path: Path) -> None:
    """A hanging exec plugin cannot delay the run beyond its deadline."""
    gate = threading.Event()

    class Hanging:
        def header(self, *, renew: bool) -> str:
            gate.wait()
            return ""

    access = ClusterAccess(replace(CLUSTER, authorization=Hanging()))
    limits = replace(LIMITS, wall_s=0.1)
    runner = ProcessHookRunner(tmp_path / "scratch", limits, environment={}, cluster=access)
    try:
        with pytest.raises(HookError, match=r"were not available within 0\.1 s") as caught:
            await runner.run(replace(run_of(bash(tmp_path, "true")), credentials=True))
    finally:
        gate.set()
    assert caught.value.transient


def test_cluster_host_is_empty_behind_a_proxy() -> None:
    assert ClusterAccess(CLUSTER).host == "api.example"
    assert ClusterAccess(replace(CLUSTER, proxy="http://proxy.example")).host == ""


@pytest.mark.parametrize(
    ("policy", "module", "application"),
    [
        (CredentialsPolicy.MODULES, True, False),
        (CredentialsPolicy.ALL, True, True),
        (CredentialsPolicy.NONE, False, False),
    ],
)
def test_credentials_policy_decides_by_package_kind(policy: CredentialsPolicy, module: bool, application: bool) -> None:
    assert (policy.gives(None), policy.gives("shop")) == (module, application)
