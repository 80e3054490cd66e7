"""When nothing else can happen: who is swept, and who of the parked is asked how hard.

A fixpoint is structural: nothing is to run, nothing runs, nobody waits for the world outside. So nothing that is lacked now
can come by itself, and to say so of it is a fact and no guess. First whoever wants to is swept, if anything arrived since it
last ran: that may bring what others lack. Then the parked are judged, each group that hangs together by itself:

1. who was asked at NONE and lacks something that is not parked itself is asked at CASCADE: what is absent will not come;
2. where there is nobody like that, the rest lacks only each other, or went on lacking at CASCADE. At the bottom of them are
   circles, and nodes that only lack what will not come; the lowest of each is asked at FORCE;
3. one that lacks even then is unresolved, which is its end.

Each of these makes a node run or ends one. Whoever is woken by anything is back at NONE, and with it its group: at CASCADE and
FORCE runs only who was picked at a fixpoint, for what it said there that it lacks.
"""

from wharfinger.queue.fifo import Fifo
from wharfinger.runtime.fixpoint.components import Lacks, bottoms, connected, loop_from
from wharfinger.runtime.fixpoint.draft import Draft
from wharfinger.runtime.fixpoint.model import Id, Level
from wharfinger.runtime.fixpoint.state import Stage
from wharfinger.runtime.fixpoint.wakes import call, leave_unresolved, tell


def judge(draft: Draft) -> bool:
    """Nothing else can happen: sweep, or else judge. False: nobody is to be swept, nobody is parked, and it is over."""
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
    """Whoever is to run at a fixpoint does, if anything arrived since; at its own cost if it published something since."""
    swept = False
    for who in sorted(draft.sweepers):
        node = draft.nodes[who]
        if node.stage is Stage.DONE and node.run < draft.arrived:
            call(draft, who, node, level=Level.NONE, charge=node.account.news, cause=who)
            swept = swept or draft.nodes[who] is not node
    return swept


def _cascade(draft: Draft, group: list[Id], lacks: Lacks) -> bool:
    """Those of the group that were never asked so, and do not only wait for others of the parked, are asked at CASCADE."""
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
    """The lowest at each bottom is asked at FORCE, or is at its end if it was."""
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
