"""The static values of a Module that are not in its package, but in an annotation of the Module. Pure.

The file ``values.yaml`` of a modules directory has a section for each module (spec hook-protocol §5.5); the module's own
``values.yaml`` overrides the section. The section belongs neither to the package nor to the settings: the settings' schema
does not apply to it, and hooks do not find it in ``CONFIG_VALUES_PATH``. So it is stored in an annotation of the Module. The
annotation also shows that the Module's package is in a modules directory.
"""

from typing import Final

from wharfinger.formats.json.value import JsonObject, ShapeError, as_object, decode_json, find, type_name

STATIC_VALUES: Final = "wharfinger.dev/static-values"
"""The annotation of a Module that comes from a folder of ``--modules-dir``. Its value is the Module's section of that folder's
``values.yaml``, as JSON.
"""
MAX_STATIC: Final = 64 * 1024
"""The limit on the size of one Module's static values in bytes: a quarter of the API server's limit on all annotations of an
object.
"""


def read_static_values(obj: JsonObject) -> JsonObject | None:
    """Return the static values in a Module's annotation; None if the Module is not from a modules directory. Raises
    FormatError.
    """
    text = find(obj, "metadata", "annotations", STATIC_VALUES)
    if text is None:
        return None
    what = f"metadata.annotations: {STATIC_VALUES}"
    if not isinstance(text, str):
        raise ShapeError(f"{what}: expected JSON, found {type_name(text)}")
    return as_object(decode_json(text, max_bytes=4 * MAX_STATIC, what=what), what)
