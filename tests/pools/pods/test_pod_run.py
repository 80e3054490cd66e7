"""Runs in pods: commands that fail, and pools without a pod. Complete runs are in tests/hooks/running/test_pod_hooks.py."""

import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import trio
import trio.testing

from tests.pools.pods.pool_cluster import (
    Cluster,
    claim_object,
    key_of,
    open_cluster,
    open_pools,
    pool_object,
)
from wharfinger.cluster.api.pod_exec import CommandError, PodCommand, Sink
from wharfinger.formats.json.value import find_object
from wharfinger.kube.resource import ObjectKey, name_of
from wharfinger.pools.pods import pod_run
from wharfinger.pools.pods.pod_run import CLAIM_S, RUN_LABEL, PodRun, PodRunError, PodRuns, environment_file
from wharfinger.pools.pods.resources import WORKER_CLAIM
from wharfinger.process.command import NO_SINKS, Limits

LIMITS = Limits(wall_s=60.0, stdout_bytes=1000)
RUN = PodRun("default", "workers", "prod.app hook", b"tar", ("./hook",), ("metrics.json",))


@dataclass
class Commands:
    """A kubelet with scripted commands. Each answer is an exit code or an error, and the output of the command."""

    answers: list[tuple[int | Exception, bytes]]
    seen: list[PodCommand] = field(default_factory=list)

    async def run(self, command: PodCommand, *, stdout: Sink, stderr: Sink) -> int:
        self.seen.append(command)
        await trio.lowlevel.checkpoint()
        end, output = self.answers.pop(0)
        stdout(output)
        if isinstance(end, Exception):
            raise end
        return end


@asynccontextmanager
async def running(*answers: tuple[int | Exception, bytes]) -> AsyncGenerator[tuple[Cluster, PodRuns, Commands]]:
    async with open_cluster() as cluster, open_pools(cluster):
        await cluster.user.create(pool_object())
        commands = Commands([*answers])
        yield cluster, PodRuns(cluster.client, commands), commands
        await trio.testing.wait_all_tasks_blocked()
        assert await cluster.claims() == {}


async def test_three_commands_in_the_first_container_of_a_claimed_pod(autojump_clock: trio.testing.MockClock) -> None:
    async with running((0, b""), (3, b"said"), (0, b"results")) as (_, runs, commands):
        outcome, results = await runs.run(RUN, LIMITS, NO_SINKS)
        assert (outcome.returncode, outcome.stdout, results) == (3, b"said", b"results")
        assert {command.container for command in commands.seen} == {"main"}
        assert len({command.pod for command in commands.seen}) == 1
        assert [command.stdin for command in commands.seen] == [b"tar", None, None]


LOST = CommandError("the connection was lost")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("answers", "said", "transient"),
    [
        ([(127, b"tar: not found")], "tar: not found; the image needs sh and tar", True),
        ([(LOST, b"")], "the connection was lost", True),
        ([(0, b""), (LOST, b"")], "the connection was lost", True),
        ([(0, b""), (0, b""), (2, b"")], "cannot read the hook's results", True),
        ([(0, b""), (0, b""), (0, bytes(101))], "over the limit of 100 bytes", False),
    ],
)
async def test_commands_that_fail(
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
    answers: list[tuple[int | Exception, bytes]],
    said: str,
    transient: bool,
) -> None:
    monkeypatch.setattr(pod_run, "MAX_RESULT_BYTES", 100)
    async with running(*answers) as (_, runs, _commands):
        with pytest.raises(PodRunError, match=said) as raised:
            await runs.run(RUN, LIMITS, NO_SINKS)
        assert raised.value.transient is transient


async def test_a_pool_that_does_not_exist_gives_no_pod(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as (_, runs, _commands):
        began = trio.current_time()
        with pytest.raises(PodRunError, match="gave no pod"):
            await runs.run(PodRun("default", "none", "", b"", ("./hook",), ()), LIMITS, NO_SINKS)
        assert trio.current_time() - began <= CLAIM_S + pod_run.REMOVE_S


async def test_a_claim_that_could_not_be_deleted_is_deleted_before_the_next_run(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program of the claim may still be running, and a second program must not run at the same time."""
    async with running((0, b""), (0, b""), (0, b""), (0, b""), (0, b""), (0, b"")) as (cluster, runs, commands):
        delete = cluster.client.delete

        async def hang(*_args: object, **_options: object) -> bool:
            await trio.sleep_forever()
            raise AssertionError

        monkeypatch.setattr(cluster.client, "delete", hang)
        await runs.run(RUN, LIMITS, NO_SINKS)
        (left,) = await cluster.claims()
        seen: list[int] = []

        async def note(key: ObjectKey, *, uid: str = "") -> bool:
            seen.append(len(commands.seen))
            return await delete(key, uid=uid)

        monkeypatch.setattr(cluster.client, "delete", note)
        await runs.run(RUN, LIMITS, NO_SINKS)
        assert seen[0] == 3, "the claim was not deleted before the commands of the second run"
        assert left not in await cluster.claims()


async def test_claims_of_earlier_daemons_are_removed(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as (cluster, runs, _commands):
        left = claim_object("left")
        find_object(left, "metadata")["labels"] = {RUN_LABEL: "earlier"}
        await cluster.user.create(left)
        await cluster.user.create(claim_object("of-a-user"))
        await runs.remove_leftovers()
        assert [name_of(each) for each in (await cluster.user.list(WORKER_CLAIM)).items] == ["of-a-user"]
        await cluster.user.delete(key_of(WORKER_CLAIM, "of-a-user"))


@pytest.mark.parametrize("value", ["", "plain", "it's", '$HOME `id` \\ "x"', "two\nlines", "ä"])
def test_a_shell_reads_the_variables_as_they_are(value: str) -> None:
    script = environment_file({"GIVEN": value}, {"FILE": "a b.json"})
    done = subprocess.run(
        ["sh", "-c", 'RUN=/run; eval "$1"; printf "%s|%s" "$GIVEN" "$FILE"', "sh", script.decode()],
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode() == f"{value}|/run/files/a b.json"
