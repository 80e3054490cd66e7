"""The engine as a state machine: from a state and an event, it computes the next state and the effects. The docstring of the
package defines the terms, and explains the purpose of the engine and why it converges.

A node is first runnable, then running, and after that it is parked, waits for the world outside, or is done. A node in one of
the last three stages becomes runnable again if there is a cause for a run. A node never has two runs at the same time. The
outcome of a run is processed as follows:

* If the node was removed during the run, the outcome is discarded, and its emissions are not published. If the node came back
  meanwhile, it runs as a new node.
* If the outcome has emissions, they are published, even if the run is overtaken, because the body has created the emitted ids.
  If the repeated run emits the same ids with the same content, that is not a change.
* A run is overtaken if, after it began, the node's own content changed, another run was requested, or an id that the node reads
  or lacks changed. Then the node runs once more, and is not done in between. The result is stored, but not published, and nodes
  that wait for the node keep waiting. If the next run ends with a Noop, the stored result is published.
* Otherwise the node is parked, waits, or is done. If it is done, the nodes that wait for it are woken.

All changes of a step get the same stamp. A run that begins in the step gets the next stamp. So the run is later than all
changes of its own step, and earlier than all changes of later steps.
"""

from typing import Final, assert_never

from rpds import HashTrieMap, HashTrieSet

from wharfinger.queue.fifo import Fifo
from wharfinger.runtime.fixpoint.draft import Draft
from wharfinger.runtime.fixpoint.levels import judge
from wharfinger.runtime.fixpoint.model import (
    Answered,
    Arrived,
    Asked,
    Blocked,
    Cancelled,
    Converged,
    Crashed,
    DependencyFailed,
    Dispatch,
    Effect,
    Event,
    Finished,
    Id,
    Level,
    Noop,
    Outside,
    Pulled,
    Removed,
    Seeded,
    Terminal,
)
from wharfinger.runtime.fixpoint.state import Again, Fixpoint, LastAnswer, Mark, Node, Origin, Rules, Stage
from wharfinger.runtime.fixpoint.wakes import arrive, end, fresh, plan_run, remove, seed, wake_waiters

_RULES: Final = Rules()
_NO_ANSWER: Final = LastAnswer("", ())


def start(rules: Rules = _RULES) -> Fixpoint:
    """Return an engine without any node."""
    return Fixpoint(
        rules=rules,
        clock=0,
        episode=1,
        charged=False,
        arrived=0,
        latest=0,
        marks=HashTrieMap(),
        nodes=HashTrieMap(),
        queue=Fifo(),
        parked_on=HashTrieMap(),
        readers=HashTrieMap(),
        parked=Fifo(),
        sweepers=HashTrieSet(),
        loops=HashTrieMap(),
        gone=HashTrieSet(),
        queued=0,
        running=0,
        waiting=0,
        told=False,
        cancelled=False,
    )


def step(state: Fixpoint, event: Event) -> tuple[Fixpoint, tuple[Effect, ...]]:
    """Process one event. The engine is deterministic: in equal states, equal events have equal effects, in the same order."""
    draft = Draft(state)
    _take_in(draft, event)
    if draft.news:
        wake_waiters(draft)
    if not draft.running:
        _rest(draft)
    return draft.frozen(), tuple(draft.effects)


def _take_in(draft: Draft, event: Event) -> None:
    if isinstance(event, Pulled):
        _pull(draft)
        return
    draft.told = False
    match event:
        case Finished():
            _finish(draft, event)
        case Arrived(emission):
            arrive(draft, emission)
        case Asked(who):
            _ask(draft, who)
        case Removed(who):
            remove(draft, who)
        case Seeded(ids):
            for who in sorted(dict.fromkeys(ids)):
                seed(draft, who)
        case Answered(who, run):
            node = draft.nodes.get(who)
            if node is not None and node.stage is Stage.WAITING and node.run == run:
                plan_run(draft, who, node, level=Level.NONE)
        case Cancelled():
            draft.cancelled = True
        case _:
            assert_never(event)


