"""The static values of a Module that are not in its package, but in an annotation of the Module. Pure.

``values.yaml`` of a modules directory has a section for each module (spec hook-protocol §5.5), below the module's own
``values.yaml``. The section belongs neither to a package nor to a user's settings: no schema of settings applies to it, and no
hook finds it in ``CONFIG_VALUES_PATH``. So it is an annotation of the Module. The annotation also shows that the Module's package
is in a modules directory.
"""

from typing import Final

from wharfinger.formats.json.value import JsonObject, ShapeError, as_object, decode_json, find, type_name

STATIC_VALUES: Final = "wharfinger.dev/static-values"
"""An annotation of a Module from a modules directory: the values of that directory's ``values.yaml``, JSON."""
MAX_STATIC: Final = 64 * 1024
"""The limit of one Module's static values in bytes; all its annotations together may have four times as many."""


def read_static_values(obj: JsonObject) -> JsonObject | None:
    """Return the static values that a Module has besides its package; None if the Module is not from a modules directory. Raises
    FormatError.
    """
    text = find(obj, "metadata", "annotations", STATIC_VALUES)
    if text is None:
        return None
    what = f"metadata.annotations: {STATIC_VALUES}"
    if not isinstance(text, str):
        raise ShapeError(f"{what}: expected JSON, found {type_name(text)}")
    return as_object(decode_json(text, max_bytes=4 * MAX_STATIC, what=what), what)
