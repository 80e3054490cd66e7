"""The validation of the sources of a pod's volumes, by type: each function takes the source and its path."""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from wharfinger.control_plane.api.core.pod_specs.files import (
    descending_errors,
    key_to_path_errors,
    missing,
    mode_errors,
    no_backstep_errors,
)
from wharfinger.control_plane.objects.amounts import number, optional_number, text
from wharfinger.control_plane.objects.lenient_fields import flag, part, parts, text_map, texts
from wharfinger.control_plane.objects.names import between, dns_label_problems, subdomain_problems
from wharfinger.control_plane.wire.field_errors import each, forbidden, invalid, not_supported, required, too_long
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject

Check: TypeAlias = Callable[[JsonObject, str], list[FieldError]]

HOST_PATH_TYPES: Final = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"
)  # fmt: skip
_CACHING: Final = ("None", "ReadOnly", "ReadWrite")
_DISKS: Final = ("Dedicated", "Managed", "Shared")
_MANAGED_DISK: Final = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB: Final = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_INITIATORS: Final = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9-.]+)(:[^,;*&$|\s]+)$"),
    "eui": re.compile(r"^eui.[A-Za-z0-9]{16}$"),
    "naa": re.compile(r"^naa.[A-Za-z0-9]{32}$"),
}
_HOST_PORTS: Final = "must be a host:port pair or multiple pairs separated by commas"


def _needs(*names: str) -> Check:
    return lambda source, path: missing(source, path, *names)


def _host_path(source: JsonObject, path: str) -> list[FieldError]:
    where = text(source, "path")
    if not where:
        return [required(f"{path}.path")]
    errors = no_backstep_errors(where, f"{path}.path")
    kind = source.get("type")
    if isinstance(kind, str) and kind not in HOST_PATH_TYPES:
        errors.append(not_supported(f"{path}.type", kind, HOST_PATH_TYPES))
    return errors


def _git_repo(source: JsonObject, path: str) -> list[FieldError]:
    errors = missing(source, path, "repository")
    return errors + descending_errors(text(source, "directory"), f"{path}.directory")


def _partitioned(name: str) -> Check:
    def check(source: JsonObject, path: str) -> list[FieldError]:
        errors = missing(source, path, name)
        partition = number(source, "partition")
        return errors if 0 <= partition <= 255 else [*errors, invalid(f"{path}.partition", partition, between(1, 255))]

    return check


def _secret(source: JsonObject, path: str) -> list[FieldError]:
    return missing(source, path, "secretName") + _keyed(source, path)


def _config_map(source: JsonObject, path: str) -> list[FieldError]:
    return missing(source, path, "name") + _keyed(source, path)


def _keyed(source: JsonObject, path: str) -> list[FieldError]:
    errors = mode_errors(source, "defaultMode", path)
    for index, item in enumerate(parts(source, "items")):
        errors += key_to_path_errors(item, f"{path}.items[{index}]")
    return errors


def _nfs(source: JsonObject, path: str) -> list[FieldError]:
    errors, where = missing(source, path, "server", "path"), text(source, "path")
    return errors if where.startswith("/") else [*errors, invalid(f"{path}.path", where, "must be an absolute path")]


def _iscsi(source: JsonObject, path: str) -> list[FieldError]:
    errors = missing(source, path, "targetPortal")
    name = text(source, "iqn")
    errors += _initiator_errors(name, f"{path}.iqn") if name else [required(f"{path}.iqn")]
    if not 0 <= number(source, "lun") <= 255:
        errors.append(invalid(f"{path}.lun", number(source, "lun"), between(0, 255)))
    if (flag(source, "chapAuthDiscovery") or flag(source, "chapAuthSession")) and part(source, "secretRef") is None:
        errors.append(required(f"{path}.secretRef"))
    initiator = source.get("initiatorName")
    return errors + (_initiator_errors(initiator, f"{path}.initiatorname") if isinstance(initiator, str) else [])


def _initiator_errors(name: str, path: str) -> list[FieldError]:
    pattern = _INITIATORS.get(name[:3])
    if pattern is None:
        return [invalid(path, name, "must be valid format starting with iqn, eui, or naa")]
    return [] if pattern.search(name) else [invalid(path, name, "must be valid format")]


