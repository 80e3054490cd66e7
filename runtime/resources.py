"""Wharfinger's own custom resources as the runtime reads them (``wharfinger.dev/v1alpha1``; manifests in ``crds/``).

An API server validates them against the CRDs, but an older CRD, a webhook or a hand-edited object may let something through:
each reader here checks what it needs, and a :class:`SpecError` names the field and what it should have been.
"""

from dataclasses import dataclass
from typing import Final

from wharfinger.cluster.resource import ResourceType
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonObject, checksum, find, find_int, find_list, find_object, find_str
from wharfinger.packages.address import RepositoryAddress, parse_repository
from wharfinger.packages.errors import AddressError
from wharfinger.runtime.identity import AppId

GROUP: Final = "wharfinger.dev"
VERSION: Final = "v1alpha1"
FINALIZER: Final = "wharfinger.dev/installed"
REQUESTED: Final = "wharfinger.dev/reconcile-requested-at"
DEFAULT_REPOSITORY: Final = "default"

APPLICATION: Final = ResourceType(GROUP, VERSION, "Application", "applications", namespaced=True)
PACKAGE_REPOSITORY: Final = ResourceType(GROUP, VERSION, "PackageRepository", "packagerepositories", namespaced=False)


class SpecError(Exception):
    """A custom resource asks for something that cannot be; permanent until it is edited."""


@dataclass(frozen=True, slots=True)
class Application:
    """What an Application asks for, and how it was when it was last looked at."""

    id: AppId
    generation: int
    package: str
    version: str
    repository: str
    settings: JsonObject
    requested: str
    """The value of the annotation wharfinger.dev/reconcile-requested-at: any change of it starts an update."""
    status: JsonObject
    """What was last written."""

    @property
    def settings_checksum(self) -> str:
        """Canonical: no settings and empty settings are the same."""
        return checksum(self.settings)


def read_application(obj: JsonObject) -> Application:
    """Read an Application object. Raises SpecError."""
    try:
        identity = AppId(find_str(obj, "metadata", "namespace"), find_str(obj, "metadata", "name"))
        return Application(
            id=identity,
            generation=find_int(obj, "metadata", "generation"),
            package=_required(obj, "packageName"),
            version=_required(obj, "packageVersion"),
            repository=find_str(obj, "spec", "packageRepositoryName", default=DEFAULT_REPOSITORY),
            settings=find_object(obj, "spec", "settings"),
            requested=find_str(obj, "metadata", "annotations", REQUESTED),
            status=find_object(obj, "status"),
        )
    except FormatError as error:
        raise SpecError(f"{error}; correct the Application's spec") from error


def read_repository(obj: JsonObject) -> RepositoryAddress:
    """Where a PackageRepository's packages are. Raises SpecError."""
    try:
        text = find_str(obj, "spec", "registry", "repo")
        scheme = find_str(obj, "spec", "registry", "scheme", default="HTTPS").upper()
        if not text:
            raise SpecError("spec.registry.repo: required, such as registry.example/packages")
        if scheme not in {"HTTP", "HTTPS"}:
            raise SpecError(f"spec.registry.scheme: {scheme!r} is neither HTTP nor HTTPS")
        address = parse_repository(text.rstrip("/"))
    except (FormatError, AddressError) as error:
        raise SpecError(f"{error}; correct the PackageRepository's spec") from error
    return RepositoryAddress(address.registry, address.path, "http" if scheme == "HTTP" else "https")


def is_deleting(obj: JsonObject) -> bool:
    """A deletion was asked for; finalizers hold the object."""
    return find(obj, "metadata", "deletionTimestamp") is not None


def finalizers_of(obj: JsonObject) -> tuple[str, ...]:
    """``metadata.finalizers``; entries that are no strings are left out."""
    return tuple(entry for entry in find_list(obj, "metadata", "finalizers") if isinstance(entry, str))


def _required(obj: JsonObject, field: str) -> str:
    value = find_str(obj, "spec", field)
    if not value:
        raise SpecError(f"spec.{field}: required")
    return value
