"""The wakes of nodes, and the charges for them: the rules that decide which nodes run again because of arrivals and ends of
runs. Every change that may wake other nodes is added to the draft's news. At the end of the step, `wake_waiters` wakes the
nodes that wait for the news, one after the other. A wake may end a node whose budget is used up. The end of that node is added
to the news, too, so its waiters are woken without recursion.

`plan_run` is the only function that plans and charges runs of existing nodes.
"""

from typing import Final

from wharfinger.runtime.fixpoint import budget
from wharfinger.runtime.fixpoint.draft import NO_MARK, Draft, News
from wharfinger.runtime.fixpoint.model import Emission, Exhausted, Id, Level, Unresolved
from wharfinger.runtime.fixpoint.state import Account, Again, LastAnswer, Mark, Node, Origin, Stage

_NO_ACCOUNT: Final = Account()
_OUTSIDE: Final = Origin()


def arrive(draft: Draft, emission: Emission, origin: Origin = _OUTSIDE) -> bool:
    """Record that an id is present, or has new content; return whether this was a change. A change makes the node of the id
    run, and wakes the nodes that lack or read the id.
    """
    who = emission.id
    node, mark = draft.nodes.get(who), draft.mark(who)
    if mark.present and mark.digest == emission.digest and (node is not None or not emission.runnable):
        return False
    mark = _appear(draft, who, mark, emission.digest, origin.creator)
    if node is not None and node.mark is not None:
        origin = node.origin if origin.creator is not None else _OUTSIDE
        node = node._replace(mark=mark, origin=origin)
        if node.stage is Stage.RUNNING:
            node = node._replace(again=Again.CHARGED, account=node.account._replace(cause=mark.cause))
        draft.put(who, node)
        if node.stage is not Stage.RUNNING:
            plan_run(draft, who, node, level=Level.NONE, charge=True, cause=mark.cause)
    elif emission.runnable:
        _create(draft, who, node, origin, mark)
    else:
        draft.marks = draft.marks.insert(who, mark)
    return True


def seed(draft: Draft, who: Id) -> None:
    """Add an initial node, whose content is not known."""
    node = draft.nodes.get(who)
    if node is None or (node.mark is None and node.again is not Again.ANEW):
        mark = draft.marks.get(who, NO_MARK)
        _create(draft, who, node, _OUTSIDE, _appear(draft, who, mark, None, None))


def _appear(draft: Draft, who: Id, before: Mark, digest: str | None, cause: Id | None) -> Mark:
    now = draft.clock
    draft.arrived = draft.latest = now
    draft.news.append(News(who, arrival=True, changed=True, cause=cause))
    return Mark(now, before.finished, digest, cause, present=True)


def _create(draft: Draft, who: Id, gone: Node | None, origin: Origin, mark: Mark) -> None:
    """Create a node. ``gone`` is a removed node of the same id whose body still runs, or that still has a place in the queue;
    None if there is no such node.
    """
    if gone is not None and gone.stage is Stage.RUNNING:
        draft.marks = draft.marks.insert(who, mark)
        draft.put(who, gone._replace(again=Again.ANEW, origin=origin))
        return
    if draft.marks:
        draft.marks = draft.marks.discard(who)
    node = fresh(origin, mark)
    draft.queued += 1
    if origin.depth > draft.rules.depth and not draft.cancelled:
        node = node._replace(queued=gone is not None)
        chain = budget.chain_of(who, origin.creator, lambda creature: _creator(draft, creature))
        _exhaust(draft, who, node, budget.depth_message(who, chain, draft.rules.depth), chain, origin.creator)
        return
    if gone is None:
        draft.enqueue(who)
    draft.put(who, node)


def fresh(origin: Origin, mark: Mark) -> Node:
    """Return a new node, which has never run and already has a place in the queue."""
    return Node(
        mark, Stage.RUNNABLE, 0, Level.NONE, Again.NO, (), (), None, None, _NO_ACCOUNT, origin, sweep=False, queued=True
    )


def _creator(draft: Draft, who: Id) -> Id | None:
    node = draft.nodes.get(who)
    return node.origin.creator if node is not None else None


def _cause(draft: Draft, who: Id) -> Id | None:
    node = draft.nodes.get(who)
    return node.account.cause if node is not None else None


def plan_run(
    draft: Draft,
    who: Id,
    node: Node,
    *,
    level: Level,
    charge: bool = False,
    cause: Id | None = None,
) -> None:
    """Plan a run of the node. Several calls before the run begins cause only one run. If the run must be charged and the
    budget is used up, end the node.
    """
    account = node.account
    if draft.cancelled and node.stage is not Stage.RUNNING:
        return  # a cancelled engine keeps the stage of every node whose body does not run
    if account.spent and budget.is_spent(account, draft.episode):
        return
    if charge and node.run and not draft.cancelled:
        paid = budget.charged(account, budget=draft.rules.budget, episode=draft.episode, cause=cause)
        if paid is None:
            loop = budget.loop_of(who, cause, lambda other: _cause(draft, other))
            _exhaust(draft, who, node, budget.budget_message(who, loop, draft.rules.budget), loop.ids, cause)
            return
        account, draft.charged = paid, True
    draft.leave(node)
    if node.stage is Stage.WAITING and node.reads:
        draft.list_under(
            who, node, (), ()
        )  # the node runs anyway, so a change of the ids in its lacks and reads is not charged
        node = node._replace(lacks=(), reads=())
    draft.queued += 1
    if not node.queued:
        draft.enqueue(who)
    draft.put(
        who,
        Node(
            node.mark,
            Stage.RUNNABLE,
            node.run,
            level,
            Again.NO,
            node.lacks,
            node.reads,
            node.result,
            node.said,
            account,
            node.origin,
            node.sweep,
            queued=True,
        ),
    )


