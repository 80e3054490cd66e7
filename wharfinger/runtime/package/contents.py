"""The most recently used contents of packages, by digest. Packages with the same content share one copy, which is read only
once.

After a restart every package is loaded, and many may have the same content. In the store, a digest always stands for the same
files, so a kept content never becomes outdated. While a package with the content is loaded, the copy in this cache costs no
additional memory.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from wharfinger.packages.definition.definition import Definition
from wharfinger.packages.rendering.chart_use import ChartUse

MOST: Final = 64
"""The limit on the number of entries in each cache."""

Content = TypeVar("Content")


class Kept(Generic[Content]):
    """A cache of the most recently used contents of one kind. The key of a content has everything on which the content
    depends.
    """

    def __init__(self) -> None:
        self._contents: OrderedDict[Hashable, Content] = OrderedDict()

    def get(self, key: Hashable) -> Content | None:
        """Return the content of a key; None if it is not kept."""
        found = self._contents.get(key)
        if found is not None:
            self._contents.move_to_end(key)
        return found

    def keep(self, key: Hashable, content: Content) -> None:
        """Add a content to the cache. If the cache has more than MOST contents, drop the least recently used one."""
        self._contents[key] = content
        self._contents.move_to_end(key)
        while len(self._contents) > MOST:
            self._contents.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Contents:
    """The caches of what was read from the files of packages. All packages of one runtime share them, because packages with the
    same content share one copy.
    """

    definitions: Kept[Definition] = field(default_factory=Kept)
    chart_uses: Kept[ChartUse] = field(default_factory=Kept)
    webhook_mentions: Kept[bool] = field(default_factory=Kept)
    """For the files of each package version, True if the templates of its chart mention conversion webhooks."""