def _flocker(source: JsonObject, path: str) -> list[FieldError]:
    name, uid = text(source, "datasetName"), text(source, "datasetUUID")
    errors: list[FieldError] = []
    if not name and not uid:
        errors.append(required(path, "one of datasetName and datasetUUID is required"))
    if name and uid:
        errors.append(invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"))
    return [*errors, invalid(f"{path}.datasetName", name, "must not contain '/'")] if "/" in name else errors


def _rbd(source: JsonObject, path: str) -> list[FieldError]:
    return _ceph(source, path) + missing(source, path, "image")


def _ceph(source: JsonObject, path: str) -> list[FieldError]:
    return [] if texts(source, "monitors") else [required(f"{path}.monitors")]


def _cinder(source: JsonObject, path: str) -> list[FieldError]:
    return missing(source, path, "volumeID") + _secret_name(source, path)


def _secret_name(source: JsonObject, path: str) -> list[FieldError]:
    reference = part(source, "secretRef")
    return [] if reference is None else missing(reference, f"{path}.secretRef", "name")


def _quobyte(source: JsonObject, path: str) -> list[FieldError]:
    registry, errors = text(source, "registry"), list[FieldError]()
    if not registry:
        errors.append(required(f"{path}.registry", _HOST_PORTS))
    elif len(text(source, "tenant").encode()) >= 65:
        errors.append(required(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters"))
    else:
        wrong = [pair for pair in registry.split(",") if not re.fullmatch(r"(\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*", pair)]
        errors += [invalid(f"{path}.registry", registry, _HOST_PORTS)] * len(wrong)
    return errors + missing(source, path, "volume")


def _fc(source: JsonObject, path: str) -> list[FieldError]:
    names, identifiers, lun = texts(source, "targetWWNs"), texts(source, "wwids"), optional_number(source, "lun")
    errors: list[FieldError] = []
    if not names and not identifiers:
        errors.append(required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both"))
    if names and identifiers:
        why = "targetWWNs and wwids can not be specified simultaneously"
        errors.append(invalid(f"{path}.targetWWNs", list(names), why))
    if names and lun is None:
        errors.append(required(f"{path}.lun", "lun is required if targetWWNs is specified"))
    elif names and lun is not None and not 0 <= lun <= 255:
        errors.append(invalid(f"{path}.lun", lun, between(0, 255)))
    return errors


def _flex_volume(source: JsonObject, path: str) -> list[FieldError]:
    errors = missing(source, path, "driver")
    for key in sorted(text_map(source, "options")):
        space = "." + key.partition("/")[0].lower()
        if space.endswith((".kubernetes.io", ".k8s.io")):
            why = "kubernetes.io and k8s.io namespaces are reserved"
            errors.append(invalid(f"{path}.options[{key}]", key, why))
    return errors


def _azure_disk(source: JsonObject, path: str) -> list[FieldError]:
    errors = missing(source, path, "diskName", "diskURI")
    caching, kind, uri = source.get("cachingMode"), source.get("kind"), text(source, "diskURI")
    if isinstance(caching, str) and caching not in _CACHING:
        errors.append(not_supported(f"{path}.cachingMode", caching, _CACHING))
    if isinstance(kind, str) and kind not in _DISKS:
        errors.append(not_supported(f"{path}.kind", kind, _DISKS))
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        errors.append(not_supported(f"{path}.diskURI", uri, [_MANAGED_DISK]))
    if isinstance(kind, str) and kind != "Managed" and not uri.startswith("https://"):
        errors.append(not_supported(f"{path}.diskURI", uri, [_BLOB]))
    return errors


def _storage_os(source: JsonObject, path: str) -> list[FieldError]:
    name, namespace = text(source, "volumeName"), text(source, "volumeNamespace")
    where = f"{path}.volumeName"
    errors = each(where, name, dns_label_problems(name)) if name else [required(where)]
    if namespace:
        errors += each(f"{path}.volumeNamespace", namespace, dns_label_problems(namespace))
    return errors + _secret_name(source, path)


def driver_errors(driver: str, path: str) -> list[FieldError]:
    """Return the errors of the name of a CSI driver."""
    if not driver:
        return [required(path)]
    errors = [too_long(path, 63)] if len(driver.encode()) > 63 else []
    return errors + each(path, driver, subdomain_problems(driver.lower()))


def _csi(source: JsonObject, path: str) -> list[FieldError]:
    errors = driver_errors(text(source, "driver"), f"{path}.driver")
    reference = part(source, "nodePublishSecretRef")
    if reference is None:
        return errors
    name = text(reference, "name")
    if not name:
        return [*errors, required(f"{path}.nodePublishSecretRef.name")]
    return errors + each(f"{path}.name", name, subdomain_problems(name))


def _empty_dir(source: JsonObject, path: str) -> list[FieldError]:
    if str(source.get("sizeLimit", "")).startswith("-"):
        return [forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


SOURCES: Final[Mapping[str, Check]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": _partitioned("pdName"),
    "awsElasticBlockStore": _partitioned("volumeID"),
    "secret": _secret,
    "nfs": _nfs,
    "iscsi": _iscsi,
    "glusterfs": _needs("endpoints", "path"),
    "flocker": _flocker,
    "persistentVolumeClaim": _needs("claimName"),
    "rbd": _rbd,
    "cinder": _cinder,
    "cephfs": _ceph,
    "quobyte": _quobyte,
    "fc": _fc,
    "flexVolume": _flex_volume,
    "configMap": _config_map,
    "azureFile": _needs("secretName", "shareName"),
    "vsphereVolume": _needs("volumePath"),
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "azureDisk": _azure_disk,
    "storageos": _storage_os,
    "scaleIO": _needs("gateway", "system", "volumeName"),
    "csi": _csi,
}
"""The checks of volume sources that need only the source itself. Each key is the field of a volume that contains such a source.
"""
