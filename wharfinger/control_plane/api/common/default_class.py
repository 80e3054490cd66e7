"""The default IngressClass and the default StorageClass: an annotation of a class marks it as the default one."""

from collections.abc import Iterable, Sequence
from typing import Final

from wharfinger.control_plane.objects.amounts import text
from wharfinger.formats.json.value import JsonObject, find

INGRESS_MARKS: Final = ("ingressclass.kubernetes.io/is-default-class",)
"""The annotations that mark the default IngressClass."""
STORAGE_MARKS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
"""The annotations that mark the default StorageClass."""


def is_default_class(obj: JsonObject, marks: Sequence[str]) -> bool:
    """Return whether one of the annotations marks a class as the default one."""
    return any(find(obj, "metadata", "annotations", mark) == "true" for mark in marks)


def default_class(classes: Iterable[JsonObject], marks: Sequence[str]) -> str:
    """Return the name of the default class, or "" if there is none.

    If several classes are the default, the newest one counts; if several are equally new, the first by name.
    """
    found = sorted(
        (each for each in classes if is_default_class(each, marks)), key=lambda each: text(each, "metadata", "name")
    )
    newest = max(found, key=lambda each: text(each, "metadata", "creationTimestamp"), default=None)
    return text(newest, "metadata", "name")
