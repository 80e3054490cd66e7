"""An upper bound of the cost of checking a value, computed before the value is checked.

A schema comes from a package and a value from its user, and all packages wait during the check. For each part of the value,
jsonschema-rs needs a time that is linear in the schema. So the whole time is a product: even a short list of alternatives
under ``additionalProperties`` is checked for every member of a large map. The factors are the :func:`width` of the schema, which
is the highest cost that one part of a value can have, and the :func:`size` of the value, which is the number of its parts.

The costs of several schemas are added only if they apply to the same part of a value (allOf, anyOf, oneOf, not,
patternProperties). The schema of a property applies only to the value of this property. So a custom resource's schema with many
properties still has a small width.

The unit of cost is the time for one plain keyword, about 6 ns. The weights of the other keywords were measured in this unit.
"""

from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.schemas.formats import OWN_FORMATS

MAX_COST: Final = 50_000_000
"""The highest product of a schema's width and a value's size for which the value is checked. Such a check takes about 0.3 s,
and never took more than half a second in measurements.
"""

_TEXT_PER_PART: Final = 16
"""The number of characters that count as one part of a value, because patterns and formats read the whole text."""
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_BRANCHES: Final = ("not", "if", "then", "else")
_PATTERN: Final = 8
_FORMAT: Final = 12
_OWN_FORMATS: Final = {"cidr": 600}
_OWN_FORMAT: Final = 150
_MULTIPLE_OF: Final = 120
_REQUIRED: Final = 3
_PLAIN: Final = 20
_FLOAT: Final = 260
_CONTAINER: Final = 60
_UNIQUE: Final = 20


def width(schema: JsonValue) -> int:
    """Return the highest cost that the check of one part of a value can have. ``schema`` is a JSON Schema that the module
    ``conversion`` has made.
    """
    return max(_widths(schema))


def size(value: JsonValue, most: int) -> int:
    """Return the number of parts of the value. A long text counts as several parts. Counting ends above ``most``."""
    count = 0
    pending: list[JsonValue] = [value]
    while pending and count <= most:
        item = pending.pop()
        count += 1
        if isinstance(item, str):
            count += len(item) // _TEXT_PER_PART
        elif isinstance(item, list):
            pending += item
        elif isinstance(item, dict):
            count += sum(map(len, item)) // _TEXT_PER_PART
            pending += item.values()
    # Every value that was not visited counts as at least one part.
    return count + len(pending)


def _widths(schema: JsonValue) -> tuple[int, int]:
    """Return two costs of a schema: the cost for the value itself, and the highest cost for one part inside the value."""
    if not isinstance(schema, dict):
        return 1, 0
    here, inside = 1 + _own_weight(schema), _inside(schema)
    lists = (schema.get(keyword) for keyword in _LISTS)
    branches = [branch for found in lists if isinstance(found, list) for branch in found]
    branches += [schema[keyword] for keyword in _BRANCHES if keyword in schema]
    for branch in branches:
        branch_here, branch_inside = _widths(branch)
        here += branch_here
        inside += branch_inside
    if schema.get("uniqueItems") is True:
        inside += _UNIQUE  # every part inside is visited once more, to be compared
    return here, inside


def _inside(schema: JsonObject) -> int:
    declared, by_pattern = schema.get("properties"), schema.get("patternProperties")
    ones = list(declared.values()) if isinstance(declared, dict) else []
    ones += [schema[keyword] for keyword in ("additionalProperties", "items") if keyword in schema]
    prefix = schema.get("prefixItems")
    ones += prefix if isinstance(prefix, list) else []
    inside = max((max(_widths(one)) for one in ones), default=0)
    if isinstance(by_pattern, dict):
        # Each name is matched against each pattern, and again to find additional properties.
        inside += sum(2 * _PATTERN + max(_widths(one)) for one in by_pattern.values())
    return inside


def _own_weight(schema: JsonObject) -> int:
    weight = len(schema)
    declared, required = schema.get("properties"), schema.get("required")
    weight += len(declared) if isinstance(declared, dict) else 0
    weight += _REQUIRED * len(required) if isinstance(required, list) else 0
    for keyword in ("enum", "const"):
        if keyword in schema:
            weight += _compared(schema[keyword])
    if "pattern" in schema:
        weight += _PATTERN
    if "multipleOf" in schema:
        weight += _MULTIPLE_OF
    named = schema.get("format")
    if isinstance(named, str):
        weight += _OWN_FORMATS.get(named, _OWN_FORMAT) if named in OWN_FORMATS else _FORMAT
    return weight


def _compared(value: JsonValue) -> int:
    """Return the cost of finding a value in an enum.

    If the enum has only strings, the value is looked up. Otherwise, the value is compared with each value of the enum.
    """
    values = value if isinstance(value, list) else [value]
    if all(isinstance(item, str) for item in values):
        return 1
    cost = 0
    pending: list[JsonValue] = [*values]
    while pending:
        item = pending.pop()
        if isinstance(item, list | dict):
            cost += _CONTAINER
            pending += item if isinstance(item, list) else item.values()
        else:
            cost += _FLOAT if isinstance(item, float) else _PLAIN
    return cost
