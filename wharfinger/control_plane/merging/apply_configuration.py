"""The merge of an apply configuration into an object by a mutating admission policy.

The merge does not record field managers, and a configuration must not contain atomic lists, maps or structs.

Source: kube-apiserver, ``apiserver/pkg/admission/plugin/policy/mutating/patch/smd.go``.
"""

from collections.abc import Iterator
from typing import Final

from wharfinger.control_plane.kinds.type_shapes import ListTypes, Relation
from wharfinger.control_plane.merging.server_side_apply import merged
from wharfinger.control_plane.merging.typed_check import all_type_problems
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue

_ATOMIC: Final = frozenset({Relation.ATOMIC_LIST, Relation.ATOMIC_MAP})


class ConfigurationRefusedError(FormatError):
    """The configuration does not match the types of the object, or would replace an atomic value."""


def configured(live: JsonObject, configuration: JsonObject, lists: ListTypes) -> JsonObject:
    """Return the object with the configuration merged into it. Raises ConfigurationRefusedError."""
    if wrong := all_type_problems(configuration, lists):
        raise ConfigurationRefusedError(f"failed to convert patch object to typed object: {wrong}")
    if whole := list(_atomics(configuration, lists, "")):
        places = ", ".join(whole)
        raise ConfigurationRefusedError(
            f"invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {places}"
        )
    return merged(live, configuration, lists)


def _atomics(value: JsonValue, lists: ListTypes, path: str) -> Iterator[str]:
    """Yield the paths of atomic lists, maps and structs in a configuration."""
    lists = lists.of(value)
    if not isinstance(value, dict | list):
        return
    if lists.relation in _ATOMIC:
        yield path
    if isinstance(value, dict):
        for name, member in value.items():
            if name in lists.fields:
                yield from _atomics(member, lists.field(name), f"{path}.{name}")
    else:
        for index, item in enumerate(value):
            yield from _atomics(item, lists.item, f"{path}[{index}]")
