"""A process that writes to a data file until it is killed: ``python -m … FILE SEED``.

After each write it says so: the revision, the name, and the number now in it ("-" once it is deleted).
"""

import random
import sys
from pathlib import Path

from tests.cluster.control_plane.storage_contract import pod
from wharfinger.cluster.control_plane.sqlite_storage import open_sqlite_storage

NAMES = tuple("abcdefgh")
PADDING = "x" * 1500


def main(path: Path, seed: int) -> None:
    """Write for ever."""
    rng = random.Random(seed)  # noqa: S311 - repeatable on purpose
    with open_sqlite_storage(path) as storage:
        while True:
            name = rng.choice(NAMES)
            key, obj = pod(name, n=storage.revision)
            if storage.get(key) is not None and rng.random() < 0.3:
                said = f"{storage.delete(key).revision} {name} -"
            else:
                said = f"{storage.put(key, {**obj, 'padding': PADDING}).revision} {name} {obj['n']}"
            sys.stdout.write(said + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