def _rest(draft: Draft) -> None:
    """Drop the stamps of removed ids. Called while no body runs, because no body can need these stamps then.

    If no node is runnable either, end the episode, unless ``Rules.drain`` is set.
    """
    if draft.gone:
        for who in draft.gone:
            mark = draft.marks.get(who)
            if mark is not None and not mark.present:
                draft.marks = draft.marks.discard(who)
        draft.gone = HashTrieSet()
    if draft.charged and not draft.queued and not draft.rules.drain:
        draft.episode += 1
        draft.charged = False


# --- what is to run ------------------------------------------------------------------------------------------------------------


def _pull(draft: Draft) -> None:
    while not draft.cancelled:
        while draft.queue:
            who, draft.queue = draft.queue.take()
            if _dispatch(draft, who, draft.nodes[who]):
                return
        if draft.running or draft.waiting or not draft.rules.drain:
            return
        if not judge(draft):
            if not draft.told:
                draft.told = True
                draft.effects.append(Converged())
            return


def _dispatch(draft: Draft, who: Id, node: Node) -> bool:
    """Dispatch the next node of the queue; return False if it does not need to run any more."""
    if node.stage is not Stage.RUNNABLE:
        if node.stage is Stage.GONE:
            draft.nodes = draft.nodes.discard(who)
        else:
            draft.put(who, node._replace(queued=False))
        return False
    draft.queued -= 1
    draft.running += 1
    draft.clock += 1
    account, level = node.account, node.level
    draft.put(
        who,
        Node(
            node.mark,
            Stage.RUNNING,
            draft.clock,
            level,
            Again.NO,
            node.lacks,
            node.reads,
            node.result,
            node.said,
            account._replace(paid=False) if account.paid else account,
            node.origin,
            node.sweep,
            queued=False,
        ),
    )
    loop: tuple[Id, ...] = ()
    if draft.loops:
        loop = draft.loops.get(who, ()) if level is Level.FORCE else ()
        draft.loops = draft.loops.discard(who)
    draft.effects.append(Dispatch(who, draft.clock, level, loop))
    return True


def _ask(draft: Draft, who: Id) -> None:
    node = draft.nodes.get(who)
    if node is None or node.stage in (Stage.RUNNABLE, Stage.GONE):
        return
    if node.stage is Stage.RUNNING:
        if node.again is Again.NO:
            draft.put(who, node._replace(again=Again.FREE))
    else:
        plan_run(draft, who, node, level=Level.NONE)


# --- what a body answered ------------------------------------------------------------------------------------------------------


def _finish(draft: Draft, event: Finished) -> None:
    who = event.id
    node = draft.nodes.get(who)
    if node is None or node.stage is not Stage.RUNNING or node.run != event.run:
        return
    if node.again in (Again.VOID, Again.ANEW):
        _forget(draft, who, node)
        return
    if event.sweep is not node.sweep:
        draft.sweepers = draft.sweepers.insert(who) if event.sweep else draft.sweepers.discard(who)
        node = node._replace(sweep=event.sweep)
        draft.put(who, node)
    outcome = event.outcome
    match outcome:
        case Terminal(result, reads, emissions):
            if emissions:
                node = _published(draft, who, node, outcome)
            _done(draft, who, node, LastAnswer(result, _ids(reads)))
        case Blocked(lacks):
            _block(draft, who, node, _ids(lacks))
        case Noop():
            _done(draft, who, node, node.said or _NO_ANSWER)
        case DependencyFailed(failed, result):
            _done(draft, who, node, LastAnswer(result, _ids(failed)))
        case Outside(reads):
            _wait(draft, who, node, _ids(reads))
        case Crashed(message):
            _crash(draft, who, node, message)
        case _:
            assert_never(outcome)


def _ids(given: tuple[Id, ...]) -> tuple[Id, ...]:
    return tuple(sorted(set(given))) if len(given) > 1 else given


def _published(draft: Draft, who: Id, node: Node, outcome: Terminal) -> Node:
    """Publish the emissions, in their order. Return the node, which may have changed: its own id may be among the emissions."""
    origin = Origin(who, node.origin.depth + 1)
    news = [arrive(draft, emission, origin) for emission in outcome.emissions]
    if not any(news):
        return node
    node = draft.nodes[who]
    return node._replace(account=node.account._replace(news=True))


