"""A process with an embedded control plane, started with ``python -m … FOLDER``.

It prints a line when the control plane is ready, and then waits until it is killed.
"""

import sys
from pathlib import Path

import trio

from wharfinger.cluster.embedded import open_embedded
from wharfinger.process.ledger import open_ledger


async def main(folder: Path) -> None:
    """Run an embedded control plane, print the id of its process, and wait until killed."""
    with open_ledger(folder / "journal.db") as ledger:
        async with open_embedded(folder / "embedded", ledger):
            [entry] = ledger.entries()
            sys.stdout.write(f"{entry.pid}\n")
            sys.stdout.flush()
            await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]))
