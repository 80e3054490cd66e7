"""The builder of JSON values from libyaml's events. It counts nodes and characters before it builds them.

The builder holds a stack of open lists and mappings and does not use the call stack: only ``max_depth`` limits the nesting. An
anchor remembers its finished value together with its weight (nodes, characters, height). For an alias, the builder first adds
that weight to the cost of the stream, and then copies the value. So nothing in the result is shared, and no alias bomb can grow.
An alias inside the value that its anchor names is refused, because that value would contain itself.

Mappings and merges work as in kubectl: ``<<`` overrides the members before it and is overridden by those after it; in a list of
sources the first wins. Keys are strings in the result, whatever type they have in the text.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.yaml.scalars import (
    CORE,
    Kind,
    Resolved,
    Scalar,
    ScalarError,
    as_key,
    as_value,
    is_text,
    resolve,
    shown_tag,
    tagged,
)
from yaml import AliasEvent, Event, MappingStartEvent, ScalarEvent, SequenceStartEvent


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """Limits of a stream: the levels of each document, and the nodes and characters of all documents together.

    Aliases count as if they were written out.
    """

    max_depth: int
    max_nodes: int
    max_characters: int


class Refused(Exception):  # noqa: N818 - the reader turns it into its YamlError, with the place
    """The document was refused. The fault is at the event that :meth:`TreeBuilder.feed` has got last."""


class Overflow(Refused):
    """The stream exceeds a limit. An alias counts as a full copy of its anchor's value."""


class _Mark(enum.Enum):
    NO_KEY = enum.auto()
    MERGE = enum.auto()


_NO_KEY: Final = _Mark.NO_KEY
_MERGE: Final = _Mark.MERGE
_Key: TypeAlias = "str | _Mark"