def _later(draft: Draft, ids: tuple[Id, ...], run: int) -> Mark | None:
    """Return the mark of the first id in ``ids`` that changed after the run began; None if no id did."""
    if draft.latest < run:
        return None
    for who in ids:
        mark = draft.mark(who)
        if mark.changed > run:
            return mark
    return None


def _done(draft: Draft, who: Id, node: Node, said: LastAnswer) -> None:
    """End the node with the result that its body reported. If an input of the run has changed meanwhile, or another run was
    requested, plan another run instead.
    """
    changed = _later(draft, said.reads, node.run) if said.reads else None
    if changed is None and node.again is Again.NO:
        end(draft, who, node, said.result, said.reads, said)
    else:
        differed = said.result != node.result or (node.said is not None and node.said.differed)
        node = _relisted(draft, who, node, (), said.reads)._replace(said=said._replace(differed=differed))
        _run_again(draft, who, node, changed)


def _crash(draft: Draft, who: Id, node: Node, message: str) -> None:
    """End the node with a crash, or run it again if another run was requested meanwhile. The node keeps the answer that it gave
    before the crash; a later Noop confirms that answer.
    """
    if node.again is Again.NO:
        end(draft, who, node, f"crashed: {message}", (), node.said)
    else:
        _run_again(draft, who, node, None)


def _run_again(draft: Draft, who: Id, node: Node, changed: Mark | None) -> None:
    """Plan another run of the node. The run is charged to the node's budget, unless its only cause is a request for a run."""
    cause = node.account.cause if node.again is Again.CHARGED or changed is None else changed.cause
    plan_run(draft, who, node, level=Level.NONE, charge=changed is not None or node.again is Again.CHARGED, cause=cause)


def _wait(draft: Draft, who: Id, node: Node, reads: tuple[Id, ...]) -> None:
    """Let the node wait for a result from outside of the engine; a later change of an id in ``reads`` wakes the node. If
    another run was requested meanwhile, or an id in ``reads`` has changed since the run began, plan another run instead. A
    change of an id is not charged to the node's budget.
    """
    node = _relisted(draft, who, node, (), reads)
    if node.again is not Again.NO:
        _run_again(draft, who, node, None)
    elif _later(draft, reads, node.run) is not None:
        plan_run(draft, who, node, level=Level.NONE)
    else:
        draft.leave(node)
        draft.waiting += 1
        draft.put(who, node._replace(stage=Stage.WAITING))


def _block(draft: Draft, who: Id, node: Node, lacks: tuple[Id, ...]) -> None:
    """Park the node, or run it again. Run it again if its run is overtaken. Also run it again if an id in ``lacks`` changed, or
    the node of that id ended a run, after this node's run had begun: a parked node is woken only by later events.
    """
    draft.list_under(who, node, lacks, ())
    if node.again is not Again.NO:
        _run_again(draft, who, node._replace(lacks=lacks, reads=()), None)
        return
    if draft.latest > node.run:
        for lacked in lacks:
            mark = draft.mark(lacked)
            if mark.changed > node.run or mark.finished > node.run:
                plan_run(draft, who, node._replace(lacks=lacks, reads=()), level=Level.NONE)
                return
    draft.leave(node)
    draft.park(who)
    draft.put(
        who,
        Node(
            node.mark,
            Stage.PARKED,
            node.run,
            node.level,
            Again.NO,
            lacks,
            (),
            node.result,
            node.said,
            node.account,
            node.origin,
            node.sweep,
            queued=False,
        ),
    )


def _relisted(draft: Draft, who: Id, node: Node, lacks: tuple[Id, ...], reads: tuple[Id, ...]) -> Node:
    """Return the node with the ids that it lacks and the ids that it reads, and list the node under these ids in the
    indexes.
    """
    draft.list_under(who, node, lacks, reads)
    return node._replace(lacks=lacks, reads=reads)


def _forget(draft: Draft, who: Id, node: Node) -> None:
    """Forget a removed node whose body has ended; if the node came back meanwhile, run it as a new node."""
    draft.leave(node)
    draft.forget(who, node)
    if node.again is Again.ANEW:
        draft.queued += 1
        draft.enqueue(who)
        mark = draft.mark(who)
        draft.marks = draft.marks.discard(who)
        draft.put(who, fresh(node.origin, mark))
