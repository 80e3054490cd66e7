"""The objects that `wharfinger install` makes: an Application, and perhaps a PackageRepository with the Secrets of an archive.

Pure.
"""

import base64
import hashlib
from dataclasses import dataclass
from typing import Final, assert_never

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.registry.address import RepositoryAddress
from wharfinger.runtime.installing.target import Carried, InRegistry, InRepository, Target
from wharfinger.runtime.resources.archive_list import PART_KEY
from wharfinger.runtime.resources.resources import APPLICATION, DEFAULT_REPOSITORY, PACKAGE_REPOSITORY

MADE_BY: Final = "wharfinger.dev/made-by"
"""The label, with the value INSTALL, of the PackageRepositories and Secrets that `wharfinger install` made."""
INSTALL: Final = "install"
CARRIED_FOR: Final = "wharfinger.dev/carried-for"
"""The label of the PackageRepository and the Secrets of an archive. Its value is a checksum of the namespace and name of the
Application for which they were made.
"""
PART_BYTES: Final = 700 * 1024
"""The size of the parts into which an archive is split. Even in base64, a part is below the limit for a Secret (1 MiB)."""
MAX_SETTINGS_DEPTH: Final = 32


class SettingError(FormatError):
    """The value of an option ``--set`` cannot be read."""


@dataclass(frozen=True, slots=True)
class Made:
    """The objects to apply: the Secrets, the PackageRepository (None if it exists already), and the Application."""

    secrets: tuple[JsonObject, ...]
    repository: JsonObject | None
    application: JsonObject


def made_objects(target: Target, namespace: str, name: str, settings: JsonObject, repository: str = "") -> Made:
    """Return the objects for installing a package as an Application. ``repository`` is an existing PackageRepository to use; ""
    stands for a new one, or for the default one if the target names only a package.
    """
    match target:
        case Carried():
            # The name of the repository depends on the content, so that a changed archive changes the Application, too.
            own = f"install-{namespace}-{name}-{target.digest.hex[:12]}"
            labels: JsonObject = {MADE_BY: INSTALL, CARRIED_FOR: carried_for(namespace, name)}
            secrets = _secrets(target, namespace, name, labels)
            packages: list[JsonValue] = [_entry(target, namespace, secrets)]
            made = _repository(own, {"archive": {"packages": packages}}, labels)
            return Made(secrets, made, _application(namespace, name, own, target.name, target.version, "", settings))
        case InRegistry(address):
            used = repository or _name_of(address)
            made_here = None if repository else _repository(used, _registry(address), {MADE_BY: INSTALL})
            return Made(
                (), made_here, _application(namespace, name, used, target.name, target.version, target.range, settings)
            )
        case InRepository():
            used = repository or DEFAULT_REPOSITORY
            return Made(
                (), None, _application(namespace, name, used, target.name, target.version, target.range, settings)
            )
        case _:
            assert_never(target)


def carried_for(namespace: str, name: str) -> str:
    """Return the value of the label CARRIED_FOR for an Application."""
    return hashlib.sha256(f"{namespace}/{name}".encode()).hexdigest()[:32]


def read_settings(texts: list[str]) -> JsonObject:
    """Return the settings that are given as ``--set path.to.key=value``. Values are YAML; a missing value is an empty text, as
    in Helm.

    Raises SettingError.
    """
    found: JsonObject = {}
    for text in texts:
        path, sign, value = text.partition("=")
        keys = path.split(".")
        if not sign or not all(keys) or len(keys) > MAX_SETTINGS_DEPTH:
            raise SettingError(f"--set {path!r:.200}: expected path.to.key=value")
        at = found
        for key in keys[:-1]:
            below = at.setdefault(key, {})
            if not isinstance(below, dict):
                raise SettingError(
                    f"--set {path!r:.200}: {key} already has a value, so {path!r:.200} cannot be set in it"
                )
            at = below
        try:
            at[keys[-1]] = read_yaml(value.encode(), what=f"--set {path}") if value else ""
        except FormatError as error:
            raise SettingError(str(error)) from error
    return found


def _application(
    namespace: str, name: str, repository: str, package: str, version: str, constraint: str, settings: JsonObject
) -> JsonObject:
    spec: JsonObject = {"packageRepositoryName": repository, "packageName": package}
    spec |= {"packageVersion": version} if version else {"versionRange": constraint}
    if settings:
        spec["settings"] = settings
    return {
        "apiVersion": APPLICATION.api_version,
        "kind": APPLICATION.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def _repository(name: str, spec: JsonObject, labels: JsonObject) -> JsonObject:
    return {
        "apiVersion": PACKAGE_REPOSITORY.api_version,
        "kind": PACKAGE_REPOSITORY.kind,
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    }


def _registry(address: RepositoryAddress) -> JsonObject:
    return {"registry": {"repo": str(address), "scheme": address.scheme.upper()}}


def _name_of(address: RepositoryAddress) -> str:
    """Return a name for a repository at an address: readable, and different for each address."""
    text = f"{address.scheme}://{address}"
    readable = "".join(each if each.isascii() and each.isalnum() else "-" for each in str(address).lower())
    return f"{readable.strip('-')[:40].strip('-')}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _secrets(target: Carried, namespace: str, name: str, labels: JsonObject) -> tuple[JsonObject, ...]:
    parts = [target.data[at : at + PART_BYTES] for at in range(0, len(target.data), PART_BYTES)]
    return tuple(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "wharfinger.dev/archive",
            "immutable": True,
            "metadata": {
                "name": f"{name}-archive-{target.digest.hex[:12]}-{number}",
                "namespace": namespace,
                "labels": labels,
            },
            "data": {PART_KEY: base64.b64encode(part).decode()},
        }
        for number, part in enumerate(parts)
    )


def _entry(target: Carried, namespace: str, secrets: tuple[JsonObject, ...]) -> JsonObject:
    parts: list[JsonValue] = []
    for each in secrets:
        metadata = each["metadata"]
        if isinstance(metadata, dict):
            parts.append({"name": metadata["name"], "namespace": namespace})
    return {"name": target.name, "version": target.version, "digest": target.digest.text, "secrets": parts}
