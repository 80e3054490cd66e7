"""The graph of a tree as text: each node below the node that makes it, with its dependencies. Pure.

A node that several nodes make is listed below the first of them. Names come from the tree and are untrusted.
"""

from collections.abc import Iterator, Mapping, Sequence

from wharfinger.formats.listing import counted
from wharfinger.formats.terminal_text import printable
from wharfinger.offline.output.nodes import Node, NodeState
from wharfinger.offline.store.identity import shown
from wharfinger.runtime.fixpoint.model import Id


def nodes_outline(nodes: Sequence[Node]) -> str:
    """Return one line for each node, indented below its maker. Data and absent objects have no lines of their own: they are
    named in the lines of the nodes that read them.
    """
    listed = {each.id: each for each in nodes if each.state not in {NodeState.DATA, NodeState.ABSENT}}
    states = {each.id: each.state for each in nodes}
    below: dict[Id | None, list[Node]] = {}
    for node in listed.values():
        below.setdefault(_parent(node, listed), []).append(node)
    return "".join(f"{line}\n" for node in below.get(None, ()) for line in _lines(node, below, states, ""))


def _parent(node: Node, listed: Mapping[Id, Node]) -> Id | None:
    """Return the maker of a node; None for a root. If nodes make each other in a cycle, the lowest id is the root."""
    seen = {node.id}
    above = node.made_by
    while above is not None and above in listed:
        if above in seen:
            return None if node.id == min(seen) else node.made_by
        seen.add(above)
        above = listed[above].made_by
    return node.made_by if node.made_by in listed else None


def _lines(
    node: Node, below: Mapping[Id | None, Sequence[Node]], states: Mapping[Id, NodeState], indent: str
) -> Iterator[str]:
    state = counted(node.objects, "object") if node.state is NodeState.BUILT else node.state
    needs = ", ".join(f"{shown(each)}{_mark(states, each)}" for each in node.depends_on if each != node.made_by)
    text = f"{shown(node.id)} ({state})" + (f" -> {needs}" if needs else "")
    yield f"{indent}{printable(text)}"
    for each in below.get(node.id, ()):
        yield from _lines(each, below, states, f"{indent}  ")


def _mark(states: Mapping[Id, NodeState], who: Id) -> str:
    state = states.get(who)
    return f" ({state})" if state in {NodeState.ABSENT, NodeState.FAILED, NodeState.BLOCKED} else ""
