"""The fetcher for each kind of source. Fetchers cannot be replaced after the bootstrap of an orchestrator."""

from pathlib import Path

import pytest

from wharfinger.offline.sources.fetcher import Artifact, SourceError, SourceRequest
from wharfinger.offline.sources.fetchers import Fetchers, FetchersFrozenError
from wharfinger.offline.sources.retry import RetryPolicy
from wharfinger.offline.store.kinds import BUCKET
from wharfinger.runtime.fixpoint.model import Id

REQUEST = SourceRequest(Id(BUCKET, "a", "bin"), {})


class Folder:
    """A fetcher that always returns one folder."""

    async def fetch(self, request: SourceRequest) -> Artifact:
        return Artifact(Path("/there"), request.id.name)


async def test_a_kind_without_a_fetcher_is_reported() -> None:
    fetchers = Fetchers({}, RetryPolicy())
    with pytest.raises(SourceError, match=r"there is no fetcher for a Bucket; give one with Orchestrator.with_fetcher"):
        await fetchers.fetch(REQUEST)
    fetchers.set(BUCKET, Folder())
    assert (await fetchers.fetch(REQUEST)).revision == "bin"
    fetchers.set(BUCKET, None)
    with pytest.raises(SourceError):
        await fetchers.fetch(REQUEST)


def test_frozen_fetchers_cannot_be_changed() -> None:
    fetchers = Fetchers({}, RetryPolicy())
    fetchers.freeze()
    with pytest.raises(FetchersFrozenError, match="before bootstrap"):
        fetchers.set(BUCKET, Folder())
