"""The slots of a pool, each with at most one worker: a worker serves requests one by one, and a dead worker gets none."""

import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio
import trio.testing

from wharfinger.process.command import Command
from wharfinger.process.worker import Worker, open_worker
from wharfinger.process.worker_slot import describe_end, serve_jobs

CAT = Command(("/bin/cat",), Path("/"), {})


@dataclass
class Asked:
    """A request, and its result."""

    text: bytes
    answer: bytes = b""
    shut: int = 0
    usable: bool = True
    said: list[str] = field(default_factory=list)

    def shut_down(self) -> None:
        self.shut += 1


async def echo(worker: Worker, job: Asked) -> bool:
    await worker.send(job.text)
    job.answer = await worker.receive_some(100)
    return job.usable


async def test_requests_are_served_until_the_worker_is_not_usable() -> None:
    send, receive = trio.open_memory_channel[Asked](5)
    jobs = [Asked(b"one"), Asked(b"two", usable=False), Asked(b"three")]
    for job in jobs[1:]:
        send.send_nowait(job)
    async with open_worker(CAT) as worker:
        await serve_jobs(worker, jobs[0], echo, receive)
    assert [(job.answer, job.shut) for job in jobs] == [(b"one", 1), (b"two", 1), (b"", 0)]


async def test_an_idle_worker_is_left_after_a_time_limit() -> None:
    _send, receive = trio.open_memory_channel[Asked](5)
    job = Asked(b"one")
    async with open_worker(CAT) as worker:
        with trio.fail_after(60):
            await serve_jobs(worker, job, echo, receive, idle_s=0.01)
    assert (job.answer, job.shut) == (b"one", 1)


async def test_a_request_at_the_end_of_the_idle_time_is_served(mock_clock: trio.testing.MockClock) -> None:
    first, second = Asked(b"one"), Asked(b"two", usable=False)

    class Late:
        async def receive(self) -> Asked:
            await trio.lowlevel.checkpoint()
            mock_clock.jump(60)
            return second

    async with open_worker(CAT) as worker:
        await serve_jobs(worker, first, echo, Late(), idle_s=60)
    assert (second.answer, second.shut) == (b"two", 1)


async def test_a_worker_that_dies_while_idle_gets_no_request() -> None:
    send, receive = trio.open_memory_channel[Asked](5)
    first = Asked(b"one")
    async with open_worker(CAT) as worker, trio.open_nursery() as nursery:
        nursery.start_soon(serve_jobs, worker, first, echo, receive)
        await trio.testing.wait_all_tasks_blocked()
        with trio.fail_after(60):
            while not first.shut:
                await trio.lowlevel.checkpoint()
        os.kill(worker.pid, signal.SIGKILL)
    send.send_nowait(Asked(b"two"))
    assert receive.statistics().current_buffer_used == 1


async def test_a_cancellation_shuts_the_request_down() -> None:
    _send, receive = trio.open_memory_channel[Asked](5)
    job = Asked(b"one")

    async def hang(_worker: Worker, _job: Asked) -> bool:
        await trio.sleep_forever()

    async with open_worker(CAT) as worker:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(serve_jobs, worker, job, hang, receive)
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
    assert job.shut == 1


@pytest.mark.parametrize(
    ("returncode", "said"), [(-11, "Segmentation fault"), (7, "exit status 7"), (0, "exit status 0")]
)
def test_the_end_of_a_process_is_described(returncode: int, said: str) -> None:
    assert describe_end(returncode) == said
