"""The Applications and Modules that use a PackageRepository, and the tags that they follow. Pure.

A change of a resource updates only the use by this resource, so it costs the same with ten packages and with ten thousand.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.repositories.package_scan import Interest
from wharfinger.runtime.resources.resources import DEFAULT_REPOSITORY
from wharfinger.runtime.versions.version_policy import Channel, read_version


@dataclass(frozen=True, slots=True)
class Use:
    """The use of a repository by one resource. ``followed`` is True if the package has to be scanned; ``interest`` has the
    followed tags.
    """

    repository: str
    package: str
    followed: bool
    interest: Interest = Interest()  # noqa: RUF009 - frozen


def read_use(key: ObjectKey, obj: JsonObject) -> Use | None:
    """Return the use of a repository by a resource; None if the resource cannot be read. The controller of the resource reports
    that problem.
    """
    try:
        repository = find_str(obj, "spec", "packageRepositoryName", default=DEFAULT_REPOSITORY)
        package = find_str(obj, "spec", "packageName", default=key.name)
    except FormatError:
        return None
    try:
        version, policy = read_version(obj)
        if not policy.needs_index:
            return Use(repository, package, followed=False)
        if isinstance(policy.follows, Channel):
            # The channel determines the content, so the tags of versions do not matter.
            return Use(repository, package, followed=True, interest=Interest(channels=frozenset({policy.follows.name})))
        using = version or find_str(obj, "status", "update", "chosen")
        versions = frozenset({using}) if using else frozenset[str]()
        return Use(repository, package, followed=True, interest=Interest(versions=versions))
    except FormatError:
        return Use(repository, package, followed=False)  # the installed package still uses the repository


@dataclass(slots=True)
class Uses:
    """The uses of all repositories: which resource uses which repository and package."""

    _of: dict[ObjectKey, Use] = field(default_factory=dict)
    _by_repository: defaultdict[str, dict[ObjectKey, Use]] = field(default_factory=lambda: defaultdict(dict))

    def put(self, key: ObjectKey, use: Use | None) -> frozenset[str]:
        """Replace the use of a resource (None: it uses no repository). Return the repositories whose uses have changed."""
        before = self._of.get(key)
        if before == use:
            return frozenset()
        changed: set[str] = set()
        if before is not None:
            self._by_repository[before.repository].pop(key, None)
            del self._of[key]
            changed.add(before.repository)
        if use is not None:
            self._of[key] = self._by_repository[use.repository][key] = use
            changed.add(use.repository)
        return frozenset(changed)

    def users(self, repository: str) -> tuple[ObjectKey, ...]:
        """Return the resources that use a repository, sorted."""
        return tuple(sorted(self._by_repository[repository]))

    def is_used(self, repository: str) -> bool:
        """Return whether a resource uses a repository."""
        return bool(self._by_repository[repository])

    def followers(self, repository: str, package: str) -> tuple[ObjectKey, ...]:
        """Return the resources that follow a package, sorted."""
        uses = self._by_repository[repository].items()
        return tuple(sorted(key for key, use in uses if use.followed and use.package == package))

    def interests(self, repository: str) -> dict[str, Interest]:
        """Return the followed packages of a repository, each with the tags whose digests every scan has to request."""
        found: dict[str, Interest] = {}
        for use in self._by_repository[repository].values():
            if use.followed:
                before = found.get(use.package, Interest())
                channels, versions = before.channels | use.interest.channels, before.versions | use.interest.versions
                found[use.package] = Interest(channels, versions)
        return dict(sorted(found.items()))
