"""The graph of packages as JSON, for programs that draw or count.

Pure. Shape; a key with ``?`` may be missing::

    {focus?, nodes: [{name, state, kind?, version?, order?, status?, message?, waits_for?: [...], since?}],
     edges: [{source, target, kind: needs | needs-if-there | any-of | excludes | subscribes, group?, constraint?, waited_for?}]}

Both lists are sorted. Both ends of every edge are in ``nodes``.
"""

from wharfinger.debug.graph.model import Graph, GraphEdge, GraphNode
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.times import format_exact_time


def graph_to_json(graph: Graph) -> JsonObject:
    """Return the graph as JSON."""
    result: JsonObject = {} if graph.focus is None else {"focus": graph.focus}
    result["nodes"] = [_node(node) for node in graph.nodes]
    result["edges"] = [_edge(edge) for edge in graph.edges]
    return result


def _node(node: GraphNode) -> JsonObject:
    optional: dict[str, JsonValue] = {
        "kind": node.kind or None,
        "version": node.version or None,
        "order": node.order,
        "status": node.status or None,
        "message": node.message or None,
        "waits_for": list(node.waits_for) or None,
        "since": None if node.since is None else format_exact_time(node.since),
    }
    return {"name": node.name, "state": node.state.value, **_present(optional)}


def _edge(edge: GraphEdge) -> JsonObject:
    optional: dict[str, JsonValue] = {
        "group": edge.group or None,
        "constraint": edge.constraint or None,
        "waited_for": edge.waited_for or None,
    }
    return {"source": edge.source, "target": edge.target, "kind": edge.kind.value, **_present(optional)}


def _present(optional: JsonObject) -> JsonObject:
    return {key: value for key, value in optional.items() if value is not None}
