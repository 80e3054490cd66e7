"""A process with an embedded control plane, which prints a line once that is ready, and then waits for ever: ``python -m …
FOLDER``.
"""

import sys
from pathlib import Path

import trio

from wharfinger.cluster.embedded import open_embedded
from wharfinger.process.ledger import open_ledger


async def main(folder: Path) -> None:
    """Run until killed."""
    with open_ledger(folder / "journal.db") as ledger:
        async with open_embedded(folder / "embedded", ledger):
            [entry] = ledger.entries()
            sys.stdout.write(f"{entry.pid}\n")
            sys.stdout.flush()
            await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]))
