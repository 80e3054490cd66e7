"""Patches for the rendered objects of a package, in the form of ``spec.patches`` of an Application or Module::

    - target: {kind: Deployment, name: web}        # a selector of kustomize; kind and name are regular expressions
      patch: |-                                    # JSON 6902, or a strategic merge patch
        - {op: replace, path: /spec/replicas, value: 3}

A strategic merge patch without a target changes the object that it names. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, as_object, checksum, find_str, type_name
from wharfinger.formats.yaml.reader import YamlLimits, read_yaml_all
from wharfinger.packages.files.strict_fields import at, closed_object, text

FIELD: Final = "spec.patches"
MAX_PATCHES: Final = 100
MAX_COPIES: Final = 20
"""The largest number of ``copy`` operations in all patches, because each of them may double an object."""
MAX_PATCH_BYTES: Final = 64 * 1024
MAX_SELECTOR: Final = 1_000
SELECTORS: Final = ("group", "version", "kind", "name", "namespace", "labelSelector", "annotationSelector")
_LIMITS: Final = YamlLimits(MAX_PATCH_BYTES)
_OPERATIONS: Final = frozenset({"add", "remove", "replace", "move", "copy", "test"})


@dataclass(frozen=True, slots=True)
class Patch:
    """One patch: its text and its target. The target is a tuple of selectors, each a pair of a name and a text. It is empty if
    the text of the patch names the object to patch.
    """

    patch: str
    target: tuple[tuple[str, str], ...] = ()

    @property
    def document(self) -> JsonObject:
        """The patch as an entry of ``spec.patches``; the field ``patches`` of a kustomization has the same form."""
        written: JsonObject = {"patch": self.patch}
        if self.target:
            written["target"] = dict(self.target)
        return written

    def __str__(self) -> str:
        """Return the target as a text such as ``kind=Deployment, name=web``."""
        return ", ".join(f"{name}={value}" for name, value in self.target)


def patches_checksum(patches: Sequence[Patch]) -> str:
    """Return a checksum of patches, which depends on their order; "" without patches."""
    return checksum([each.document for each in patches]) if patches else ""


def patches_document(patches: Sequence[Patch]) -> list[JsonValue]:
    """Return patches in the form that `read_patches` reads."""
    return [each.document for each in patches]


def read_patches(value: JsonValue, where: str = FIELD) -> tuple[Patch, ...]:
    """Read ``spec.patches``; null and an empty list give (). Raises ShapeError naming the field and the expected value."""
    entries = [] if value is None else value
    if not isinstance(entries, list):
        raise ShapeError(f"{where}: expected a list, found {type_name(entries)}")
    if len(entries) > MAX_PATCHES:
        raise ShapeError(f"{where}: expected at most {MAX_PATCHES} patches, found {len(entries)}; merge some of them")
    read = [_read_patch(entry, at(where, index)) for index, entry in enumerate(entries)]
    if (copies := sum(each for _, each in read)) > MAX_COPIES:
        raise ShapeError(
            f"{where}: expected at most {MAX_COPIES} copy operations, found {copies}; write values with add instead"
        )
    return tuple(patch for patch, _ in read)


def _read_patch(value: JsonValue, where: str) -> tuple[Patch, int]:
    """Return a patch, and the number of its copy operations."""
    entry = closed_object(value, where, ("patch", "target"))
    said = entry.get("patch")
    if not isinstance(said, str) or not said.strip():
        raise ShapeError(f"{at(where, 'patch')}: expected the text of a patch, found {type_name(said)}")
    selectors = closed_object(entry.get("target"), at(where, "target"), SELECTORS)
    found = tuple((name, text(selectors, name, at(where, "target"))) for name in SELECTORS)
    for name, selector in found:
        if len(selector) > MAX_SELECTOR:
            raise ShapeError(f"{at(at(where, 'target'), name)}: expected at most {MAX_SELECTOR} characters")
    target = tuple(pair for pair in found if pair[1])
    return Patch(said, target), _check_body(said, target, at(where, "patch"))


def _check_body(said: str, target: tuple[tuple[str, str], ...], where: str) -> int:
    """Check that a text is one JSON 6902 patch with a target, or one strategic merge patch; return the number of its copy
    operations. Raises ShapeError.
    """
    try:
        documents = read_yaml_all(said.encode(), what=where, limits=_LIMITS)
    except FormatError as error:
        raise ShapeError(str(error)) from error
    if len(documents) != 1:
        raise ShapeError(f"{where}: expected one document, found {len(documents)}; write each into a patch of its own")
    body = documents[0]
    if isinstance(body, list):
        if not target:
            raise ShapeError(f"{where}: a JSON 6902 patch does not name its object; add a target beside it")
        for index, each in enumerate(body):
            if not isinstance(each, dict) or each.get("op") not in _OPERATIONS:
                raise ShapeError(f"{at(where, index)}.op: expected one of {', '.join(sorted(_OPERATIONS))}; correct it")
        return sum(find_str(as_object(each, where), "op") == "copy" for each in body)
    if not isinstance(body, dict):
        raise ShapeError(f"{where}: expected an object or a list of operations, found {type_name(body)}")
    if not target and not (find_str(body, "kind") and find_str(body, "metadata", "name")):
        raise ShapeError(
            f"{where}: the patch names no object; add apiVersion, kind and metadata.name, or a target beside it"
        )
    return 0
