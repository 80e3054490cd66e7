"""Interruptible waits for changes in the cluster. Such a wait may last forever, so the stop of the daemon interrupts it."""

from collections.abc import Iterator
from contextlib import contextmanager

import trio

from wharfinger.queue.task import TaskFailed
from wharfinger.runtime.package.instance import Tools


@contextmanager
def waiting(tools: Tools) -> Iterator[None]:
    """Run the body; if the daemon stops meanwhile, cancel the body and raise TaskFailed. The next daemon waits again."""
    with trio.CancelScope() as wait:
        forget = tools.stopping.on_cancel(wait.cancel)
        try:
            yield
        finally:
            forget()
    if wait.cancelled_caught:
        raise TaskFailed(f"stopped waiting: {tools.stopping.cause}")
