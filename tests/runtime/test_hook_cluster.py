"""The cluster, the environment variables and the files that a hook of a real daemon can use.

A hook uses the cluster of its daemon, and sees no other credentials from the daemon's environment.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.hooks.support.contained import IS_ROOT, no_sandbox, state_folder, users
from tests.programs import Program, program, wharfinger
from tests.runtime.support.killing import Kubectl, application
from tests.runtime.tasks.test_hook_runs import bash

NAMES: Final = ("mine", "theirs")
KEY = "FAKE_CLOUD_KEY"
ASKED = "ASKED_FOR"
SAID = f"""
echo "server $(kubectl config view --minify --output 'jsonpath={{.clusters[0].cluster.server}}')."
echo "namespaces $(kubectl get namespace --output name 2>&1 | tr '\\n' ' ')."
echo "variables [${{{KEY}:-}}] [${{{ASKED}:-}}] [${{SET:-}}] [${{KUBERNETES_SERVICE_HOST:-}}]."
echo "home ${{HOME#"$(dirname "$VALUES_PATH")"}}."
"""


@contextmanager
def control_plane(folder: Path) -> Iterator[Kubectl]:
    """Run a control plane to which the user of the daemon has access. It contains a Namespace ``theirs``."""
    kubeconfig = folder / "kubeconfig"
    arguments = ("--listen", "127.0.0.1:0", "--data", str(folder / "data.db"), "--kubeconfig", str(kubeconfig))
    with program(*wharfinger("control-plane", *arguments)) as running:
        running.wait_line("control plane ready")
        kubectl = Kubectl(kubeconfig)
        kubectl("create", "namespace", "theirs")
        yield kubectl


@contextmanager
def daemon(state: Path, hooks: Path, other: Kubectl, *more: str) -> Iterator[Program]:
    """Run a daemon with the environment variables of a user who works on the cluster ``other``."""
    theirs = {
        "KUBECONFIG": str(other.kubeconfig),
        "KUBERNETES_SERVICE_HOST": "192.0.2.1",
        KEY: "crown-jewel",
        ASKED: "passed-on",
    }
    command = wharfinger("run", "--state-dir", str(state), "--global-hooks-dir", str(hooks), *more)
    with program(*command, env=theirs) as running:
        yield running


def global_hooks(folder: Path) -> Path:
    hooks = folder / "global-hooks"
    hooks.mkdir()
    hook = hooks / "ask.sh"
    hook.write_text(bash("configVersion: v1\nonStartup: 1", SAID))
    hook.chmod(0o755)
    return hooks


def said(running: Program, word: str) -> str:
    """Wait until the hook prints a line that begins with ``word``, and return the rest of this line."""
    line = running.wait_line(f"ask.sh: {word} ")
    return line.split(f"ask.sh: {word} ", 1)[1]


CONTAINED = {
    "plain": (),
    "users": ("--hook-users", f"{users().first}-{users().last}"),
    "sandbox": ("--hook-sandbox",),
}


def contained(way: str) -> tuple[str, ...]:
    """Return the options with which a daemon isolates its hooks in this way. Skip the test if this machine cannot do it."""
    if way == "users" and not IS_ROOT:
        pytest.skip("only root can run hooks as other users")
    if way == "sandbox" and (why := no_sandbox()):
        pytest.skip(why)
    return CONTAINED[way]


@pytest.mark.sampled
@pytest.mark.parametrize("way", CONTAINED)
def test_a_hook_uses_the_cluster_of_its_daemon_and_sees_no_other_credentials(tmp_path: Path, way: str) -> None:
    options = ("--embedded", *contained(way), "--hook-env", ASKED, "--hook-env", "SET=by option")
    hooks = global_hooks(tmp_path)
    with (
        control_plane(tmp_path) as other,
        state_folder() as state,
        daemon(state, hooks, other, *options) as running,
    ):
        running.wait_line("ask.sh: home ")
        namespaces = said(running, "namespaces")
        assert "namespace/kube-system" in namespaces
        assert "theirs" not in namespaces
        assert said(running, "variables").startswith("[] [passed-on] [by option] []. ")
        assert said(running, "home").startswith("/tmp. " if way == "users" else ". ")
        own = Kubectl(state / "embedded" / "kubeconfig")
        server = own("config", "view", "--minify", "--output", "jsonpath={.clusters[0].cluster.server}")
        assert said(running, "server").split(". ")[0].rstrip(".") == server
        assert "crown-jewel" not in "\n".join(running.lines)
        running.process.terminate()
        assert running.wait() == 0
        assert not list((state / "scratch").glob("hook-*"))  # the credentials were deleted with the folder of the run


@pytest.mark.slow
def test_a_hook_uses_the_context_that_the_daemon_was_started_with(tmp_path: Path) -> None:
    hooks, (mine, theirs) = global_hooks(tmp_path), (tmp_path / "mine", tmp_path / "theirs")
    mine.mkdir()
    theirs.mkdir()
    with control_plane(mine) as own, control_plane(theirs) as other, state_folder() as state:
        own("create", "namespace", "ours")
        both = tmp_path / "both"
        both.write_text(own_and_other(own, other))
        given = ("--kubeconfig", str(both), "--context", "mine")
        with daemon(state, hooks, other, *given) as running:
            assert "namespace/ours" in said(running, "namespaces")


def own_and_other(own: Kubectl, other: Kubectl) -> str:
    """Return a kubeconfig with two contexts: ``mine`` for the cluster ``own``, and ``theirs``, the current one, for ``other``."""
    documents = [json.loads(each("config", "view", "--raw", "--output", "json")) for each in (own, other)]
    merged: dict[str, object] = {"apiVersion": "v1", "kind": "Config", "current-context": "theirs"}
    for lists, field in (("clusters", "cluster"), ("users", "user")):
        merged[lists] = [
            {"name": name, field: document[lists][0][field]} for name, document in zip(NAMES, documents, strict=True)
        ]
    merged["contexts"] = [{"name": name, "context": {"cluster": name, "user": name}} for name in NAMES]
    return json.dumps(merged)


@pytest.mark.slow
def test_a_hook_finds_only_files_inside_the_given_folder(tmp_path: Path) -> None:
    """The hook reads files relative to its working folder and to its own path, but no file outside the given folder."""
    given = tmp_path / "operator"
    hook = given / "hooks" / "deep" / "ask.sh"
    hook.parent.mkdir(parents=True)
    (given / "shared").mkdir()
    (given / "shared" / "word").write_text("found")
    (tmp_path / "word").write_text("found")
    body = 'echo "beside $(cat shared/word) $(cat "$(dirname "$0")/../../shared/word") [$(cat ../word || true)]."'
    hook.write_text(bash("configVersion: v1\nonStartup: 1", body))
    hook.chmod(0o755)
    options = ("--embedded", "--state-dir", str(tmp_path / "state"), "--global-hooks-dir", str(given))
    with program(*wharfinger("run", *options)) as running:
        assert said(running, "beside").startswith("found found []. ")


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(("options", "may"), [((), False), (("--hook-credentials", "all"), True)])
def test_an_applications_hook_acts_as_the_daemon_only_if_configured(
    tmp_path: Path, options: tuple[str, ...], may: bool
) -> None:
    package = tmp_path / "packages" / "web"
    (package / "hooks").mkdir(parents=True)
    (package / "package.yaml").write_text("name: web\nversion: 1.0.0\ntype: Application\n")
    hook = package / "hooks" / "ask.sh"
    hook.write_text(bash("configVersion: v1\nonStartup: 1", SAID))
    hook.chmod(0o755)
    given = ("--state-dir", str(tmp_path / "state"), "--local-packages", str(package.parent), *options)
    with program(*wharfinger("run", "--embedded", *given)) as running:
        running.wait_line("ready:")
        kubectl = Kubectl(tmp_path / "state" / "embedded" / "kubeconfig")
        kubectl.apply(tmp_path / "app.yaml", application("web", f"{{folder: {{path: '{package.parent}'}}}}"))
        namespaces = said(running, "namespaces")
        assert ("namespace/kube-system" in namespaces) == may
        assert ("the server has asked for the client to provide credentials" in namespaces) != may
