"""The index of one package of a repository: its versions, its channels, and the details of some versions.

A version is a tag that is a semantic version; any other tag is a channel, which points at a version. An index keeps the names
of all versions, but details (digest, requirements, changelog) only of the newest DETAILED versions and of versions in use,
because a repository may have ten thousand versions. An index is stored in the cluster as one PackageIndex object
(docs/decisions/0030), so a restarted daemon knows the index before its first scan.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import semver

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_object, find_str
from wharfinger.formats.version_constraint import parse_version
from wharfinger.packages.registry.address import version_of_tag

DETAILED: Final = 32
"""The number of newest versions whose details are read."""
MAX_CHANNELS: Final = 100
MAX_CHANGES: Final = 20
"""The limit on the number of entries in the changelog of a version."""
MAX_TEXT: Final = 500
_SIGNATURE: Final = "sha256-"
"""The beginning of the tags under which programs such as cosign store signatures and attestations."""
_WHOLE: Final = re.compile(r"v?[0-9]+\.[0-9]+\.[0-9]+(?![0-9.])")
MAX_OBJECT: Final = 900_000
"""The limit on the size of a PackageIndex object in bytes; if an index is larger, its oldest versions are left out."""


@dataclass(frozen=True, slots=True)
class VersionDetails:
    """The details of one version, from its OCI manifest and the configuration blob that the manifest names.

    ``requirements`` are the unparsed requirements of its ``package.yaml``. ``deprecated`` is the reason why the version is
    deprecated, "" if it is not.
    """

    digest: str
    """The digest of the package's manifest; for an image index, the digest of its image for this machine."""
    tag: str = ""
    """The digest of the image index, if the tag points at an image index; otherwise ""."""
    kind: str = ""
    """The kind of resource that installs this version; "" if the version states no kind."""
    description: str = ""
    kubernetes: str = ""
    """A chart's constraint on the version of Kubernetes (``kubeVersion``)."""
    requirements: JsonObject = field(default_factory=dict, hash=False)
    changelog: tuple[str, ...] = ()
    deprecated: str = ""
    unreadable: str = ""
    """The reason why the tag's content is not a package, or is incomplete; such a version is never chosen. If the content is
    incomplete, ``digest`` is empty.
    """


@dataclass(frozen=True, slots=True)
class ChannelTarget:
    """The version that a channel points at, and the digest of its content."""

    version: str
    digest: str
    tag: str = ""
    """The digest of the image index, if the channel's tag points at an image index; otherwise ""."""


@dataclass(frozen=True)
class PackageIndex:
    """The versions of one package, the newest first."""

    repository: str
    package: str
    versions: tuple[str, ...] = ()
    tags: str = ""
    """A digest of the names of all tags. If it is the same at the next scan, there are no new versions."""
    channels: Mapping[str, ChannelTarget] = field(default_factory=dict)
    """The target of each channel that a resource follows, by the name of the channel."""
    channel_names: tuple[str, ...] = ()
    """The names of all channels; at most MAX_CHANNELS."""
    details: Mapping[str, VersionDetails] = field(default_factory=dict)

    @cached_property
    def parsed(self) -> tuple[semver.Version, ...]:
        """The versions, parsed."""
        return tuple(parse_version(version) for version in self.versions)

    def digest(self, version: str) -> str:
        """Return the digest of a version, or "" if it is not known."""
        details = self.details.get(version)
        return details.digest if details is not None else ""


def split_tags(tags: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the versions among some tags, the newest first, and the channels, sorted. Tags of signatures are left out.

    Versions of equal precedence are ordered by their text, so the same tags give the same order.
    """
    versions: list[tuple[semver.Version, str]] = []
    others: list[str] = []
    for tag in tags:
        if tag.startswith(_SIGNATURE):
            continue
        text = version_of_tag(tag)
        try:
            # A tag with fewer than three numbers, such as v1, is a channel, because it moves with each release.
            versions.append((parse_version(text), text)) if _WHOLE.match(text) else others.append(tag)
        except FormatError:
            others.append(tag)
    versions.sort(reverse=True)
    return tuple(text for _, text in versions), tuple(sorted(others))


def digest_of_tags(tags: Iterable[str]) -> str:
    """Return a short digest of the names of tags."""
    return hashlib.sha256("\n".join(sorted(tags)).encode()).hexdigest()[:32]


def index_object(index: PackageIndex) -> JsonObject:
    """Return the ``status`` of the PackageIndex. If it would be too large, the oldest versions are left out."""
    versions: list[JsonValue] = list(index.versions)
    room = MAX_OBJECT - sum(2_000 + len(str(each.requirements)) for each in index.details.values())
    kept: list[JsonValue] = []
    for version in versions:
        room -= len(str(version)) + 3
        if room < 0:
            break
        kept.append(version)
    return {
        "tagsDigest": index.tags,
        "count": len(versions),
        "newest": index.versions[0] if index.versions else "",
        "versions": kept,
        "channelNames": [*index.channel_names],
        "channels": [
            {"name": name, "version": target.version, "digest": target.digest, **_optional({"tag": target.tag})}
            for name, target in sorted(index.channels.items())
        ],
        "details": [_details_object(name, each) for name, each in sorted(index.details.items())],
    }


def read_index(repository: str, package: str, status: JsonObject) -> PackageIndex:
    """Read the ``status`` of a PackageIndex. Another program may have changed it, so versions and names of channels that are
    not strings are left out. Raises FormatError if another field has an unexpected type.
    """
    texts = [each for each in find_list(status, "versions") if isinstance(each, str)]
    versions, _ = split_tags(texts)
    complete = find(status, "count") == len(versions)
    return PackageIndex(
        repository,
        package,
        versions,
        find_str(status, "tagsDigest") if complete else "",
        {
            find_str(each, "name"): ChannelTarget(
                find_str(each, "version"), find_str(each, "digest"), find_str(each, "tag")
            )
            for each in find_list(status, "channels")
        },
        tuple(each for each in find_list(status, "channelNames") if isinstance(each, str)),
        {find_str(each, "version"): _read_details(each) for each in find_list(status, "details")},
    )


def _details_object(version: str, details: VersionDetails) -> JsonObject:
    changelog: list[JsonValue] = list(details.changelog)
    optional: JsonObject = {
        "tag": details.tag,
        "type": details.kind,
        "description": details.description,
        "kubernetes": details.kubernetes,
        "requirements": details.requirements,
        "changelog": changelog,
        "deprecated": details.deprecated,
        "unreadable": details.unreadable,
    }
    return {"version": version, "digest": details.digest, **_optional(optional)}


def _optional(fields: JsonObject) -> JsonObject:
    return {name: value for name, value in fields.items() if value}


def _read_details(entry: JsonValue) -> VersionDetails:
    return VersionDetails(
        digest=find_str(entry, "digest"),
        tag=find_str(entry, "tag"),
        kind=find_str(entry, "type"),
        description=find_str(entry, "description"),
        kubernetes=find_str(entry, "kubernetes"),
        requirements=find_object(entry, "requirements"),
        changelog=tuple(each for each in find_list(entry, "changelog") if isinstance(each, str)),
        deprecated=find_str(entry, "deprecated"),
        unreadable=find_str(entry, "unreadable"),
    )
