"""The lookup of the objects to which a package's resource refers: the repository with its Secrets, and the sources of the
settings.

Informers follow the referenced objects, so a lookup needs no request, and a change of a referenced object makes the
controller reconcile the package.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wharfinger.cluster.watch.informer import Informer
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.sources.source import Source
from wharfinger.runtime.resources.references import References
from wharfinger.runtime.resources.repositories import Repository, read_repository, with_secrets
from wharfinger.runtime.resources.resources import PACKAGE_REPOSITORY, PackageSpec, SpecError
from wharfinger.runtime.resources.settings import ResolvedSettings, SettingsSourceError, resolve_settings


class RepositoryUnusableError(Exception):
    """The repository that a resource names does not exist or cannot be used; ``reason`` is the reason for the
    status of the resource.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Lookup:
    """The lookup of references. ``local_packages`` are the folders that may contain repositories, and ``token_folders`` are the
    folders that may contain the token files of repositories.
    """

    repositories: Informer
    references: References
    local_packages: Sequence[Path] = ()
    token_folders: Sequence[Path] = ()

    def of(self, spec: PackageSpec) -> tuple[Source, ResolvedSettings] | None:
        """Return a package's source and its settings. Return None while a referenced object has not been looked up; the
        controller is notified when this is done.

        Raises RepositoryUnusableError or SettingsSourceError.
        """
        repository = self.find_repository(spec)
        wanted = {entry.source for entry in spec.settings_from}
        wanted.update(repository.secrets.values())
        self.references.want(spec.id.name, wanted)
        for key in sorted(wanted):
            if not self.references.looked_up(key):
                if problem := self.references.problem(key):
                    raise SettingsSourceError(f"{key} cannot be looked up: {problem}")
                return None
        settings = resolve_settings(spec, {key: self.references.get(key) for key in wanted})
        return self._source(spec, repository), settings

    def last_settings(self, spec: PackageSpec) -> ResolvedSettings:
        """Return a package's settings, computed from the last known content of the objects that they reference. Raises
        SettingsSourceError if a source that is not optional is missing or was not looked up yet.
        """
        return resolve_settings(spec, {entry.source: self.references.get(entry.source) for entry in spec.settings_from})

    def find_repository(self, spec: PackageSpec) -> Repository:
        """Return the repository that a resource names. Raises RepositoryUnusableError."""
        name = spec.repository
        obj = self.repositories.get(ObjectKey(PACKAGE_REPOSITORY, "", name))
        if obj is None:
            raise RepositoryUnusableError("RepositoryNotFound", f"PackageRepository {name} does not exist")
        try:
            return read_repository(obj, self.local_packages, self.token_folders)
        except SpecError as error:
            raise RepositoryUnusableError("RepositoryInvalid", f"PackageRepository {name}: {error}") from error

    def _source(self, spec: PackageSpec, repository: Repository) -> Source:
        secrets = {key: self.references.get(key) for key in repository.secrets.values()}
        try:
            return with_secrets(repository, secrets)
        except SpecError as error:
            raise RepositoryUnusableError(
                "RepositoryInvalid", f"PackageRepository {spec.repository}: {error}"
            ) from error
