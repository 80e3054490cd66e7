"""A process that writes to a data file until it is killed: ``python -m … FILE SEED``.

After each commit, it prints a line for each write: the revision, the name, and the written number, or "-" for a deletion.
"""

import random
import sys
from pathlib import Path

from tests.control_plane.support.storage_contract import pod
from wharfinger.control_plane.storage.sqlite import open_sqlite_storage

NAMES = tuple("abcdefgh")
PADDING = "x" * 1500
GROUP = 3
"""The largest number of writes in one commit."""


def main(path: Path, seed: int) -> None:
    """Write to the file until the process is killed."""
    rng = random.Random(seed)  # noqa: S311 - repeatable on purpose
    group: list[str] = []
    with open_sqlite_storage(path) as storage:
        while True:
            name = rng.choice(NAMES)
            key, obj = pod(name, n=storage.revision)
            if storage.get(key) is not None and rng.random() < 0.3:
                said = f"{storage.delete(key).revision} {name} -"
            else:
                said = f"{storage.put(key, {**obj, 'padding': PADDING}).revision} {name} {obj['n']}"
            group.append(said + "\n")
            if len(group) == GROUP or rng.random() < 0.5:
                storage.commit()
                sys.stdout.write("".join(group))
                sys.stdout.flush()
                group.clear()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
