"""The inputs for Helm, kustomize and plain folders, from a source of an Argo CD Application.

For Helm, later values override earlier ones: first ``valueFiles`` in order, then ``valuesObject`` or, without it, ``values``,
then ``parameters``, and last ``fileParameters``. Argo CD passes them to ``helm template`` in this order. For a plain folder,
``directory.include`` and ``exclude`` are globs in which ``*`` also matches ``/``.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.glob import text_glob
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find, find_list, find_object, find_str
from wharfinger.formats.merge_patch import overlaid
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.offline.building.values import with_value
from wharfinger.packages.definition.manifest_folder import KUSTOMIZATION_FILES

MAX_FILE: Final = 4 * 1024 * 1024
_TOOLS: Final = ("helm", "kustomize", "directory", "plugin")
_IMAGE: Final = re.compile(r"(?:(?P<name>[^=]+)=)?(?P<image>[^@]+?)(?::(?P<tag>[^:/@]+))?(?:@(?P<digest>.+))?\Z")


class ArgoError(FormatError):
    """A field of a source is wrong or not supported."""


def tool_of(source: JsonObject, folder: Path) -> str:
    """Return ``helm``, ``kustomize`` or ``directory``: the tool that the source names, else the tool that fits the folder.

    Blocking. Raises ArgoError for plugins, and if the source names several tools.
    """
    named = [tool for tool in _TOOLS if find(source, tool) is not None]
    if "plugin" in named:
        raise ArgoError("plugin: plugins are not run; render the source beforehand")
    if len(named) > 1:
        raise ArgoError(f"names several tools: {', '.join(named)}; name only one of them")
    if named:
        return named[0]
    if (folder / "Chart.yaml").is_file():
        return "helm"
    return "kustomize" if any((folder / name).is_file() for name in KUSTOMIZATION_FILES) else "directory"


def helm_values(helm: JsonObject, read: Callable[[str], str | None]) -> JsonObject:
    """Return the values of a release; ``read`` returns the text of a file that the source names, None if it does not exist.

    Raises FormatError.
    """
    values: JsonObject = {}
    for number, name in enumerate(find_list(helm, "valueFiles")):
        if not isinstance(name, str):
            raise ArgoError(f"valueFiles[{number}]: expected a path")
        text = read(name)
        if text is not None:
            values = overlaid(values, as_object(read_yaml(text, what=name) or {}, name))
        elif find(helm, "ignoreMissingValueFiles") is not True:
            raise ArgoError(f"valueFiles[{number}]: there is no file {name!r}; correct it, or add the file")
    written = find_object(helm, "valuesObject")
    if not written and (text := find_str(helm, "values")):
        written = as_object(read_yaml(text, what="values") or {}, "values")
    values = overlaid(values, written)
    for number, each in enumerate(find_list(helm, "parameters")):
        text = find_str(each, "value")
        forced = find(each, "forceString") is True
        if not forced and text.startswith("{"):
            raise ArgoError(f"parameters[{number}]: lists in parameters are not supported; use valuesObject")
        values = with_value(values, find_str(each, "name"), f'"{text}"' if forced else text)
    for number, each in enumerate(find_list(helm, "fileParameters")):
        content = read(find_str(each, "path"))
        if content is None:
            raise ArgoError(f"fileParameters[{number}]: there is no file {find_str(each, 'path')!r}")
        values = with_value(values, find_str(each, "name"), f'"{content}"')
    return values


def kustomize_fields(asked: JsonObject, own: JsonObject) -> JsonObject:
    """Return the fields of an overlay on a folder, from the field ``kustomize`` of a source.

    ``own`` is the ``kustomization.yaml`` of the folder. Argo CD edits that file instead. Both ways have the same result, except
    if the file and the source set the same prefix, suffix or image; then ArgoError is raised.
    """
    made: JsonObject = {}
    for key in ("namePrefix", "nameSuffix"):
        if text := find_str(asked, key):
            if find_str(own, key):
                raise ArgoError(f"kustomize.{key}: the folder's kustomization sets it, too; set it in one place")
            made[key] = text
    if namespace := find_str(asked, "namespace"):
        made["namespace"] = namespace
    if images := find_list(asked, "images"):
        named = {find_str(each, "name") for each in find_list(own, "images")}
        made["images"] = [_image(each, named) for each in images]
    for key in ("replicas", "components", "patches"):
        if listed := find_list(asked, key):
            made[key] = listed
    if labels := find_object(asked, "commonLabels"):
        templates = find(asked, "labelIncludeTemplates") is True
        selectors = find(asked, "labelWithoutSelector") is not True
        made["labels"] = [{"pairs": labels, "includeSelectors": selectors, "includeTemplates": templates or selectors}]
    if annotations := find_object(asked, "commonAnnotations"):
        made["commonAnnotations"] = annotations
    return made


def folder_filter(directory: JsonObject) -> Callable[[str], bool]:
    """Return a function that returns whether the source includes a file. The argument of the function is the file's path,
    relative to the folder. Raises ArgoError.
    """
    if find(directory, "jsonnet"):
        raise ArgoError("directory.jsonnet: Jsonnet is not run; render the source beforehand")
    texts = (find_str(directory, key) for key in ("include", "exclude"))
    include, exclude = (text_glob(text) if text else None for text in texts)
    recurse = find(directory, "recurse") is True

    def takes(path: str) -> bool:
        if not recurse and "/" in path:
            return False
        if exclude is not None and exclude.match(path):
            return False
        return include is None or include.match(path) is not None

    return takes


def read_text(root: Path, base: Path, name: str, references: Mapping[str, Path]) -> str | None:
    """Return the text of a file that a source names; None if it does not exist. Blocking. Raises ArgoError.

    ``$name/path`` lies in the source whose ``ref`` is ``name``, ``/path`` lies in ``root``, and any other path lies in ``base``.
    """
    if "://" in name:
        raise ArgoError(f"{name}: files are not fetched over the network; add the file to a source")
    top, path = root, base / name
    if name.startswith("$"):
        reference, _, rest = name[1:].partition("/")
        if reference not in references:
            raise ArgoError(f"{name}: no source has the ref {reference!r}; correct it, or add the source")
        top = references[reference]
        path = top / rest
    elif name.startswith("/"):
        path = root / name.lstrip("/")
    real = path.resolve()
    if not real.is_relative_to(top.resolve()):
        raise ArgoError(f"{name}: leads out of its source; correct it")
    if not real.is_file():
        return None
    with real.open("rb") as file:
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise ArgoError(f"{name}: more than {MAX_FILE} bytes")
    return data.decode(errors="replace")


def _image(value: JsonValue, own: set[str]) -> JsonObject:
    """Return an image ``old=new:tag`` as an entry of a kustomization's ``images``. Raises ArgoError."""
    match = _IMAGE.match(value) if isinstance(value, str) else None
    if match is None:
        raise ArgoError(f"kustomize.images: {value!r} is not a valid image; write NAME=IMAGE:TAG or IMAGE:TAG")
    name = match["name"] or match["image"]
    if name in own:
        raise ArgoError(f"kustomize.images: the folder's kustomization sets {name}, too; set it in one place")
    image: JsonObject = {"name": name}
    if match["name"]:
        image["newName"] = match["image"]
    if match["tag"]:
        image["newTag"] = match["tag"]
    if match["digest"]:
        image["digest"] = match["digest"]
    return image
