"""The contents of packages that were read last, by digest: packages with the same content read it once, and share it.

After a restart every package is loaded, and many may have the same content. What is kept here was read from a tree of the store,
which has the content of its digest, so it never becomes outdated. It costs no memory while a package with this content is loaded.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from wharfinger.packages.definition.definition import Definition
from wharfinger.packages.rendering.chart_use import ChartUse

MOST: Final = 64
"""The number of contents of each kind that are kept."""

Content = TypeVar("Content")


class Kept(Generic[Content]):
    """The contents of one kind that were used last. The key of a content is everything that it depends on."""

    def __init__(self) -> None:
        self._contents: OrderedDict[Hashable, Content] = OrderedDict()

    def get(self, key: Hashable) -> Content | None:
        """Return a content that was kept; None if it was not."""
        found = self._contents.get(key)
        if found is not None:
            self._contents.move_to_end(key)
        return found

    def keep(self, key: Hashable, content: Content) -> None:
        """Keep a content, and forget those that were not used for the longest time."""
        self._contents[key] = content
        self._contents.move_to_end(key)
        while len(self._contents) > MOST:
            self._contents.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents that the packages of one runtime share."""

    definitions: Kept[Definition] = field(default_factory=Kept)
    chart_uses: Kept[ChartUse] = field(default_factory=Kept)
    webhook_mentions: Kept[bool] = field(default_factory=Kept)
    """True if the templates of the chart mention conversion webhooks."""
