"""The lookup of a resource's references: the repository that a package comes from, with its login, and its settings.

Informers follow the referenced objects, so a lookup costs nothing, and any change in them makes the controller check the
package.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wharfinger.cluster.watch.informer import Informer
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.registry.source import Source
from wharfinger.runtime.resources.references import References
from wharfinger.runtime.resources.repositories import Repository, read_repository, with_credentials
from wharfinger.runtime.resources.resources import PACKAGE_REPOSITORY, PackageSpec, SpecError
from wharfinger.runtime.resources.settings import ResolvedSettings, SettingsSourceError, resolve_settings


class RepositoryUnusableError(Exception):
    """The repository that a resource names does not exist or cannot be used; ``reason`` is the reason in its status."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Lookup:
    """The lookup of references. ``local_packages`` are the folders in which repositories may lie."""

    repositories: Informer
    references: References
    local_packages: Sequence[Path] = ()

    def of(self, spec: PackageSpec) -> tuple[Source, ResolvedSettings] | None:
        """Return a package's source and its settings; None while a reference has not been looked up, which is reported later.

        Raises RepositoryUnusableError or SettingsSourceError.
        """
        repository = self._repository(spec)
        wanted = {entry.source for entry in spec.settings_from}
        if repository.credentials is not None:
            wanted.add(repository.credentials)
        self.references.want(spec.id.name, wanted)
        for key in sorted(wanted):
            if not self.references.looked_up(key):
                if problem := self.references.problem(key):
                    raise SettingsSourceError(f"{key} cannot be looked up: {problem}")
                return None
        settings = resolve_settings(spec, {key: self.references.get(key) for key in wanted})
        return self._source(spec, repository), settings

    def last_settings(self, spec: PackageSpec) -> ResolvedSettings:
        """Return a package's settings, as far as their references were looked up. Raises SettingsSourceError."""
        return resolve_settings(spec, {entry.source: self.references.get(entry.source) for entry in spec.settings_from})

    def _repository(self, spec: PackageSpec) -> Repository:
        name = spec.repository
        obj = self.repositories.get(ObjectKey(PACKAGE_REPOSITORY, "", name))
        if obj is None:
            raise RepositoryUnusableError("RepositoryNotFound", f"PackageRepository {name} does not exist")
        try:
            return read_repository(obj, self.local_packages)
        except SpecError as error:
            raise RepositoryUnusableError("RepositoryInvalid", f"PackageRepository {name}: {error}") from error

    def _source(self, spec: PackageSpec, repository: Repository) -> Source:
        secret = self.references.get(repository.credentials) if repository.credentials is not None else None
        try:
            return with_credentials(repository, secret)
        except SpecError as error:
            raise RepositoryUnusableError(
                "RepositoryInvalid", f"PackageRepository {spec.repository}: {error}"
            ) from error
