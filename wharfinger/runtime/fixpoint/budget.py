"""What a node's runs cost, and the names of those who keep each other running.

A run again is *charged* where its cause could feed itself: the node's own content changed, something changed that it had read
when it was done, or it is swept after it published something new. Everything else is free, because it is bounded by what was
charged (see the package's story). The first run is free whatever meets in it; causes that meet in one queued run cost one
charge, which is why it is said whether the queued run is paid.

Charges are counted per episode. The number of the episode stands with them, so that a new one needs no look at any node.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from wharfinger.runtime.fixpoint.model import Id
from wharfinger.runtime.fixpoint.state import Account

_FOLLOWED: Final = 1_000
"""How many causes are followed to name a loop."""
_NAMED: Final = 8
"""How many ids a message names of a loop or chain."""


def is_spent(account: Account, episode: int) -> bool:
    """It is exhausted, and the episode is still the one in which it was."""
    return account.spent and account.episode == episode


def charged(account: Account, *, budget: int, episode: int, cause: Id | None) -> Account | None:
    """One more charge; None: there is none left. A run that is paid already costs nothing."""
    if account.paid:
        return account._replace(cause=cause)
    charges = account.charges if account.episode == episode else 0
    if charges >= budget:
        return None
    return Account(episode, charges + 1, spent=False, paid=True, news=False, cause=cause)


def spent(account: Account, episode: int, cause: Id | None) -> Account:
    """It has no charge left in this episode, or must not run at all."""
    charges = account.charges if account.episode == episode else 0
    return Account(episode, charges, spent=True, paid=False, news=False, cause=cause)


class Loop(NamedTuple):
    """Who keeps whom running, each one the next one; ``closed``: and the last one the first."""

    ids: tuple[Id, ...]
    closed: bool


def loop_of(who: Id, cause: Id | None, cause_of: Callable[[Id], Id | None]) -> Loop:
    """The loop that ends with ``who``, whose last run was for ``cause``'s, whose was for that of ``cause_of(cause)``, and so on.

    Where that ends at the world outside (None), or in a loop of others, it is not closed: what they begin comes to ``who``.
    """
    found = {who: None}
    while cause is not None and cause not in found and len(found) < _FOLLOWED:
        found[cause] = None
        cause = cause_of(cause)
    return Loop(tuple(reversed(found)), cause == who)


def chain_of(who: Id, creator: Id | None, creator_of: Callable[[Id], Id | None]) -> tuple[Id, ...]:
    """Who created whom, ending with ``who``, which ``creator`` made."""
    return loop_of(who, creator, creator_of).ids


def budget_message(who: Id, loop: Loop, budget: int) -> str:
    """What is wrong, with whom, why, and what to do."""
    what = f"{who} does not settle: it was to run again at its own cost more than {budget} times"
    if loop.closed and len(loop.ids) > 1:
        why = f"{_named((*loop.ids, loop.ids[0]))} keep each other running"
    elif loop.closed:
        why = "its own runs change what it runs for"
    elif len(loop.ids) > 1:
        why = f"{_named(loop.ids)} each make the next one run"
    else:
        why = "the world outside keeps changing what it runs for"
    return f"{what}; {why}; where nothing changed, the same must come of it"


def depth_message(who: Id, chain: tuple[Id, ...], depth: int) -> str:
    """The same of a chain of creation."""
    return (
        f"{who} is created more than {depth} deep: {_named(chain)} each create the next one; this must come to an end"
    )


def _named(ids: tuple[Id, ...]) -> str:
    if len(ids) <= _NAMED:
        return " → ".join(map(str, ids))
    half = _NAMED // 2
    return " → ".join((*map(str, ids[:half]), f"… {len(ids) - 2 * half} more …", *map(str, ids[-half:])))
