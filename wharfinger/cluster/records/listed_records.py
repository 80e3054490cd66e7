"""The records from the first list of record Secrets that a daemon reads. Each record is kept until its release is restored.

That list has every record with its content, so no further request is needed to restore a release. Only records that a daemon
wrote are kept. The kept Secrets are used for a short time only, and their total size is limited. All other records are read
from the cluster.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final

MAX_BYTES: Final = 8 * 1024 * 1024
FRESH_S: Final = 60.0
"""The time in seconds for which the kept Secrets are used. A daemon normally needs less time to restore its releases."""


class ListedRecords:
    """Secrets as JSON, by namespace and name. ``clock`` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._texts: dict[tuple[str, str], tuple[str, bytes]] = {}
        self._refused: set[str] = set()
        self._bytes = 0
        self._until = 0.0

    def keep(self, place: tuple[str, str], version: str, text: bytes) -> None:
        """Keep a Secret of the list, unless too much is kept already."""
        self._drop(place)
        if self._bytes + len(text) <= MAX_BYTES:
            self._texts[place] = version, text
            self._bytes += len(text)
            self._until = self._clock() + FRESH_S

    def refuse(self, namespace: str) -> None:
        """Return no Secrets of this namespace from now on, because it has a record that cannot be attributed to a release."""
        self._refused.add(namespace)

    def take(self, namespace: str, versions: Mapping[str, str]) -> tuple[bytes, ...]:
        """Remove and return the kept Secrets with these names. Return () if a Secret is missing, or has another version."""
        if self._texts and self._clock() >= self._until:
            self._texts.clear()
            self._bytes = 0
        found = {name: self._drop((namespace, name)) for name in versions}
        if namespace in self._refused:
            return ()
        texts = tuple(
            kept[1] for name, version in versions.items() if (kept := found[name]) is not None and kept[0] == version
        )
        return texts if len(texts) == len(versions) else ()

    def _drop(self, place: tuple[str, str]) -> tuple[str, bytes] | None:
        kept = self._texts.pop(place, None)
        if kept is not None:
            self._bytes -= len(kept[1])
        return kept

    def __len__(self) -> int:
        """Return the number of kept Secrets."""
        return len(self._texts)
