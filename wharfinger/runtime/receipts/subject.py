"""The package that a trial installs: its files, its service account, and the resources that request it."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.version_constraint import ConstraintError, parse_version
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.kube.service_account import ServiceAccount
from wharfinger.packages.author.package_check import own_name
from wharfinger.packages.definition.definition import Layout, read_definition
from wharfinger.packages.definition.package_file import PackageType
from wharfinger.packages.errors import ArtifactError
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE, AppId, ModuleId, PackageId
from wharfinger.runtime.resources.resources import GROUP, VERSION, resource_key

ACCOUNT: Final = "package"
_VERSION_LINE: Final = re.compile(r"^version:.*$", re.MULTILINE)
_VERSION_FILES: Final = ("package.yaml", "module.yaml", "Chart.yaml")
REPOSITORY: Final = ResourceType(GROUP, VERSION, "PackageRepository", "packagerepositories", namespaced=False)


@dataclass(frozen=True, slots=True)
class Subject:
    """The package in a folder, with its namespace, its settings, and its kind: Application or Module."""

    folder: Path
    name: str
    version: str
    id: PackageId
    settings: JsonObject

    @property
    def account(self) -> ServiceAccount:
        """The service account that the package acts as."""
        return ServiceAccount(self.id.namespace, ACCOUNT)

    @property
    def key(self) -> ObjectKey:
        """The key of the subject's Application or Module."""
        return resource_key(self.id)

    def resource(self, version: str) -> JsonObject:
        """Return the Application or Module that requests a version of the package."""
        spec: JsonObject = {
            "packageName": self.name,
            "packageVersion": version,
            "serviceAccountName": ACCOUNT,
            "settings": self.settings,
        }
        metadata: JsonObject = {"name": self.key.name}
        if isinstance(self.id, AppId):
            metadata["namespace"] = self.id.namespace
        else:
            spec |= {"namespace": self.id.namespace, "enabled": True}
        kind = self.key.resource.kind
        return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": metadata, "spec": spec}


def read_subject(folder: Path, namespace: str, settings: JsonObject, *, as_module: bool | None = None) -> Subject:
    """Read the package in a folder. Blocking.

    ``namespace`` is the namespace of its release; "" for the default namespace. ``as_module`` chooses between Application and
    Module if the package allows both (None means an Application, unless the folder has the layout of a module). Raises
    PackageError.
    """
    if not folder.is_dir():
        raise ArtifactError(f"{folder}: no such folder; name the folder that has the package's files")
    name = own_name(folder)
    definition = read_definition(folder, name=name, version="")
    if definition.layout is Layout.CHART and definition.chart is not None:
        name = (
            definition.chart.name
        )  # the folder's name is not checked, because the folders of two versions have different names
    if as_module is None:
        as_module = definition.type is PackageType.MODULE or (
            definition.type is None and definition.layout is Layout.MODULE_FOLDER
        )
    identity = ModuleId(name, namespace or SYSTEM_NAMESPACE) if as_module else AppId(namespace or "default", name)
    return Subject(folder, name, definition.version or "0.0.1", identity, settings)


def next_version(version: str) -> str:
    """Return the version with the next patch number. Raises ArtifactError if the text is not a version."""
    try:
        parsed = parse_version(version)
    except ConstraintError as error:
        raise ArtifactError(f"{version!r} is not a version: {error}; correct it in the package's files") from error
    return f"{parsed.major}.{parsed.minor}.{parsed.patch + 1}"


def place(source: Path, target: Path, version: str) -> None:
    """Copy a package's folder in place of a former copy, and change the version in the new copy. Blocking. Raises
    ArtifactError.
    """
    try:
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, symlinks=True)
        for name in _VERSION_FILES:
            file = target / name
            if file.is_file() and not file.is_symlink():
                file.write_text(_VERSION_LINE.sub(f"version: {version}", file.read_text(), count=1))
    except OSError as error:
        raise ArtifactError(f"{source}: cannot be copied: {error.strerror or error}") from error


def repository(folder: Path) -> JsonObject:
    """Return a PackageRepository for the copies of packages in a folder."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": REPOSITORY.kind,
        "metadata": {"name": "default"},
        "spec": {"folder": {"path": str(folder)}},
    }
