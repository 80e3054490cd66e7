"""A client of the debug socket for tests whose daemon runs in the same process. Each request is made in a thread."""

from pathlib import Path

import trio

from wharfinger.debug.client.client import DebugClient
from wharfinger.debug.client.exchange import Question, Reply, exchange_blocking, run_without_loop


async def exchange_in_thread(path: Path, question: Question) -> Reply:
    """Make the request in a worker thread, in the same way as a command, which has no event loop."""
    return await trio.to_thread.run_sync(
        lambda: run_without_loop(exchange_blocking(path, question)), abandon_on_cancel=True
    )


def socket_client(path: Path) -> DebugClient:
    """Return a client that does not block the event loop."""
    return DebugClient(path, exchange_in_thread)
