"""Hooks that the process runner runs in pods. The commands go over a WebSocket to a control plane, and the outcomes are
compared with those of local runs.
"""

from dataclasses import replace
from pathlib import Path

import pytest
import trio

from tests.hooks.support.pod_hooks import LIMITS, in_pod, open_ship
from tests.hooks.support.scripts import bash, run_of
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.runner import HookOutcome
from wharfinger.pools.pods.resources import WORKER_CLAIM

SCRIPTS = {
    "nothing": "true",
    "exit code": "exit 3",
    "output": "echo out; echo err >&2; exit 1",
    "many lines": "for i in $(seq 200); do echo line $i; done",
    "a library beside it": ". ./lib/x.sh; echo $x",
    "arguments and input": 'echo "$# $(cat | wc -c)"',
    "the context": 'cat "$BINDING_CONTEXT_PATH" "$VALUES_PATH" "$CONFIG_VALUES_PATH"',
    "values": """echo '[{"op": "add", "path": "/sysctlTuner/x", "value": 1}]' > "$VALUES_JSON_PATCH_PATH" """,
    "objects": """echo '{"operation": "Delete", "kind": "Pod", "name": "x"}' > "$KUBERNETES_PATCH_PATH" """,
    "objects of a failure": """echo '{"operation": "Delete", "kind": "Pod", "name": "x"}' > "$KUBERNETES_PATCH_PATH"; exit 2""",
    "metrics": """echo '{"name": "a", "action": "set", "value": 1}' > "$METRICS_PATH" """,
    "an answer": 'echo yes > "$ANSWER"',
    "home": 'cd "$HOME" && ls | sort | grep -v kubeconfig',
    "a variable": 'echo "$APPLICATION_NAME"',
}


def hook(folder: Path, script: str) -> Path:
    (folder / "hooks/lib").mkdir(parents=True, exist_ok=True)
    (folder / "hooks/lib/x.sh").write_text("x=loaded\n")
    return bash(folder / "hooks", script)


def comparable(outcome: HookOutcome) -> HookOutcome:
    """Return the outcome without measured values, and with sorted lines, because the order between lines of stdout and lines of
    stderr is not defined.
    """
    lines = tuple(sorted(outcome.log_lines))
    return replace(outcome, user_s=0.0, system_s=0.0, max_rss_bytes=0, wall_s=0.0, log_lines=lines)


FEW = ["output", "values"]


@pytest.mark.parametrize("names", [FEW, pytest.param([*SCRIPTS], marks=pytest.mark.slow)], ids=["few", "all"])
async def test_pod_runs_give_the_same_outcome_as_local_runs(tmp_path: Path, names: list[str]) -> None:
    async with open_ship(tmp_path) as ship:
        for name in names:
            script = SCRIPTS[name]
            path = hook(tmp_path, script)
            run = replace(run_of(path), answers=("ANSWER",), environment={"APPLICATION_NAME": "it's $HOME \\ ü"})
            here = await ship.local.run(run)
            there = await ship.runner.run(replace(run, worker_pool="workers", namespace="default", owner="default.app"))
            assert comparable(there) == comparable(here), (name, there, here)
        assert (await ship.kubelet.client.list(WORKER_CLAIM)).items == ()


@pytest.mark.slow
async def test_hook_that_exceeds_its_deadline_is_ended_with_its_pod(tmp_path: Path) -> None:
    async with open_ship(tmp_path) as ship:
        found = await ship.runner.run(replace(in_pod(hook(tmp_path, "echo begun; sleep 600")), wall_s=1.0))
        assert (found.succeeded, found.ending) == (False, "deadline passed (killed by SIGKILL)")
        assert found.log_lines == ("begun",)
        assert (await ship.kubelet.client.list(WORKER_CLAIM)).items == ()


async def test_output_of_a_pod_run_is_limited(tmp_path: Path) -> None:
    async with open_ship(tmp_path, replace(LIMITS, stdout_bytes=1000)) as ship:
        found = await ship.runner.run(in_pod(hook(tmp_path, "while :; do echo 0123456789; done")))
        assert (found.succeeded, found.ending) == (False, "output limit passed (killed by SIGKILL)")


async def test_replaced_or_oversized_result_files_fail_the_run(tmp_path: Path) -> None:
    async with open_ship(tmp_path) as ship:
        for script in (
            'rm "$METRICS_PATH"',
            'ln -sf /etc/passwd "$METRICS_PATH"',
            'rm "$METRICS_PATH"; mkfifo "$METRICS_PATH"',
            'head -c 5000000 /dev/zero > "$METRICS_PATH"',
        ):
            with pytest.raises(HookError):
                await ship.runner.run(in_pod(hook(tmp_path, script)))


async def test_cancelled_pod_run_leaves_no_claim(tmp_path: Path) -> None:
    async with open_ship(tmp_path) as ship:
        begun = trio.Event()
        run = replace(in_pod(hook(tmp_path, "echo begun; sleep 600")), on_line=lambda _: begun.set())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ship.runner.run, run)
            with trio.fail_after(60):
                await begun.wait()
            nursery.cancel_scope.cancel()
        assert (await ship.kubelet.client.list(WORKER_CLAIM)).items == ()


async def test_pod_run_without_worker_pools_fails(tmp_path: Path) -> None:
    async with open_ship(tmp_path) as ship:
        with pytest.raises(HookError, match="the daemon has no --worker-pools"):
            await ship.local.run(in_pod(hook(tmp_path, "true")))
