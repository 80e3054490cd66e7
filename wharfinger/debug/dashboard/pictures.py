"""The drawings of graphs for pages. A drawing is kept until its graph changes, because the layout of a large graph takes long."""

from functools import partial
from typing import Final

import trio

from wharfinger.debug.dashboard.blocks import Picture
from wharfinger.debug.dashboard.overview_page import MOST_DRAWN, package_href
from wharfinger.debug.graph.model import Graph, make_graph, surroundings_of
from wharfinger.debug.graph.svg import graph_to_svg
from wharfinger.debug.graph.text import UNICODE, graph_to_text
from wharfinger.runtime.inspector import PackageSnapshot
from wharfinger.runtime.scheduler_details import NodeSnapshot

MOST_KEPT: Final = 16


class Pictures:
    """A cache of drawings. The key of a drawing is the name of its package, or "" for the drawing of all packages."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Graph, Picture]] = {}

    async def picture(
        self, nodes: tuple[NodeSnapshot, ...], packages: tuple[PackageSnapshot, ...], name: str = ""
    ) -> Picture | None:
        """Return the drawing of all packages, or of one package and the packages related to it; None if there are no packages to
        draw, or too many.
        """
        whole = make_graph(nodes, packages)
        graph = surroundings_of(whole, name) if name else whole
        if graph is None or not graph.nodes or len(graph.nodes) > MOST_DRAWN:
            return None
        kept = self._kept.pop(name, None)
        if kept is None or kept[0] != graph:
            kept = graph, await trio.to_thread.run_sync(partial(_drawn, graph))
        self._kept[name] = kept  # the most recently used one is last
        while len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return kept[1]


def _drawn(graph: Graph) -> Picture:
    label = "Dependencies of all packages" if graph.focus is None else f"Dependencies around {graph.focus}"
    return Picture(graph_to_svg(graph, package_href), label, graph_to_text(graph, None, UNICODE))