@dataclass(slots=True)
class _Anchor:
    """A YAML node with an anchor. ``nodes``, ``characters`` and ``height`` are the cost of each alias to the node."""

    value: JsonValue
    scalar: Resolved | None
    is_mapping: bool
    nodes: int
    characters: int
    height: int


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end event has not been read yet."""

    container: list[JsonValue] | JsonObject
    anchor: str | None
    nodes_before: int
    characters_before: int
    key: _Key = _NO_KEY
    height: int = 1
    written: set[str] | None = None
    """The keys of a mapping that are in the text. None until a merge adds other keys: until then, all keys are in the text."""


class TreeBuilder:
    """A builder for a whole stream: feed it the node events of a document, then take the document with ``finish``."""

    def __init__(
        self,
        limits: TreeLimits,
        *,
        old_booleans: bool = True,
        on_repeat: Callable[[str], None] | None = None,
        exact_floats: bool = False,
    ) -> None:
        self._limits = limits
        self._exact_floats = exact_floats
        self._old_booleans = old_booleans
        self._on_repeat = on_repeat
        self._stack: list[_Open] = []
        self._anchors: dict[str, _Anchor | _Open] = {}
        self._root: JsonValue = None
        self._nodes = 0
        self._characters = 0

    def finish(self) -> JsonValue:
        """Return the document that has ended; its cost counts against the limits of the stream."""
        root, self._root = self._root, None
        self._anchors.clear()
        return root

    def feed(self, event: Event) -> None:
        """Take the event of one node, or of the end of a collection. Raises Refused."""
        try:
            if isinstance(event, ScalarEvent):
                self._scalar(event.anchor, event.tag, event.value, plain=event.implicit[0])
            elif isinstance(event, MappingStartEvent):
                self._start({}, event.anchor, event.tag, "map")
            elif isinstance(event, SequenceStartEvent):
                self._start([], event.anchor, event.tag, "seq")
            elif isinstance(event, AliasEvent):
                self._alias(str(event.anchor))
            else:
                self._end()
        except ScalarError as error:
            raise Refused(str(error)) from error

    def _scalar(self, anchor: str | None, tag: str | None, text: str, *, plain: bool) -> None:
        self._charge(1, len(text))
        if tag is None and anchor is None and (not plain or is_text(text)):  # nearly all scalars
            if self._wants_key():
                self._put_key(_MERGE if plain and text == "<<" else text)
            else:
                self._put(text, is_mapping=False)
            return
        untagged = resolve(text, old_booleans=self._old_booleans) if plain else Resolved(Kind.STR, text)
        found = untagged if tag is None else tagged(tag, text)
        if anchor is not None:
            # The value may have no JSON form and still be a valid key, so it is converted when it is used.
            self._anchors[anchor] = _Anchor(None, found, is_mapping=False, nodes=1, characters=len(text), height=0)
        if self._wants_key():
            merges = text == "<<" and ((plain and tag in {None, "!"}) or tag == CORE + "merge")
            self._put_key(_MERGE if merges else as_key(found))
        else:
            self._put(self._as_value(found), is_mapping=False)

    def _start(self, container: list[JsonValue] | JsonObject, anchor: str | None, tag: str | None, name: str) -> None:
        if tag not in {None, "!", CORE + name}:
            raise Refused(f"tag {shown_tag(str(tag))!r} on a {'mapping' if name == 'map' else 'list'}; remove the tag")
        if self._wants_key():
            raise Refused("a key is a list or a mapping, but only a string can be a key")
        if len(self._stack) >= self._limits.max_depth:
            raise Refused(f"nested deeper than {self._limits.max_depth} levels")
        opened = _Open(container, anchor, self._nodes, self._characters)
        self._charge(1, 0)
        if anchor is not None:
            self._anchors[anchor] = opened
        self._stack.append(opened)

    def _end(self) -> None:
        closed = self._stack.pop()
        is_mapping = isinstance(closed.container, dict)
        # A node inside may have reused the name of the anchor; then the name belongs to that node.
        if closed.anchor is not None and self._anchors[closed.anchor] is closed:
            self._anchors[closed.anchor] = _Anchor(
                closed.container,
                None,
                is_mapping,
                self._nodes - closed.nodes_before,
                self._characters - closed.characters_before,
                closed.height,
            )
        if self._stack:
            self._stack[-1].height = max(self._stack[-1].height, closed.height + 1)
        self._put(closed.container, is_mapping=is_mapping)

    def _alias(self, name: str) -> None:
        anchor = self._anchors.get(name)
        if anchor is None:
            raise Refused(f"no anchor &{name} before *{name}")
        if isinstance(anchor, _Open):
            raise Refused(f"the alias *{name} is inside the value of the anchor &{name}")
        self._charge(anchor.nodes, anchor.characters)
        if self._wants_key():
            if anchor.scalar is None:
                raise Refused("a key is a list or a mapping, but only a string can be a key")
            self._put_key(as_key(anchor.scalar))
            return
        if len(self._stack) + anchor.height > self._limits.max_depth:
            raise Refused(f"nested deeper than {self._limits.max_depth} levels")
        if self._stack:
            self._stack[-1].height = max(self._stack[-1].height, anchor.height + 1)
        value = self._as_value(anchor.scalar) if anchor.scalar is not None else _copy(anchor.value)
        self._put(value, is_mapping=anchor.is_mapping, aliased=True)

    def _as_value(self, found: Resolved) -> Scalar:
        return found.value if self._exact_floats else as_value(found)

    def _wants_key(self) -> bool:
        if not self._stack:
            return False
        top = self._stack[-1]
        return top.key is _NO_KEY and isinstance(top.container, dict)

    def _put_key(self, key: _Key) -> None:
        top = self._stack[-1]
        if isinstance(key, str) and key in (top.container if top.written is None else top.written):
            if self._on_repeat is None:
                raise Refused(f"duplicate key {key!r}")
            self._on_repeat(key)
        top.key = key

    def _put(self, value: JsonValue, *, is_mapping: bool, aliased: bool = False) -> None:
        if not self._stack:
            self._root = value
            return
        top = self._stack[-1]
        container = top.container
        if isinstance(container, list):
            container.append(value)
            return
        key, top.key = top.key, _NO_KEY
        if isinstance(key, str):
            container[key] = value
            if top.written is not None:
                top.written.add(key)
            return
        if top.written is None:
            top.written = set(container)
        for source in _sources(value, is_mapping=is_mapping, aliased=aliased):
            self._charge(len(source), 0)  # nested merges copy the same keys repeatedly
            container.update(source)

    def _charge(self, nodes: int, characters: int) -> None:
        self._nodes += nodes
        self._characters += characters
        if self._nodes > self._limits.max_nodes:
            raise Overflow(f"more than {self._limits.max_nodes} values, with aliases written out")
        if self._characters > self._limits.max_characters:
            raise Overflow(f"more than {self._limits.max_characters} characters, with aliases written out")


def _sources(value: JsonValue, *, is_mapping: bool, aliased: bool) -> list[JsonObject]:
    """Return the mappings that ``<<`` names, the winning one last. An alias to a list is refused, as kubectl does."""
    if is_mapping and isinstance(value, dict):
        return [value]
    if isinstance(value, list) and not aliased:
        sources = [item for item in reversed(value) if isinstance(item, dict)]
        if len(sources) == len(value):
            return sources
    raise Refused("<< takes a mapping or a list of mappings")


def _copy(value: JsonValue) -> JsonValue:
    """Copy the value of an anchor deeply, for an alias to it. Recursion is safe, because the value was read within the depth
    limit.
    """
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value
