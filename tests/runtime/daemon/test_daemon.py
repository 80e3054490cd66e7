"""The daemon as a process: its start, signals, a second daemon, an unreachable cluster, and a restart after `kill -9`."""

import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.packages.support.charts import chart, write
from tests.programs import ROOT, Program, attempt, program, run, wharfinger
from tests.registry_server import PASSWORD, USER, open_registry_server
from tests.runtime.support.killing import Kubectl, application, children, embedded_daemon, held, held_hook, watched
from tests.runtime.tasks.test_hook_runs import hooked

pytestmark = pytest.mark.measured  # the daemon is a child process


@contextmanager
def control_plane(folder: Path) -> Iterator[Path]:
    """Run a control plane in its own process, and yield the path of its kubeconfig."""
    kubeconfig = folder / "kube" / "config"
    with program(*wharfinger("control-plane", "--no-tls", "--kubeconfig", str(kubeconfig))) as serving:
        serving.wait_line("control plane ready at")
        yield kubeconfig


@contextmanager
def daemon(folder: Path, kubeconfig: Path, *more: str) -> Iterator[Program]:
    """Run a daemon with its state below ``folder``."""
    arguments = ("run", "--kubeconfig", str(kubeconfig), "--state-dir", str(folder / "state"), *more)
    with program(*wharfinger(*arguments)) as running:
        yield running


