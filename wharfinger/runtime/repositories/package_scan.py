"""One scan of one package, which computes the package's index from the tags in a registry.

A scan lists the tags with one request, and compares them with the last scan. If no tag is new, the scan requests only the
digests of these tags: the followed tags (the channels, and the versions in use, because these tags may have moved), the newest
version if it could not be read, and versions whose content was incomplete. Details are read once for each of the newest versions
and for each version in use, and again if a tag whose digest was requested has moved.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, decode_json, find, find_object
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import ArtifactError, ArtifactNotFoundError
from wharfinger.packages.registry.address import tag_of_version
from wharfinger.packages.registry.manifest import package_layers
from wharfinger.packages.registry.registry import Manifest, Registry
from wharfinger.runtime.versions.package_index import (
    DETAILED,
    MAX_CHANGES,
    MAX_CHANNELS,
    MAX_TEXT,
    ChannelTarget,
    PackageIndex,
    VersionDetails,
    digest_of_tags,
    split_tags,
)

MAX_CONFIG: Final = 1024 * 1024
MAX_REQUIREMENTS: Final = 16 * 1024
"""The limit on the size of a version's requirements in an index, in characters. Larger requirements are left out of the index,
and are known only after the package is loaded.
"""
_VERSION: Final = "org.opencontainers.image.version"
_CHANGES: Final = "artifacthub.io/changes"


@dataclass(frozen=True, slots=True)
class Interest:
    """The tags of a package whose digests every scan requests: followed channels, and versions whose tag may have moved."""

    channels: frozenset[str] = frozenset()
    versions: frozenset[str] = frozenset()


async def scan_package(
    registry: Registry,
    path: str,
    before: PackageIndex,
    interest: Interest,
    *,
    full: bool = False,
    detailed: int = DETAILED,
) -> PackageIndex:
    """Return the new index. It equals ``before`` if nothing has changed. With ``full``, all details are read again.
    ``detailed`` is the number of newest versions whose details are read.

    ``path`` is the path of the package in the registry. Raises PackageError.
    """
    tags = await registry.tags(path)
    if (known_tags := digest_of_tags(tags)) == before.tags:
        versions, channels = before.versions, before.channel_names
    else:  # in a thread, because the work takes a third of a second for ten thousand tags
        versions, channels = await trio.to_thread.run_sync(split_tags, tags)
    known = dict(before.details) if not full else {}
    wanted = [each for each in versions[:detailed] if each not in known]
    there = set(tags)
    wanted += sorted(each for each in interest.versions if each in versions or each in there)
    if versions and (newest := known.get(versions[0])) is not None and newest.unreadable:
        wanted.append(versions[0])  # the author may push a package under the same tag later
    wanted += (each for each in versions[1:detailed] if each in known and not known[each].digest)
    details = {each: known[each] for each in versions[:detailed] if each in known}
    for version in dict.fromkeys(wanted):
        if (found := await _details(registry, path, version, known.get(version))) is not None:
            details[version] = found
    targets: dict[str, ChannelTarget] = {}
    for name in sorted(interest.channels & set(tags)):
        if (target := await _target(registry, path, name, before.channels.get(name), details)) is not None:
            targets[name] = target
    index = PackageIndex(
        before.repository, before.package, versions, known_tags, targets, channels[:MAX_CHANNELS], details
    )
    if index != before:
        # The versions are parsed here, in another thread, because the first choice of a version needs them, and ten thousand of
        # them take long.
        await trio.to_thread.run_sync(lambda: index.parsed)
    return index


async def _details(registry: Registry, path: str, version: str, before: VersionDetails | None) -> VersionDetails | None:
    """Return the details of a version. These are the earlier details, ``before``, if the version's tag has not moved since.
    Return None if the tag was deleted.
    """
    try:
        descriptor = await registry.resolve(path, tag_of_version(version))
    except ArtifactNotFoundError:
        return None
    if before is not None and (before.tag or before.digest) == descriptor.digest.text:
        return before
    try:
        manifest = await registry.manifest(path, descriptor.digest)
        package_layers(manifest)
        config = await _config(registry, path, manifest)
    except (ArtifactError, FormatError) as error:
        return VersionDetails(descriptor.digest.text, unreadable=_text(f"it is not a package: {error}"))
    # Missing content may be pushed later under the same digest, so the problem is not kept in the index.
    except ArtifactNotFoundError as error:
        return VersionDetails("", unreadable=_text(f"it is incomplete: {error}"))
    return read_details(manifest.descriptor.digest, config, tag=_other(descriptor.digest, manifest))


async def _target(
    registry: Registry,
    path: str,
    name: str,
    before: ChannelTarget | None,
    details: Mapping[str, VersionDetails],
) -> ChannelTarget | None:
    """Return the version to which a channel points; None if the channel's tag was deleted, or does not point at a version."""
    try:
        digest = (await registry.resolve(path, name)).digest
        if before is not None and (before.tag or before.digest) == digest.text:
            return before
        manifest = await registry.manifest(path, digest)
    except (ArtifactNotFoundError, ArtifactError):
        return None
    found = manifest.descriptor.digest.text
    same = (version for version, each in details.items() if each.digest == found)
    version = next(same, "") or dict(manifest.annotations).get(_VERSION, "")
    return ChannelTarget(version, found, _other(digest, manifest)) if version else None


