"""Warm hooks in a real daemon: a hook runs in a warm worker, and a killed daemon leaves neither workers nor hooks."""

import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.programs import PATIENCE_S
from tests.runtime.daemon.test_daemon import control_plane, daemon
from tests.runtime.support.killing import Kubectl, application, children, held, kill, watched
from tests.runtime.tasks.test_hook_runs import hooked

pytestmark = pytest.mark.unmeasured

WATCHING = (
    "configVersion: v1\\nkubernetes:\\n"
    "- {name: maps, apiVersion: v1, kind: ConfigMap, nameSelector: {matchNames: [watched]}}\\n"
)


def python(config: str, body: str) -> str:
    """Return a hook with this configuration and this Python code."""
    asked = f"if sys.argv[1:] == ['--config']:\n    print('{config}')\n    sys.exit()\n"
    return f"#!{sys.executable}\nimport os, sys\n{asked}{body}\n"


PERSISTENT = """
for line in sys.stdin:
    import json
    print(json.dumps({"run": json.loads(line)["run"], "status": 0}), flush=True)
"""
"""A hook that keeps running until its input ends."""


def config_map(value: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: watched, namespace: default}}\ndata: {{a: '{value}'}}\n"


def workers_of(pid: int) -> list[int]:
    """Return the process IDs of a daemon's zygotes (the processes from which workers are forked) and of its workers."""
    return children(pid, "zygote_program")


@pytest.mark.slow
def test_a_killed_daemon_leaves_no_worker_and_the_next_ends_the_hook(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "held")
    body = (
        "import json\n"
        "context = json.load(open(os.environ['BINDING_CONTEXT_PATH']))\n"
        "if 'hold' in json.dumps(context):\n"
        f"    if os.path.exists('{tmp_path}/go'): sys.exit()\n"
        "    child = os.fork()\n"
        "    if child == 0:\n        os.setsid()\n        import time\n        time.sleep(600)\n"
        f"    print(os.getpid(), child, file=open('{tmp_path}/held', 'w'), flush=True)\n"
        "    os.waitpid(child, 0)\n"
    )
    kept = python("configVersion: v1\\nonStartup: 1\\npool: persistent\\n", PERSISTENT)
    hooked(tmp_path / "packages" / "hooked", {"hook.py": python(WATCHING, body), "kept.py": kept})
    options = ("--local-packages", str(tmp_path), "--warm-hooks", "2")
    with control_plane(tmp_path) as kubeconfig:
        kubectl = Kubectl(kubeconfig)
        kubectl.apply(tmp_path / "map", config_map("1"))
        with daemon(tmp_path, kubeconfig, *options) as first:
            first.wait_line("ready:")
            repository = f"{{folder: {{path: '{tmp_path}/packages'}}}}"
            kubectl.apply(tmp_path / "manifest", application("hooked", repository))
            first.wait_line("default/app: Ready")
            deadline = time.monotonic() + PATIENCE_S
            while len(workers_of(first.process.pid)) < 3:
                assert time.monotonic() < deadline, "no zygote with two workers"
                # Nothing reports the start of workers, and a loop without a pause would take processor time from them.
                time.sleep(0.01)
            kubectl.apply(tmp_path / "map", config_map("hold"))
            hook, below = held(tmp_path)
            assert hook in workers_of(first.process.pid), "the hook was not started warm"
            others = [pid for pid in workers_of(first.process.pid) if pid != hook]
            (persistent,) = children(first.process.pid, "kept.py")
            others.append(persistent)
            with (
                watched(hook) as hook_process,
                watched(below) as child_process,
                ExitStack() as stack,
            ):
                workers = [stack.enter_context(watched(pid)) for pid in others]
                kill(first)
                for worker in workers:
                    worker.wait_ended()
                assert not hook_process.ended()
                (tmp_path / "go").touch()
                with daemon(tmp_path, kubeconfig, *options) as again:
                    again.wait_line("that an earlier daemon left")
                    assert hook_process.ended()
                    assert child_process.ended()
                    again.wait_line("default/app: Ready")
