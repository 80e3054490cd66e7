"""The charges for a node's runs, and the messages that name the nodes that keep each other running.

A repeated run is *charged* if the node's own runs could have caused it, directly or through other nodes: the node's own content
changed, an id changed that the node read in its last finished run, or the node is swept after it published something new. All
other runs are free: the number of charged runs also limits their number, as the package's docstring shows. The first run is
always free. If several causes share one queued run, the run is charged once, so the node's `Account` records whether the queued
run is paid.

Charges are counted per episode. The `Account` has the number of its episode, so a new episode can begin without a reset of
every node's charges.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from wharfinger.runtime.fixpoint.model import Id
from wharfinger.runtime.fixpoint.state import Account

_FOLLOWED: Final = 1_000
"""The limit on the number of causes that are followed to find a loop."""
_NAMED: Final = 8
"""The limit on the number of ids that a message names."""


def is_spent(account: Account, episode: int) -> bool:
    """Return whether the node has used up its budget in the current episode."""
    return account.spent and account.episode == episode


def charged(account: Account, *, budget: int, episode: int, cause: Id | None) -> Account | None:
    """Return the account of a node after its queued run was charged, or None if the budget is used up. A run that was already
    charged is not charged again.
    """
    if account.paid:
        return account._replace(cause=cause)
    charges = account.charges if account.episode == episode else 0
    if charges >= budget:
        return None
    return Account(episode, charges + 1, spent=False, paid=True, news=False, cause=cause)


def spent(account: Account, episode: int, cause: Id | None) -> Account:
    """Return the account of a node that has used up its budget in this episode. ``cause`` is the node whose run made the last
    charge necessary; None means the world outside.
    """
    charges = account.charges if account.episode == episode else 0
    return Account(episode, charges, spent=True, paid=False, news=False, cause=cause)


class Loop(NamedTuple):
    """The nodes that keep each other running: each node starts the next one. ``closed`` is True if the last node starts the
    first.
    """

    ids: tuple[Id, ...]
    closed: bool


def loop_of(who: Id, cause: Id | None, cause_of: Callable[[Id], Id | None]) -> Loop:
    """Return the loop that ends with ``who``: the last run of ``who`` was caused by ``cause``, the run of ``cause`` by
    ``cause_of(cause)``, and so on.

    The loop is not closed if the causes lead to the world outside (None), or to a loop of other nodes that does not contain
    ``who``.
    """
    found = {who: None}
    while cause is not None and cause not in found and len(found) < _FOLLOWED:
        found[cause] = None
        cause = cause_of(cause)
    return Loop(tuple(reversed(found)), cause == who)


def chain_of(who: Id, creator: Id | None, creator_of: Callable[[Id], Id | None]) -> tuple[Id, ...]:
    """Return a chain of nodes, each of which created the next one. The chain ends with ``who``, which ``creator`` created."""
    return loop_of(who, creator, creator_of).ids


def budget_message(who: Id, loop: Loop, budget: int) -> str:
    """Return the message for an exhausted budget: the problem, the node, the cause and the remedy."""
    what = f"{who} does not settle: changes would have run it again more than {budget} times"
    if loop.closed and len(loop.ids) > 1:
        why = f"{_named((*loop.ids, loop.ids[0]))} keep each other running"
    elif loop.closed:
        why = "its own runs keep starting it again"
    elif len(loop.ids) > 1:
        why = f"in the chain {_named(loop.ids)}, each node starts the next one"
    else:
        why = "events from outside keep starting it"
    return f"{what}; {why}; a run with unchanged inputs must have an unchanged result"


def depth_message(who: Id, chain: tuple[Id, ...], depth: int) -> str:
    """Return the message for a chain of creations that is too long."""
    return f"{who} has a chain of more than {depth} creators: {_named(chain)}; each creates the next one; such a chain must end"


def _named(ids: tuple[Id, ...]) -> str:
    if len(ids) <= _NAMED:
        return " → ".join(map(str, ids))
    half = _NAMED // 2
    return " → ".join((*map(str, ids[:half]), f"… {len(ids) - 2 * half} more …", *map(str, ids[-half:])))
