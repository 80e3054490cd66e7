"""The charges for a node's runs, and the names of the nodes that keep each other running.

A repeated run is *charged* if its cause could feed itself: the node's own content changed, something changed that it had read
when it was done, or it is swept after it published something new. Every other run is free, because the number of charged runs
limits the number of free ones (see the package's docstring). The first run is always free. Causes that share one queued run
cost one charge, so the account records whether the queued run is paid.

Charges are counted per episode. The number of the episode is kept with them, so that a new episode need not visit any node.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from wharfinger.runtime.fixpoint.model import Id
from wharfinger.runtime.fixpoint.state import Account

_FOLLOWED: Final = 1_000
"""The number of causes that are followed to name a loop."""
_NAMED: Final = 8
"""The number of ids of a loop or chain that a message names."""


def is_spent(account: Account, episode: int) -> bool:
    """Return whether the node has used up its budget in the current episode."""
    return account.spent and account.episode == episode


def charged(account: Account, *, budget: int, episode: int, cause: Id | None) -> Account | None:
    """Return the account with one more charge, or None if no charge is left. A run that is already paid costs nothing."""
    if account.paid:
        return account._replace(cause=cause)
    charges = account.charges if account.episode == episode else 0
    if charges >= budget:
        return None
    return Account(episode, charges + 1, spent=False, paid=True, news=False, cause=cause)


def spent(account: Account, episode: int, cause: Id | None) -> Account:
    """Return the account with its budget marked as used up in this episode, and with the cause of the last charge."""
    charges = account.charges if account.episode == episode else 0
    return Account(episode, charges, spent=True, paid=False, news=False, cause=cause)


class Loop(NamedTuple):
    """The nodes that keep each other running, each followed by the one that it starts; ``closed`` is True if the last one
    starts the first.
    """

    ids: tuple[Id, ...]
    closed: bool


def loop_of(who: Id, cause: Id | None, cause_of: Callable[[Id], Id | None]) -> Loop:
    """Return the loop that ends with ``who``: its last run was caused by ``cause``, whose run was caused by
    ``cause_of(cause)``, and so on.

    The loop is not closed if the causes lead back to the world outside (None) or to a loop of other nodes, without ``who``.
    """
    found = {who: None}
    while cause is not None and cause not in found and len(found) < _FOLLOWED:
        found[cause] = None
        cause = cause_of(cause)
    return Loop(tuple(reversed(found)), cause == who)


def chain_of(who: Id, creator: Id | None, creator_of: Callable[[Id], Id | None]) -> tuple[Id, ...]:
    """Return the chain of creators, which ends with ``who``, created by ``creator``."""
    return loop_of(who, creator, creator_of).ids


def budget_message(who: Id, loop: Loop, budget: int) -> str:
    """Return the message for an exhausted budget: the problem, the node, the cause and the remedy."""
    what = f"{who} does not settle: changes would have started it more than {budget} times"
    if loop.closed and len(loop.ids) > 1:
        why = f"{_named((*loop.ids, loop.ids[0]))} keep each other running"
    elif loop.closed:
        why = "its own runs keep starting it again"
    elif len(loop.ids) > 1:
        why = f"{_named(loop.ids)} each start the next one"
    else:
        why = "events from outside keep starting it"
    return f"{what}; {why}; a run with unchanged inputs must have an unchanged result"


def depth_message(who: Id, chain: tuple[Id, ...], depth: int) -> str:
    """Return the message for a chain of nodes that is created too deep."""
    return f"{who} is created more than {depth} deep: {_named(chain)} each create the next one; such a chain must end"


def _named(ids: tuple[Id, ...]) -> str:
    if len(ids) <= _NAMED:
        return " → ".join(map(str, ids))
    half = _NAMED // 2
    return " → ".join((*map(str, ids[:half]), f"… {len(ids) - 2 * half} more …", *map(str, ids[-half:])))
