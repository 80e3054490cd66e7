"""The decisions at a fixpoint: which nodes are swept, and which parked nodes run at which level.

A fixpoint is structural: nothing is to run, nothing runs, and no node waits for the world outside. So a missing id can no
longer appear unless the engine runs another node. First the nodes that asked for sweeps are swept, if anything arrived since
they last ran: this may produce the ids that other nodes lack. Then the parked nodes are judged, each connected group
separately:

1. A node that was run at NONE, and lacks an id that is not a parked node, is run at CASCADE, because that id will not appear.
2. If there is no such node, the remaining ones lack only each other, or still lacked something at CASCADE. At the bottom of
   them are cycles, and nodes that only lack absent ids; the lowest node of each is run at FORCE.
3. A node that still lacks something at FORCE ends as unresolved.

Each of these steps makes a node run or ends one. If anything wakes a node, the node and its group return to NONE. So nodes run
at CASCADE and FORCE only if they were picked at a fixpoint, and only until something that they lack changes.
"""

from wharfinger.queue.fifo import Fifo
from wharfinger.runtime.fixpoint.components import Lacks, bottoms, connected, loop_from
from wharfinger.runtime.fixpoint.draft import Draft
from wharfinger.runtime.fixpoint.model import Id, Level
from wharfinger.runtime.fixpoint.state import Stage
from wharfinger.runtime.fixpoint.wakes import call, leave_unresolved, tell


def judge(draft: Draft) -> bool:
    """Sweep nodes; if no node is to be swept, judge the parked nodes. Return False if no node is parked either: then the engine
    has converged.
    """
    if draft.sweepers and _sweep(draft):
        tell(draft)
        return True
    if not draft.parked:
        return False
    lacks = {who: node.lacks for who, node in draft.still_parked().items()}
    for group in connected(lacks):
        if not _cascade(draft, group, lacks):
            _force(draft, group, lacks)
    draft.parked = Fifo.of(draft.still_parked())
    tell(draft)
    return bool(lacks)


def _sweep(draft: Draft) -> bool:
    """Run each node that asked for sweeps, if anything arrived since its last run; charge the run if the node has published
    something since its last charge.
    """
    swept = False
    for who in sorted(draft.sweepers):
        node = draft.nodes[who]
        if node.stage is Stage.DONE and node.run < draft.arrived:
            call(draft, who, node, level=Level.NONE, charge=node.account.news, cause=who)
            swept = swept or draft.nodes[who] is not node
    return swept


def _cascade(draft: Draft, group: list[Id], lacks: Lacks) -> bool:
    """Run at CASCADE each node of the group that is at NONE and lacks an id of no parked node; return False if none is."""
    asked = False
    for who in group:
        node = draft.nodes[who]
        if node.level is not Level.NONE:
            continue
        if any(other not in lacks for other in node.lacks):
            asked = True
            call(draft, who, node, level=Level.CASCADE)
        else:
            draft.put(who, node._replace(level=Level.CASCADE))
    return asked


def _force(draft: Draft, group: list[Id], lacks: Lacks) -> None:
    """Run the lowest node of each bottom component at FORCE, or end it if it was run at FORCE already."""
    for bottom in bottoms(group, lacks):
        lowest = bottom[0]
        node = draft.nodes[lowest]
        if node.level is Level.FORCE:
            leave_unresolved(draft, lowest, node)
            continue
        loop = loop_from(lowest, bottom, lacks)
        if loop:
            draft.loops = draft.loops.insert(lowest, loop)
        call(draft, lowest, node, level=Level.FORCE)
