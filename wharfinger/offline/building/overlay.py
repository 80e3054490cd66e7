"""The ``kustomization.yaml`` that Flux generates for a Kustomization: it applies the changes of the spec to the folder.

If the folder has no ``kustomization.yaml``, Flux lists all manifests below it; a subfolder that has one is listed as a whole.
"""

from pathlib import Path, PurePosixPath
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find, find_list, find_object, find_str
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.offline.discovery.walk import list_tree
from wharfinger.packages.definition.manifest_folder import KUSTOMIZATION_FILES

_LISTED: Final = (".yaml", ".yml")
"""The endings of the names of the files that Flux adds to the ``kustomization.yaml`` that it generates. Flux leaves out files
in JSON.
"""


def has_kustomization(folder: Path) -> bool:
    """Return whether a folder has a ``kustomization.yaml``. Blocking."""
    return any((folder / name).is_file() for name in KUSTOMIZATION_FILES)


def resources_of(root: Path, path: str) -> list[str]:
    """Return the resources of the folder ``path`` as Flux would list them, relative to that folder. Blocking. Raises TreeError.

    If the folder has a ``kustomization.yaml``, the only resource is the folder itself. Otherwise the resources are the files that
    end in ``.yaml`` or ``.yml``, and the subfolders that have a ``kustomization.yaml``, except those that the source ignores.
    """
    if has_kustomization(root / path):
        return ["."]
    listing = list_tree(root, path)
    built = [each for each in listing.kustomizations if not _inside(each, listing.kustomizations)]
    files = [each for each in listing.files if not _inside(each, listing.kustomizations) and each.endswith(_LISTED)]
    return sorted(PurePosixPath(each).relative_to(path).as_posix() for each in (*files, *built))


def overlay_of(spec: JsonObject) -> JsonObject:
    """Return the fields of a kustomization that ``spec`` of a Flux Kustomization sets; empty if it sets no fields.

    The paths in ``components`` stay relative to the folder of the Kustomization.
    """
    made: JsonObject = {}
    if namespace := find_str(spec, "targetNamespace"):
        made["namespace"] = namespace
    for key in ("namePrefix", "nameSuffix"):
        if text := find_str(spec, key):
            made[key] = text
    for key in ("patches", "images", "components"):
        if listed := find_list(spec, key):
            made[key] = listed
    metadata = find_object(spec, "commonMetadata")
    if labels := find_object(metadata, "labels"):
        made["labels"] = [{"pairs": labels, "includeSelectors": False, "includeTemplates": False}]
    if annotations := find_object(metadata, "annotations"):
        made["commonAnnotations"] = annotations
    patches = [*_old_patches(spec, "patchesStrategicMerge"), *_old_patches(spec, "patchesJson6902")]
    if patches:
        made["patches"] = [*find_list(made, "patches"), *patches]
    return made


def _old_patches(spec: JsonObject, key: str) -> list[JsonValue]:
    """Return the patches in a field of Flux's older versions, in the form of ``patches``."""
    made: list[JsonValue] = []
    for each in find_list(spec, key):
        if key == "patchesStrategicMerge":
            made.append({"patch": write_yaml(each)})
        else:
            entry = as_object(each, key)
            made.append({"target": find_object(entry, "target"), "patch": write_yaml(find(entry, "patch"))})
    return made


def _inside(path: str, folders: tuple[str, ...]) -> bool:
    return any(path.startswith(f"{each}/") for each in folders if each != ".")
