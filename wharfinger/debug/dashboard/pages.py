"""The pages of the dashboard, selected by the path of a request. Each page is made from answers of the daemon."""

from collections.abc import Mapping
from typing import Final

from wharfinger.debug.client.unknown_names import NoSuchPackageError
from wharfinger.debug.dashboard.blocks import Page
from wharfinger.debug.dashboard.overview_page import overview_page, queues_page
from wharfinger.debug.dashboard.package_page import missing_page, package_page
from wharfinger.debug.dashboard.pictures import Pictures
from wharfinger.debug.dashboard.source import AnswerCache

OVERVIEW: Final = "/"
PACKAGE: Final = "/package"
QUEUES: Final = "/queues"
PARAMETERS: Final[Mapping[str, frozenset[str]]] = {
    OVERVIEW: frozenset({"find"}),
    PACKAGE: frozenset({"name"}),
    QUEUES: frozenset(),
}
"""The paths of the pages, each with the query parameters that it accepts."""
LONGEST: Final = 300
"""The maximum length of the value of a query parameter, in characters."""


class Pages:
    """All pages about one daemon."""

    def __init__(self, source: AnswerCache) -> None:
        self._source = source
        self._pictures = Pictures()

    async def page(self, path: str, argument: str) -> Page:
        """Return the page of a path; ``argument`` is the value of its query parameter. Raises DebugError."""
        if path == PACKAGE:
            return await self._package(argument)
        whole = await self._source.whole()
        if path == QUEUES:
            return queues_page(whole)
        return overview_page(whole, argument, await self._pictures.picture(whole.nodes, whole.packages))

    def pause_s(self, path: str, argument: str) -> float:
        """Return the time until the daemon may be asked for a newer version of a page."""
        return self._source.pause_s(argument if path == PACKAGE else "")

    async def _package(self, name: str) -> Page:
        try:
            one = await self._source.one(name)
        except NoSuchPackageError as error:
            return missing_page(name, str(error))
        return package_page(one, await self._pictures.picture(one.nodes, one.packages, name))
