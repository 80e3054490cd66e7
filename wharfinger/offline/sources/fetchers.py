"""The fetchers of one orchestrator, by kind of source. They cannot be changed once the orchestrator bootstraps."""

from collections.abc import Mapping

from wharfinger.offline.sources.fetcher import Artifact, Fetcher, SourceError, SourceRequest
from wharfinger.offline.sources.retry import RetryPolicy, with_retries


class FetchersFrozenError(Exception):
    """A fetcher was set after the orchestrator had begun to bootstrap, which is too late."""


class Fetchers:
    """The fetchers by kind of source. Fetches are retried by the retry policy."""

    def __init__(self, fetchers: Mapping[str, Fetcher], retries: RetryPolicy) -> None:
        self._fetchers = dict(fetchers)
        self._retries = retries
        self._frozen = False

    def set(self, kind: str, fetcher: Fetcher | None) -> None:
        """Replace the fetcher of a kind; None removes it. Raises FetchersFrozenError after `freeze`."""
        if self._frozen:
            raise FetchersFrozenError(f"the fetcher of {kind} must be set before bootstrap; make another orchestrator")
        if fetcher is None:
            self._fetchers.pop(kind, None)
        else:
            self._fetchers[kind] = fetcher

    def freeze(self) -> None:
        """Accept no more changes."""
        self._frozen = True

    async def fetch(self, request: SourceRequest) -> Artifact:
        """Fetch a source with the fetcher of its kind, with retries. Raises SourceError."""
        fetcher = self._fetchers.get(request.id.kind)
        if fetcher is None:
            kind = request.id.kind.partition(".")[0]
            raise SourceError(
                f"there is no fetcher for a {kind}; give one with Orchestrator.with_fetcher, or use another kind of source"
            )
        return await with_retries(lambda: fetcher.fetch(request), self._retries)
