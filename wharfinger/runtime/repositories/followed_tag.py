"""The lookup of the tag that a resource's range or channel selects now, for builds without a daemon.

A build has no installed version, so no update policy applies: the result is the tag of the newest version in the range, or the
tag that is the channel itself.
"""

from datetime import UTC, datetime
from typing import Final, assert_never

import trio

from wharfinger.packages.errors import ArtifactNotFoundError
from wharfinger.packages.registry.address import tag_of_version
from wharfinger.packages.registry.registry import Registry
from wharfinger.runtime.resources.resources import PackageSpec
from wharfinger.runtime.versions.package_index import PackageIndex, split_tags
from wharfinger.runtime.versions.version_chooser import choose
from wharfinger.runtime.versions.version_policy import Channel, Range

_NOW: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""The time that is passed to ``choose``. Any time will do: only update windows depend on it, and they do not apply to a
package that is not installed.
"""


async def followed_tag(registry: Registry, path: str, spec: PackageSpec) -> str:
    """Return the tag that a resource asks for now: of its exact version, of its channel, or of the newest version in its range.
    Raises PackageError, and ArtifactNotFoundError if no version matches.
    """
    match spec.policy.follows:
        case None:
            return tag_of_version(spec.version)
        case Channel(name):
            return name
        case Range():
            versions, channels = await trio.to_thread.run_sync(split_tags, await registry.tags(path))
            index = PackageIndex(spec.repository, spec.package, versions, channel_names=channels)
            choice = choose(spec.policy, index, "", _NOW, lambda _: "")
            if not choice.version:
                raise ArtifactNotFoundError(choice.message)
            return tag_of_version(choice.version)
        case _:
            assert_never(spec.policy.follows)
