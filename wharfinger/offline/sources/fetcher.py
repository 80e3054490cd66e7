"""The interface of source fetchers, their result, and their error.

A fetcher gets the object of a source (a GitRepository, an OCIRepository, …) and returns a folder with its files. An orchestrator
has at most one fetcher for each kind of source. A caller can set or replace fetchers until the orchestrator bootstraps
(:class:`~wharfinger.offline.sources.fetchers.Fetchers`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from wharfinger.formats.json.value import JsonObject
from wharfinger.runtime.fixpoint.model import Id


@dataclass(frozen=True, slots=True)
class Artifact:
    """The files of a source. ``revision`` changes if the files may have changed; "" means that they may change at any time."""

    folder: Path
    revision: str


class SourceError(Exception):
    """A source cannot be fetched. ``transient`` is True if another attempt may succeed without a change."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class OfflineError(SourceError):
    """A source needs the network, which ``--offline`` forbids. ``what`` is "registry" or "repository"."""

    def __init__(self, url: str, what: str) -> None:
        super().__init__(f"{url}: the network is forbidden by --offline, and this {what} is not on this machine")


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """A source to fetch: its id, its object, and the data of the Secret that it names (None if it names none)."""

    id: Id
    object: JsonObject
    secret: Mapping[str, bytes] | None = None


class Fetcher(Protocol):
    """A fetcher of one kind of source. Raises SourceError."""

    async def fetch(self, request: SourceRequest, /) -> Artifact:
        """Fetch the source, or return the files of an earlier fetch of the same revision."""
        ...
