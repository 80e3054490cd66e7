"""The decisions at a fixpoint: which nodes are swept, and which parked nodes run at which level.

At a fixpoint, no node is to run, no node runs, and no node waits for the world outside. So a missing id can appear only if the
engine runs another node. First the nodes that requested sweeps are run again, if anything arrived since they last ran, because
they may produce the ids that other nodes lack. Then the engine decides about the parked nodes, for each connected group
separately. The levels are NONE, CASCADE and FORCE, from the least to the most strict (`Level`):

1. A node that was run at NONE, and lacks an id that is not a parked node, is run at CASCADE, because that id will not appear.
2. If there is no such node, each node of the group lacks only parked nodes, or was already picked at an earlier fixpoint. Some
  components of the group lack no parked node outside of the component: cycles, and single nodes that lack no parked node. The
  node with the lowest id of each such component is run at FORCE.
3. A node that still blocks at FORCE ends as unresolved.

Each of these steps runs or ends at least one node. A node that is woken returns to NONE. So a node runs at CASCADE or FORCE
only if it was picked at a fixpoint, and only until something that it lacks changes.
"""

from wharfinger.queue.fifo import Fifo
from wharfinger.runtime.fixpoint.components import Lacks, bottoms, connected, loop_from
from wharfinger.runtime.fixpoint.draft import Draft
from wharfinger.runtime.fixpoint.model import Id, Level
from wharfinger.runtime.fixpoint.state import Stage
from wharfinger.runtime.fixpoint.wakes import leave_unresolved, plan_run, wake_waiters


def judge(draft: Draft) -> bool:
    """Process a fixpoint: sweep nodes or, if no node has to be swept, run or end parked nodes. Return False if no node is
    parked either, because then the engine has converged.
    """
    if draft.sweepers and _sweep(draft):
        wake_waiters(draft)
        return True
    if not draft.parked:
        return False
    lacks = {who: node.lacks for who, node in draft.still_parked().items()}
    for group in connected(lacks):
        if not _cascade(draft, group, lacks):
            _force(draft, group, lacks)
    draft.parked = Fifo.of(draft.still_parked())
    wake_waiters(draft)
    return bool(lacks)


def _sweep(draft: Draft) -> bool:
    """Plan another run for each ended node that requested sweeps, if anything arrived since its last run. The run is charged to
    the node's budget if the node published anything new since it was last charged.

    Return whether a run was planned, or a node was found to be exhausted.
    """
    swept = False
    for who in sorted(draft.sweepers):
        node = draft.nodes[who]
        if node.stage is Stage.DONE and node.run < draft.arrived:
            plan_run(draft, who, node, level=Level.NONE, charge=node.account.news, cause=who)
            swept = swept or draft.nodes[who] is not node
    return swept


def _cascade(draft: Draft, group: list[Id], lacks: Lacks) -> bool:
    """Give the level CASCADE to all nodes of the group that are at NONE, and run those of them that lack an id that is not a
    parked node. Return whether any node is run.
    """
    asked = False
    for who in group:
        node = draft.nodes[who]
        if node.level is not Level.NONE:
            continue
        if any(other not in lacks for other in node.lacks):
            asked = True
            plan_run(draft, who, node, level=Level.CASCADE)
        else:
            draft.put(who, node._replace(level=Level.CASCADE))
    return asked


def _force(draft: Draft, group: list[Id], lacks: Lacks) -> None:
    """Force a group of parked nodes. For each component that `bottoms` returns, run its lowest node at the level FORCE. If that
    node already ran at this level, end it as unresolved.
    """
    for bottom in bottoms(group, lacks):
        lowest = bottom[0]
        node = draft.nodes[lowest]
        if node.level is Level.FORCE:
            leave_unresolved(draft, lowest, node)
            continue
        loop = loop_from(lowest, bottom, lacks)
        if loop:
            draft.loops = draft.loops.insert(lowest, loop)
        plan_run(draft, lowest, node, level=Level.FORCE)
