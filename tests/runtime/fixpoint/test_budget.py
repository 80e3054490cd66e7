"""The charges for a node's runs (`wharfinger.runtime.fixpoint` explains them), and messages that name the nodes of a loop,
which keep each other running.
"""

from wharfinger.runtime.fixpoint.budget import (
    Loop,
    budget_message,
    chain_of,
    charged,
    depth_message,
    is_spent,
    loop_of,
    spent,
)
from wharfinger.runtime.fixpoint.model import Id
from wharfinger.runtime.fixpoint.state import Account

A, B, C, D = (Id("Node", "", name) for name in "abcd")


def charge(account: Account, *, episode: int = 1, budget: int = 2) -> Account | None:
    """Charge the account for one more run, which B caused."""
    return charged(account, budget=budget, episode=episode, cause=B)


def test_a_charge_is_counted_once_for_a_queued_run() -> None:
    first = charge(Account(news=True))
    assert first == Account(episode=1, charges=1, paid=True, news=False, cause=B)
    assert first is not None
    assert charge(first) == first


def test_there_are_no_more_charges_than_the_budget() -> None:
    account: Account | None = Account()
    for charges in (1, 2):
        assert account is not None
        account = charge(account._replace(paid=False))
        assert account is not None
        assert account.charges == charges
    assert account is not None
    assert charge(account._replace(paid=False)) is None
    assert charge(account) == account, "a paid run is not charged again"
    assert charge(Account(), budget=0) is None


def test_another_episode_begins_without_charges() -> None:
    used = Account(episode=1, charges=2, cause=C)
    after = charge(used, episode=2)
    assert after is not None
    assert (after.episode, after.charges) == (2, 1)
    over = spent(used, 1, B)
    assert is_spent(over, 1)
    assert not is_spent(over, 2)
    assert not is_spent(used, 1)
    assert spent(used, 2, B).charges == 0
    again = charge(over, episode=2)
    assert again is not None
    assert not again.spent


def test_a_loop_follows_causes_and_ends_with_the_given_node() -> None:
    causes = {A: B, B: C, C: A}
    assert loop_of(A, B, causes.get) == Loop((C, B, A), closed=True)
    assert loop_of(A, A, causes.get) == Loop((A,), closed=True)
    assert loop_of(A, None, causes.get) == Loop((A,), closed=False)
    assert loop_of(A, B, {B: C}.get) == Loop((C, B, A), closed=False)
    assert loop_of(D, A, causes.get) == Loop((C, B, A, D), closed=False)


def test_the_length_of_a_chain_of_causes_is_limited() -> None:
    endless = loop_of(A, Id("Node", "", "0"), lambda one: Id("Node", "", str(int(one.name) + 1)))
    assert len(endless.ids) == 1_000
    assert not endless.closed


def test_messages_name_the_node_and_the_nodes_that_keep_it_running() -> None:
    assert budget_message(A, Loop((B, A), closed=True), 32) == (
        "Node/a does not settle: changes would have run it again more than 32 times; "
        "Node/b → Node/a → Node/b keep each other running; a run with unchanged inputs must have an unchanged result"
    )
    assert "its own runs keep starting it again" in budget_message(A, Loop((A,), closed=True), 32)
    assert "events from outside keep starting it" in budget_message(A, Loop((A,), closed=False), 32)
    assert "in the chain Node/b → Node/a, each node starts" in budget_message(A, Loop((B, A), closed=False), 32)
    chain = chain_of(C, B, {B: A}.get)
    assert chain == (A, B, C)
    assert depth_message(C, chain, 1) == (
        "Node/c has a chain of more than 1 creators: Node/a → Node/b → Node/c; each creates the next one; such a chain must end"
    )


def test_messages_shorten_long_chains() -> None:
    many = tuple(Id("", "", f"{at:02}") for at in range(20))
    assert depth_message(A, many, 19) == (
        "Node/a has a chain of more than 19 creators: 00 → 01 → 02 → 03 → … 12 more … → 16 → 17 → 18 → 19; "
        "each creates the next one; such a chain must end"
    )
