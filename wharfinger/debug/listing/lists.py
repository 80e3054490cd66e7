"""The table of all lists that `wharfinger get` knows, and their short names."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from wharfinger.debug.listing.leader import leader_list
from wharfinger.debug.listing.listing import Listing
from wharfinger.debug.listing.package_parts import hooks_list, queues_list, resources_list, watches_list
from wharfinger.debug.listing.packages import ARROW, packages_list
from wharfinger.debug.listing.pools import pools_list
from wharfinger.debug.listing.repositories import repositories_list, versions_list

PACKAGES: Final = "packages"
_OTHERS: Final[Mapping[str, Callable[[], Listing]]] = {
    "repositories": repositories_list,
    "versions": versions_list,
    "queues": queues_list,
    "hooks": hooks_list,
    "resources": resources_list,
    "watches": watches_list,
    "pools": pools_list,
    "leader": leader_list,
}
_OF_PACKAGES: Final[Mapping[str, Callable[[str], Listing]]] = {
    PACKAGES: partial(packages_list, PACKAGES, ""),
    "applications": partial(packages_list, "applications", "Application"),
    "modules": partial(packages_list, "modules", "Module"),
}
LISTS: Final = (*_OF_PACKAGES, *_OTHERS)
_SHORT: Final = {
    **dict.fromkeys(("package", "pkg", "pkgs", "all"), PACKAGES),
    **dict.fromkeys(("application", "app", "apps", "wapp"), "applications"),
    **dict.fromkeys(("module", "mod", "mods", "wmod"), "modules"),
    **dict.fromkeys(("repository", "repos", "packagerepositories", "packagerepository", "pkgrepo"), "repositories"),
    **dict.fromkeys(("version", "packageindexes", "packageindex", "pkgidx"), "versions"),
    **dict.fromkeys(("resource", "objects", "object"), "resources"),
    **dict.fromkeys(("watch", "monitors", "monitor"), "watches"),
    "queue": "queues",
    "hook": "hooks",
    "pool": "pools",
}


def list_named(text: str) -> str:
    """Return the name of the list that a user typed, with or without the API group; an unknown word is returned unchanged."""
    word = text.lower().removesuffix(".wharfinger.dev")
    return _SHORT.get(word, word)


def listing_of(what: str, arrow: str = ARROW) -> Listing:
    """Return the list whose name in LISTS is ``what``; ``arrow`` is printed between two versions."""
    return _OF_PACKAGES[what](arrow) if what in _OF_PACKAGES else _OTHERS[what]()