def _other(digest: Digest, manifest: Manifest) -> str:
    """Return the digest of a tag if it differs from the digest of the manifest, which means that the tag points at an image
    index; otherwise "".
    """
    return "" if digest == manifest.descriptor.digest else digest.text


async def _config(registry: Registry, path: str, manifest: Manifest) -> JsonObject:
    """Return the configuration of a package's manifest: ``Chart.yaml`` if the package is a chart, otherwise the metadata that
    were written when the package was pushed. Return an empty object if the configuration is larger than MAX_CONFIG.
    """
    if manifest.config.size > MAX_CONFIG:
        return {}
    async with registry.blob(path, manifest.config) as chunks:
        data = b"".join([chunk async for chunk in chunks])
    return as_object(decode_json(data, max_bytes=MAX_CONFIG, what="config"), "config")


def read_details(digest: Digest, config: JsonObject, *, tag: str = "") -> VersionDetails:
    """Return the details of a version from its configuration; fields with values of an unexpected type are left out."""
    requirements = find(config, "requirements")
    fits = isinstance(requirements, dict) and len(str(requirements)) <= MAX_REQUIREMENTS
    return VersionDetails(
        digest=digest.text,
        tag=tag,
        kind=_text(kind) if (kind := find(config, "type")) in ("Application", "Module") else "",
        description=_text(find(config, "description")),
        kubernetes=_text(find(config, "kubeVersion")),
        requirements=find_object(config, "requirements") if fits else {},
        changelog=tuple(_changes(config)),
        deprecated=_deprecation(config),
    )


def _changes(config: JsonObject) -> list[str]:
    """Return the changes in the package's changelog; if it has none, those in the chart annotation that Artifact Hub reads."""
    listed = find(config, "changelog")
    chart = find(config, "annotations", _CHANGES)
    if isinstance(chart, str) and not listed:
        try:
            listed = read_yaml(chart.encode(), what=_CHANGES)
        except FormatError:
            return []
    return [text for text in (_change(each) for each in _items(listed)) if text][:MAX_CHANGES]


def _items(value: JsonValue) -> Iterable[JsonValue]:
    if isinstance(value, dict):  # features and fixes, in the format of Deckhouse
        return [item for each in value.values() for item in (each if isinstance(each, list) else [each])]
    return value if isinstance(value, list) else [value]


def _change(value: JsonValue) -> str:
    return _text(find(value, "description") if isinstance(value, dict) else value)


def _deprecation(config: JsonObject) -> str:
    said = find(config, "deprecated")
    if said is True:
        return "this version is deprecated"
    return _text(said)


def _text(value: JsonValue) -> str:
    """Return a text as one line of limited length; "" if the value is not a text."""
    return " ".join(value[: 2 * MAX_TEXT].split())[:MAX_TEXT] if isinstance(value, str) else ""