def dead_kubeconfig(folder: Path) -> Path:
    """Return a kubeconfig with an address at which no server listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = folder / "dead"
    path.write_text(
        f"apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        f"clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]\n"
        f"users: [{{name: u, user: {{token: t}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
    )
    return path


@pytest.mark.sampled
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_daemon_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with control_plane(tmp_path) as kubeconfig, daemon(tmp_path, kubeconfig) as running:
        ready = running.wait_line("ready:")
        assert "http://127.0.0.1:" in ready
        assert "@" not in ready  # the server's address in the kubeconfig contains credentials
        path = tmp_path / "state" / "run" / "debug.sock"
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        running.process.send_signal(number)
        assert running.wait() == 0
        assert not path.exists()


@pytest.mark.slow
def test_states_are_sent_to_the_service_manager(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.settimeout(60)
        receiver.bind(str(tmp_path / "notify"))
        env = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "200000"}
        with control_plane(tmp_path) as kubeconfig:
            arguments = ("run", "--kubeconfig", str(kubeconfig), "--state-dir", str(tmp_path / "state"))
            with program(*wharfinger(*arguments), env=env) as running:
                said: list[bytes] = []
                while not {b"READY=1", b"WATCHDOG=1"} <= {*said}:
                    said += receiver.recv(1000).splitlines()
                assert b"STATUS=starting to work" in said
                assert said[said.index(b"READY=1") + 1].startswith(b"STATUS=at work on http://127.0.0.1:")
                running.process.terminate()
                while b"STOPPING=1" not in said:
                    said += receiver.recv(1000).splitlines()
                assert said[-1] == b"STATUS=stopping; running tasks finish"
                assert running.wait() == 0


@pytest.mark.slow
@pytest.mark.unmeasured
def test_a_second_daemon_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with control_plane(tmp_path) as kubeconfig, daemon(tmp_path, kubeconfig) as first:
        first.wait_line("ready:")
        with daemon(tmp_path, kubeconfig) as second:
            assert second.wait() == 1
            assert f"in use by another daemon (pid {first.process.pid})" in second.lines[-1]
        with daemon(
            tmp_path / "other", kubeconfig, "--socket", str(tmp_path / "state" / "run" / "debug.sock")
        ) as third:
            assert third.wait() == 1
            assert third.lines[-1].startswith("error: ")


@pytest.mark.sampled
@pytest.mark.parametrize("content", [None, "not: a kubeconfig", "{"])
def test_an_invalid_kubeconfig_is_a_one_line_error(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    with daemon(tmp_path, path) as running:
        assert running.wait() == 1
        assert running.lines[-1].startswith("error: ")
        assert "Traceback" not in "".join(running.lines)


@pytest.mark.slow
def test_missing_helm_is_a_one_line_error(tmp_path: Path) -> None:
    done = attempt(*wharfinger("run", "--helm", "no-such-helm"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: no 'no-such-helm' on PATH; install Helm 3.14 or newer, or name it with --helm\n"


@pytest.mark.slow
def test_the_daemon_waits_for_an_unreachable_cluster_and_can_be_stopped(tmp_path: Path) -> None:
    with daemon(tmp_path, dead_kubeconfig(tmp_path)) as running:
        running.wait_line("trying again")
        # While the daemon waits, it answers commands: it is alive, but not ready.
        listed = attempt(*wharfinger("get", "packages", "--socket", str(tmp_path / "state" / "run" / "debug.sock")))
        assert (listed.returncode, listed.stdout) == (0, "")
        running.process.terminate()
        assert running.wait() == 0


@pytest.mark.slow
def test_a_hanging_server_does_not_delay_a_signal(tmp_path: Path) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        path = dead_kubeconfig(tmp_path)
        path.write_text(re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{deaf.getsockname()[1]}", path.read_text()))
        with daemon(tmp_path, path, "--grace", "20") as running:
            accepted, _ = deaf.accept()
            with accepted:
                running.process.terminate()
                assert running.wait() == 0
                assert "stopped" in running.lines[-1]


@pytest.mark.slow
def test_a_hanging_exec_plugin_does_not_delay_a_signal(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    os.mkfifo(tmp_path / "started")
    plugin.write_text(f"#!/bin/sh\necho here > {tmp_path}/started\nexec sleep 60\n")
    plugin.chmod(0o755)
    path = dead_kubeconfig(tmp_path)
    user = f"{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: '{plugin}', interactiveMode: Never}}}}"
    path.write_text(path.read_text().replace("{token: t}", user))
    with daemon(tmp_path, path) as running:
        assert (tmp_path / "started").read_text() == "here\n"
        running.process.terminate()
        assert running.wait() == 0


@pytest.mark.slow
@pytest.mark.unmeasured
def test_paths_are_relative_to_the_folder_in_which_the_daemon_was_started(tmp_path: Path) -> None:
    """Helm runs in another working folder, where relative paths to the state folder or to helm would be wrong."""
    state = os.path.relpath(tmp_path / "state", ROOT)
    with control_plane(tmp_path) as kubeconfig:
        command = wharfinger("run", "--kubeconfig", os.path.relpath(kubeconfig, ROOT), "--state-dir", state)
        with program(*command) as running:
            said = running.wait_line("ready:").rpartition("socket ")[2]
            assert Path(said).is_absolute()
            assert Path(said).samefile(tmp_path / "state" / "run" / "debug.sock")


@pytest.mark.slow
def test_a_second_signal_ends_the_daemon_at_once(tmp_path: Path) -> None:
    """After the first signal, a running hook may finish. After the second one, the hook is killed, and the daemon ends."""
    os.mkfifo(tmp_path / "held")
    hooks = {"a.sh": held_hook(tmp_path, "{configVersion: v1, onStartup: 1}", "first")}
    hooked(tmp_path / "packages" / "hooked", hooks)
    with control_plane(tmp_path) as kubeconfig:
        with daemon(tmp_path, kubeconfig, "--local-packages", str(tmp_path)) as running:
            running.wait_line("ready:")
            manifest = application("hooked", f"{{folder: {{path: '{tmp_path}/packages'}}}}")
            Kubectl(kubeconfig).apply(tmp_path / "manifest", manifest)
            hook, _below = held(tmp_path)
            with watched(hook) as process:
                running.process.terminate()
                running.wait_line("stopping; running tasks have 30 s to finish")
                assert not process.ended()
                running.process.terminate()
                assert running.wait() == 1
                assert process.ended()
        assert any("SIGTERM again: stopping immediately" in line for line in running.lines)
        assert "stopped before all running tasks had ended" in running.lines[-1]


@pytest.mark.slow
@pytest.mark.unmeasured
def test_the_grace_time_limits_the_whole_stop(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "held")
    hooks = {"a.sh": held_hook(tmp_path, "{configVersion: v1, onStartup: 1}", "first")}
    hooked(tmp_path / "packages" / "hooked", hooks)
    local = ("--local-packages", str(tmp_path))
    with control_plane(tmp_path) as kubeconfig, daemon(tmp_path, kubeconfig, *local, "--grace", "0.2") as running:
        running.wait_line("ready:")
        manifest = application("hooked", f"{{folder: {{path: '{tmp_path}/packages'}}}}")
        Kubectl(kubeconfig).apply(tmp_path / "manifest", manifest)
        hook, _below = held(tmp_path)
        with watched(hook) as process:
            running.process.terminate()
            assert running.wait() == 1
            assert process.ended()


@pytest.mark.slow
def test_a_damaged_journal_is_reported_and_set_aside(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "journal.db").write_bytes(b"not a database at all" * 100)
    with control_plane(tmp_path) as kubeconfig, daemon(tmp_path, kubeconfig) as running:
        running.wait_line("ready:")
        assert any("journal.db" in line and "WARNING" in line for line in running.lines)
        running.process.terminate()
        assert running.wait() == 0


@pytest.mark.slow
def test_the_death_of_the_embedded_control_plane_ends_the_daemon(tmp_path: Path) -> None:
    with embedded_daemon(tmp_path) as running:
        running.wait_line("ready:")
        (plane,) = children(running.process.pid, "control-plane")
        os.kill(plane, signal.SIGKILL)
        assert running.wait() == 1
        assert "error: the embedded control plane died: killed by signal 9" in running.lines[-1]


@pytest.mark.slow
@pytest.mark.unmeasured
def test_the_daemon_tolerates_faults_of_the_embedded_control_plane(tmp_path: Path) -> None:
    rules = "error code=503 verb=create times=1; drop-after verb=patch times=1; cut-watch after=1s times=2"
    with embedded_daemon(tmp_path, "--chaos", rules) as running:
        running.wait_line("ready:")
        assert any("an injected fault" in line for line in running.lines)
        assert any("closed the connection without an answer" in line for line in running.lines)
        running.process.terminate()
        assert running.wait() == 0


MODULE_OF_OTHERS = {
    "Chart.yaml": "name: sysctl-tuner\nversion: 1.0\n",
    "values.yaml": "sysctlTuner: {}\nsysctlTunerEnabled: true\n",
    "templates/tuner.yaml": (
        "apiVersion: apps/v1\nkind: DaemonSet\n"
        "metadata: {name: tuner, labels: {module: {{ $.Chart.Name }}, version: {{ $.Chart.Version | quote }}}}\n"
        "spec:\n  selector: {matchLabels: {module: tuner}}\n"
        "  template: {metadata: {labels: {module: tuner}}, spec: {containers: [{name: a, image: a}]}}\n"
    ),
}


@pytest.mark.slow
def test_a_modules_directory_is_read_as_addon_operator_reads_it(tmp_path: Path) -> None:
    """A Chart.yaml may lack apiVersion, and its version may be a number, because Helm renders such charts."""
    module = write(tmp_path / "modules" / "001-sysctl-tuner", MODULE_OF_OTHERS)
    write(
        tmp_path / "modules" / "002-broken",
        {"Chart.yaml": "name: broken\nversion: [1]\n", "values.yaml": "brokenEnabled: true\n"},
    )
    config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: versioned}\ndata: {seen: '{{ .Chart.Version }}'}\n"
    versioned = {"version.json": '{"version": "v2.5.0"}', "values.yaml": "versionedEnabled: true\n"}
    write(tmp_path / "modules" / "003-versioned", {**versioned, "templates/a.yaml": config_map})
    kubectl = Kubectl(tmp_path / "state" / "embedded" / "kubeconfig")
    with embedded_daemon(tmp_path, "--modules-dir", str(module.parent)) as running:
        running.wait_line("ready:")
        running.wait_line("sysctl-tuner: Ready")
        running.wait_line("versioned: Ready")
        labels = kubectl(
            "get", "daemonset", "tuner", "-n", "wharfinger-system", "--output=jsonpath={.metadata.labels.version}"
        )
        assert labels == "1"
        listed = run(
            "helm", "list", "-n", "wharfinger-system", "--output=json", env={"KUBECONFIG": str(kubectl.kubeconfig)}
        )
        assert '"chart":"sysctl-tuner-1"' in listed
        # Helm lists the version of the package. Templates see the version that addon-operator has always shown to them.
        assert '"chart":"versioned-v2.5.0"' in listed
        seen = kubectl("get", "configmap", "versioned", "-n", "wharfinger-system", "--output=jsonpath={.data.seen}")
        assert seen == "0.2.0"
        running.wait_line("002-broken: Chart.yaml line 2: version: expected a string, found a list")
        why = attempt(*wharfinger("why", "broken", "--socket", str(tmp_path / "state" / "run" / "debug.sock"))).stdout
        assert "push" not in why
        assert "correct the file" in why


def applied(folder: Path, kubeconfig: Path, registry: str) -> None:
    """Push a package, and create an Application of it with kubectl."""
    env = {"KUBECONFIG": str(kubeconfig)}
    source = chart(folder / "chart", "web", "1.0.0")
    run(*wharfinger("package", "push", str(source), f"{registry}/packages/web:1.0.0", "--plain-http"))
    manifest = folder / "application.yaml"
    manifest.write_text(
        "apiVersion: wharfinger.dev/v1alpha1\nkind: PackageRepository\nmetadata: {name: default}\n"
        f"spec: {{registry: {{repo: '{registry}/packages', scheme: HTTP}}}}\n---\n"
        "apiVersion: wharfinger.dev/v1alpha1\nkind: Application\nmetadata: {name: shop, namespace: default}\n"
        "spec: {packageName: web, packageVersion: 1.0.0}\n"
    )
    run("kubectl", "apply", "--filename", str(manifest), env=env)


def wait_ready(kubeconfig: Path) -> None:
    run(
        "kubectl",
        "wait",
        "--for=condition=Ready",
        "application/shop",
        "--timeout=50s",
        env={"KUBECONFIG": str(kubeconfig)},
    )


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_killed_daemon_continues_after_a_restart(tmp_path: Path) -> None:
    """A daemon is killed with SIGKILL right after the Application was created.

    The next daemon installs the package. The daemon after that keeps the revision.
    """
    async with open_registry_server(tmp_path) as address:
        with control_plane(tmp_path) as kubeconfig:
            env = {"KUBECONFIG": str(kubeconfig)}
            with daemon(tmp_path, kubeconfig, "--log-level", "debug") as first:
                first.wait_line("ready:")
                applied(tmp_path, kubeconfig, str(address))
                os.kill(first.process.pid, signal.SIGKILL)
                assert first.wait() == -signal.SIGKILL
            for _ in range(2):
                with daemon(tmp_path, kubeconfig) as again:
                    again.wait_line("ready:")
                    again.wait_line("default/shop: Ready")  # this daemon reports it, not the previous one
                    wait_ready(kubeconfig)
                    again.process.terminate()
                    assert again.wait() == 0
            listed = run("helm", "list", "--namespace", "default", "--output=json", env=env)
            assert '"name":"shop"' in listed
            assert '"revision":"1"' in listed
            assert run("kubectl", "get", "configmap", "shop", "--output=jsonpath={.data.text}", env=env) == "none"


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_the_credential_helper_of_the_daemons_user_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`wharfinger package push` and the daemon both call the helper, and the password does not appear in the log."""
    helper = tmp_path / "bin" / "docker-credential-porter"
    helper.parent.mkdir()
    answer = f'{{"Username": "{USER}", "Secret": "{PASSWORD}"}}'
    helper.write_text(f"#!/bin/sh\ncat >/dev/null; echo asked >>{tmp_path}/asked; echo '{answer}'\n")
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{helper.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    async with open_registry_server(tmp_path, with_password=True) as address:
        (tmp_path / "config.json").write_text(f'{{"credHelpers": {{"{address}": "porter"}}}}')
        with control_plane(tmp_path) as kubeconfig, daemon(tmp_path, kubeconfig, "--log-level", "debug") as running:
            running.wait_line("ready:")
            applied(tmp_path, kubeconfig, str(address))
            wait_ready(kubeconfig)
            running.process.terminate()
            assert running.wait() == 0
    assert (tmp_path / "asked").read_text().split() == ["asked"] * 2
    assert PASSWORD not in "\n".join(running.lines)
