"""Packages that hang do not delay others. The daemon and the sockets are real. Packages hang because a registry sends slowly, or
because templates never end.

The tests measure no time. A healthy package becomes Ready while all bad packages still hang: the slow registry sends the rest
only when the test allows it, and the templates never end.
"""

import os
from pathlib import Path

import pytest

from tests.packages.support.charts import chart, write
from tests.programs import Program, run, wharfinger
from tests.registry_server import open_registry_server
from tests.runtime.support.killing import Kubectl, embedded_daemon, slow_registry

LARGE = 100_000
"""The number of random bytes in a slow package. A healthy package is smaller."""
SLOW = 6
"""The number of slow packages. One source or one namespace may not have so many downloads at a time."""
ENDLESS = "{{- range until 100000 }}{{- range until 100000 }}{{- range until 100000 }}{{ end }}{{ end }}{{ end }}\n"


def push(folder: Path, registry: str, name: str, version: str, files: dict[str, str]) -> None:
    source = chart(folder / f"{name}-{version}", name, version, files)
    run(*wharfinger("package", "push", str(source), f"{registry}/packages/{name}:{version}", "--plain-http"))


def repository(name: str, spec: str) -> str:
    return (
        f"apiVersion: wharfinger.dev/v1alpha1\nkind: PackageRepository\nmetadata: {{name: {name}}}\nspec: {spec}\n---\n"
    )


def application(name: str, source: str, package: str, version: str = "1.0.0", namespace: str = "default") -> str:
    return (
        f"apiVersion: wharfinger.dev/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: {namespace}}}\n"
        f"spec: {{packageName: {package}, packageVersion: {version}, packageRepositoryName: {source}}}\n---\n"
    )


def kubectl_of(running: Program, folder: Path) -> Kubectl:
    running.wait_line("ready:")
    return Kubectl(folder / "state" / "embedded" / "kubeconfig")


def wait_ready(kubectl: Kubectl, name: str, namespace: str = "default") -> None:
    kubectl("wait", "--for=condition=Ready", f"application/{name}", f"--namespace={namespace}", "--timeout=45s")


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_slow_registry_does_not_delay_other_packages(tmp_path: Path) -> None:
    """Packages from a slow registry share a namespace with a package from another registry and one from a folder. These two
    packages become Ready before any package of the slow registry is downloaded.
    """
    local = chart(tmp_path / "local" / "near", "near", "1.0.0").parent
    async with open_registry_server(tmp_path / "registry") as real:
        for number in range(SLOW):
            noise = os.urandom(LARGE).hex()
            push(tmp_path, str(real), "far", f"1.0.{number}", {"noise.txt": noise})
        push(tmp_path, str(real), "well", "1.0.0", {})
        with (
            slow_registry(real, LARGE) as slow,
            embedded_daemon(tmp_path, "--local-packages", str(tmp_path), "--download-window", "3600") as running,
        ):
            kubectl = kubectl_of(running, tmp_path)
            sources = (
                repository("slow", f"{{registry: {{repo: '{slow.address}/packages', scheme: HTTP}}}}")
                + repository("good", f"{{registry: {{repo: '{real}/packages', scheme: HTTP}}}}")
                + repository("local", f"{{folder: {{path: '{local}'}}}}")
            )
            dripping = "".join(application(f"far-{n}", "slow", "far", f"1.0.{n}") for n in range(SLOW))
            kubectl.apply(tmp_path / "slow.yaml", sources + dripping)
            for _ in range(4):
                assert slow.blobs.acquire(timeout=300)  # the slow registry may use this many download slots
            healthy = application("well", "good", "well") + application("near", "local", "near")
            kubectl.apply(tmp_path / "healthy.yaml", healthy)
            wait_ready(kubectl, "well")
            wait_ready(kubectl, "near")
            assert not slow.go_on.is_set()
            states = kubectl("get", "applications.wharfinger.dev", "--output=jsonpath={.items[*].status.summary.state}")
            assert sorted(states.split()) == ["Pending"] * SLOW + ["Ready"] * 2
            slow.go_on.set()
            for number in range(SLOW):
                wait_ready(kubectl, f"far-{number}")


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_slow_download_is_aborted_and_retried(tmp_path: Path) -> None:
    async with open_registry_server(tmp_path / "registry") as real:
        push(tmp_path, str(real), "far", "1.0.0", {"noise.txt": os.urandom(LARGE).hex()})
        with (
            slow_registry(real, LARGE) as slow,
            embedded_daemon(tmp_path, "--download-window", "1", "--retry-first", "1") as running,
        ):
            kubectl = kubectl_of(running, tmp_path)
            source = repository("slow", f"{{registry: {{repo: '{slow.address}/packages', scheme: HTTP}}}}")
            kubectl.apply(tmp_path / "slow.yaml", source + application("far", "slow", "far"))
            said = running.wait_line("the transfer is too slow")
            assert "less than 16 KiB/s over 1 s; check the registry and the network" in said
            slow.go_on.set()
            wait_ready(kubectl, "far")


@pytest.mark.slow
@pytest.mark.unmeasured
def test_endless_templates_do_not_delay_other_namespaces(tmp_path: Path) -> None:
    folder = tmp_path / "packages"
    for name in ("spin-1", "spin-2", "spin-3"):
        write(chart(folder / name, name, "1.0.0"), {"templates/endless.yaml": ENDLESS})
    chart(folder / "well", "well", "1.0.0")
    with embedded_daemon(tmp_path, "--local-packages", str(tmp_path)) as running:
        kubectl = kubectl_of(running, tmp_path)
        spinning = "".join(application(name, "local", name) for name in ("spin-1", "spin-2", "spin-3"))
        kubectl.apply(tmp_path / "spin.yaml", repository("local", f"{{folder: {{path: '{folder}'}}}}") + spinning)
        kubectl("create", "namespace", "other")
        rendering = '{.status.conditions[?(@.type=="Reconciling")].message}=rendering the chart'
        for name in ("spin-1", "spin-2", "spin-3"):
            kubectl.wait(f"application/{name}", rendering)
        kubectl.apply(tmp_path / "well.yaml", application("well", "local", "well", namespace="other"))
        wait_ready(kubectl, "well", "other")
        assert not any("RenderFailed" in line or "longer than" in line for line in running.lines), running.lines
        states = kubectl("get", "applications.wharfinger.dev", "--output=jsonpath={.items[*].status.summary.state}")
        assert "Failed" not in states.split()
        running.process.terminate()
        assert running.wait() == 0, "a stop ends renders, and no process keeps running"