def end(draft: Draft, who: Id, node: Node, result: str, reads: tuple[Id, ...], said: LastAnswer | None) -> None:
    """Publish the end of a node: wake the nodes that lack it and, if the result differs, the nodes that read it.

    ``said`` is the last answer of the node's body. It is kept, because a later run may answer Noop (the same as before). If the
    engine ended the node, the result in ``said`` differs from ``result``.
    """
    if node.lacks or node.reads or reads:
        draft.list_under(who, node, (), reads)
    draft.leave(node)
    before = node.said
    changed = result != node.result or (before is not None and before.differed)
    if said is not None and said.differed:
        said = LastAnswer(said.result, said.reads)
    now = draft.latest = draft.clock
    mark = node.mark or NO_MARK
    if changed:
        mark = Mark(now, now, mark.digest, who, present=True)
    else:
        mark = Mark(mark.changed, now, mark.digest, mark.cause, present=True)
    draft.put(
        who,
        Node(
            mark,
            Stage.DONE,
            node.run,
            Level.NONE,
            Again.NO,
            (),
            reads,
            result,
            said,
            node.account,
            node.origin,
            node.sweep,
            node.queued,
        ),
    )
    draft.news.append(News(who, arrival=False, changed=changed, cause=who))


def _exhaust(draft: Draft, who: Id, node: Node, message: str, loop: tuple[Id, ...], cause: Id | None) -> None:
    """End a node that has used up its budget. The node does not run again before the next episode, which begins when no node
    runs or is about to run.

    The node keeps the ids that its last answer read. In the next episode, the node runs again if one of these ids changes.
    """
    draft.effects.append(Exhausted(who, message, loop))
    draft.charged = True
    said = node.said
    node = node._replace(account=budget.spent(node.account, draft.episode, cause))
    end(draft, who, node, f"exhausted: {message}", said.reads if said is not None else (), said)


def leave_unresolved(draft: Draft, who: Id, node: Node) -> None:
    """End a node that is still parked after a run at the strictest level. It runs again when one of the ids that it lacks
    changes.
    """
    draft.effects.append(Unresolved(who, node.lacks))
    end(draft, who, node, "unresolved", node.lacks, node.said)


def remove(draft: Draft, who: Id) -> None:
    """Remove the id; nodes that read or lack it run again.

    If the body of the id's node is running, its answer is discarded when the body ends.
    """
    mark, node = draft.mark(who), draft.nodes.get(who)
    if not mark.present:
        return
    draft.arrived = draft.latest = draft.clock
    draft.marks = draft.marks.insert(who, Mark(draft.clock, mark.finished, None, None, present=False))
    draft.gone = draft.gone.insert(who)
    draft.news.append(News(who, arrival=False, changed=True, cause=None))
    if node is None:
        return
    if node.stage is Stage.RUNNING:
        draft.put(who, node._replace(mark=None, again=Again.VOID))
        return
    draft.leave(node)
    draft.forget(who, node)
    if node.queued:
        draft.put(who, node._replace(mark=None, stage=Stage.GONE, lacks=(), reads=(), sweep=False))


def wake_waiters(draft: Draft) -> None:
    """Wake the nodes that lack or read an id of the news (the changes and ends that are not processed yet).

    The nodes that wait for one id are woken in the order of their own ids. If a wake ends a node, this end is added to the
    news, and processed, too.
    """
    for news in () if draft.cancelled else draft.news:  # grows during this loop
        parked = draft.parked_on.get(news.who)
        readers = draft.readers.get(news.who) if news.changed else None
        if parked is None:
            if readers is None:
                continue
            waiters = {*readers}
        else:
            draft.parked_on = draft.parked_on.discard(news.who)
            waiters = {*parked} if readers is None else {*parked, *readers}
        if not news.arrival:
            waiters.discard(news.who)  # a node is not woken by the end of its own run
        for who in sorted(waiters) if len(waiters) > 1 else waiters:
            _wake(draft, who, draft.nodes[who], news)
    draft.news.clear()


def _wake(draft: Draft, who: Id, node: Node, news: News) -> None:
    """Wake a node that waits for an id which has changed. A node that is running is not woken: when its body answers, the
    stamps show the change.
    """
    stage = node.stage
    if stage is Stage.PARKED:
        plan_run(draft, who, node, level=Level.NONE)
    elif stage is Stage.DONE:
        plan_run(draft, who, node, level=Level.NONE, charge=True, cause=news.cause)
    elif stage is Stage.WAITING:
        plan_run(draft, who, node, level=Level.NONE)
    elif stage is Stage.RUNNABLE:
        charge = bool(node.reads)
        if charge or node.level is not Level.NONE:
            plan_run(draft, who, node, level=Level.NONE, charge=charge, cause=news.cause)
