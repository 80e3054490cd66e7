"""Snapshots of PackageRepositories, from their objects and from the indexes of their packages."""

from collections import defaultdict

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find, find_list, find_object, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.kube.times import parse_time
from wharfinger.packages.sources.source import source_text
from wharfinger.runtime.inspector import IndexSnapshot, RepositorySnapshot, VersionSnapshot
from wharfinger.runtime.repositories.repository_controller import Repositories
from wharfinger.runtime.resources.repositories import read_repository
from wharfinger.runtime.resources.resources import SpecError
from wharfinger.runtime.versions.package_index import PackageIndex


def repository_snapshots(repositories: Repositories) -> tuple[RepositorySnapshot, ...]:
    """Return the snapshots of all repositories, sorted by name."""
    return tuple(_snapshot(repositories, key, obj) for key, obj in sorted(repositories.informer.objects().items()))


def _snapshot(repositories: Repositories, key: ObjectKey, obj: JsonObject) -> RepositorySnapshot:
    conditions = find_list(obj, "status", "conditions")
    ready = next((each for each in conditions if find(each, "type") == "Ready"), None)
    followed = sorted({*repositories.uses.interests(key.name), *_indexed(repositories, key.name)})
    return RepositorySnapshot(
        name=key.name,
        source=_source(repositories, obj),
        ready=find_str(ready, "status", default="Unknown"),
        reason=find_str(ready, "reason"),
        message=find_str(ready, "message"),
        scanned=parse_time(find_str(obj, "status", "lastScanTime")),
        users=len(repositories.uses.users(key.name)),
        packages=tuple(_index(repositories, key.name, package) for package in followed),
        labels=tuple(sorted(f"{label}={text}" for label, text in find_object(obj, "metadata", "labels").items())),
    )


def _indexed(repositories: Repositories, name: str) -> list[str]:
    return [package for repository, package in repositories.objects.indexes if repository == name]


def _source(repositories: Repositories, obj: JsonObject) -> str:
    try:
        return source_text(read_repository(obj, repositories.local_packages).source)
    except (SpecError, FormatError):
        return ""


def _index(repositories: Repositories, name: str, package: str) -> IndexSnapshot:
    index = repositories.index(name, package) or PackageIndex(name, package)
    pointing: defaultdict[str, list[str]] = defaultdict(list)
    for channel, target in sorted(index.channels.items()):
        pointing[target.version].append(channel)
    return IndexSnapshot(
        package,
        index.versions,
        index.channel_names,
        tuple(
            VersionSnapshot(
                version,
                details.digest,
                tuple(pointing.get(version, ())),
                details.description,
                details.kubernetes or _kubernetes(details.requirements),
                details.changelog,
                details.deprecated,
                details.unreadable,
            )
            for version in index.versions
            if (details := index.details.get(version)) is not None
        ),
        repositories.problem(name, package),
    )


def _kubernetes(requirements: JsonObject) -> str:
    """Return the constraint on the Kubernetes version, which a ``package.yaml`` has as a text or in a field ``constraint``."""
    found = find(requirements, "kubernetes")
    said = find(found, "constraint") if isinstance(found, dict) else found
    return said if isinstance(said, str) else ""
