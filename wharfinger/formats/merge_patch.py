"""JSON merge patch (RFC 7396): the meaning of ``application/merge-patch+json``.

A patch is a document of the target's shape: an object in it is merged member by member, ``null`` removes a member, and
everything else, lists included, replaces what was there. So a patch cannot merge lists, and cannot set a member to ``null``.
Therefore Kubernetes has further formats of patches.

:func:`overlaid` does the same for layers of settings, except that a null is a value like any other and removes nothing.
"""

from wharfinger.formats.json.value import MAX_DEPTH, JsonObject, JsonValue, ShapeError, canonical_json


def merge_patch(target: JsonValue, patch: JsonValue) -> JsonValue:
    """Return the target with the patch applied, as a new value; arguments are not changed, nor shared with the result.

    This follows RFC 7396 section 2 to the letter. If the patch is an object and the target is not, the patch is applied to an
    empty object. Nulls inside an object that is new to the target are dropped, too.
    """
    if not isinstance(patch, dict):
        return _copy(patch)
    merged: JsonObject = {}
    before: JsonObject = target if isinstance(target, dict) else {}
    for name, value in before.items():
        if name not in patch:
            merged[name] = _copy(value)
        elif patch[name] is not None:
            merged[name] = merge_patch(value, patch[name])
    for name, value in patch.items():
        if name not in before and value is not None:
            merged[name] = merge_patch(None, value)
    return merged


def diff_merge_patch(old: JsonObject, new: JsonObject) -> JsonObject:
    """Return the smallest merge patch from ``old`` to ``new``; {} if they are equal.

    A merge patch cannot express a null in ``new``, because a null in a merge patch removes the member.
    """
    patch: JsonObject = {name: None for name in old if new.get(name) is None and old[name] is not None}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = diff_merge_patch(before, value)
            if inner:
                patch[name] = inner
        elif value is not None and canonical_json(value) != canonical_json(before):
            patch[name] = _copy(value)
    return patch


def overlaid(below: JsonObject, above: JsonObject) -> JsonObject:
    """Merge ``above`` over ``below``: objects member by member; everything else, lists and nulls included, is replaced.

    The result shares parts with both; neither is changed. Raises ShapeError if both are nested beyond MAX_DEPTH.
    """
    return _overlaid(below, above, 0)


def _overlaid(below: JsonObject, above: JsonObject, depth: int) -> JsonObject:
    if depth > MAX_DEPTH:
        raise ShapeError(f"nested deeper than {MAX_DEPTH} levels")
    merged = dict(below)
    for name, value in above.items():
        under = merged.get(name)
        if isinstance(under, dict) and isinstance(value, dict):
            merged[name] = _overlaid(under, value, depth + 1)
        else:
            merged[name] = value
    return merged


def _copy(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {name: _copy(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value
