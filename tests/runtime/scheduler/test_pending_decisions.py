"""Pending decisions: one entry for each package, with its last verdict, and its last request to run or to be disabled."""

from hypothesis import given
from hypothesis import strategies as st

from wharfinger.runtime.scheduler.events import Decided, Disable, Effect, Schedule
from wharfinger.runtime.scheduler.pending_decisions import PackageOrders, PendingDecisions

YES = Decided("a", allowed=True, reason="EnabledByDefault", message="")
NO = Decided("a", allowed=False, reason="DependencyNotEnabled", message="dependency db is not enabled")
STOP = Disable("a", "DependencyNotEnabled", "dependency db is not enabled", uninstall=False)


def taken(orders: PendingDecisions) -> list[PackageOrders]:
    found = []
    while (entry := orders.take()) is not None:
        found.append(entry)
    return found


def test_the_inbox_is_empty_at_first() -> None:
    assert PendingDecisions().take() is None


def test_an_entry_of_a_package_has_its_verdict_and_order() -> None:
    orders = PendingDecisions()
    orders.put([NO, STOP])
    assert taken(orders) == [PackageOrders("a", NO, STOP)]
    assert orders.take() is None


def test_a_later_order_replaces_a_pending_order() -> None:
    orders = PendingDecisions()
    orders.put([NO, STOP])
    orders.put([YES, Schedule("a", 7, "DecisionChanged:EnabledByDefault")])
    assert taken(orders) == [PackageOrders("a", YES, Schedule("a", 7, "DecisionChanged:EnabledByDefault"))]


def test_a_verdict_alone_retains_the_pending_order() -> None:
    orders = PendingDecisions()
    orders.put([Schedule("a", 1, "Scheduled"), YES])
    assert taken(orders) == [PackageOrders("a", YES, Schedule("a", 1, "Scheduled"))]


def test_packages_retain_the_position_of_their_first_order() -> None:
    orders = PendingDecisions()
    orders.put([Schedule("b", 1, "Scheduled"), YES, Schedule("c", 2, "Scheduled"), Schedule("b", 3, "Again")])
    assert [(entry.name, entry.order) for entry in taken(orders)] == [
        ("b", Schedule("b", 3, "Again")),
        ("a", None),
        ("c", Schedule("c", 2, "Scheduled")),
    ]


def test_an_order_after_its_entry_was_taken_is_queued_last() -> None:
    orders = PendingDecisions()
    orders.put([YES, Schedule("b", 1, "Scheduled")])
    assert orders.take() == PackageOrders("a", YES)
    orders.put([STOP])
    assert taken(orders) == [PackageOrders("b", None, Schedule("b", 1, "Scheduled")), PackageOrders("a", None, STOP)]


EFFECTS = st.lists(
    st.one_of(
        st.builds(Decided, st.sampled_from("abc"), st.booleans(), st.sampled_from(["x", "y"]), st.just("")),
        st.builds(Disable, st.sampled_from("abc"), st.just("x"), st.just(""), st.booleans()),
        st.builds(Schedule, st.sampled_from("abc"), st.integers(1, 9), st.just("Scheduled")),
    )
)


def max_index(effects: list[Effect], wanted: Effect) -> int:
    return max(index for index, effect in enumerate(effects) if effect is wanted)


def test_an_approval_cancels_a_pending_disable() -> None:
    orders = PendingDecisions()
    orders.put([Disable("a", "DisabledByScript", "no GPU", uninstall=True), YES])
    assert taken(orders) == [PackageOrders("a", YES, None)]


@given(EFFECTS)
def test_the_last_verdict_and_order_of_each_package_are_performed(effects: list[Effect]) -> None:
    orders = PendingDecisions()
    orders.put(effects)
    found = taken(orders)
    assert [entry.name for entry in found] == list(dict.fromkeys(effect.name for effect in effects))
    for entry in found:
        own = [effect for effect in effects if effect.name == entry.name]
        verdicts = [effect for effect in own if isinstance(effect, Decided)]
        rest = [effect for effect in own if not isinstance(effect, Decided)]
        assert entry.decided == (verdicts[-1] if verdicts else None)
        last = rest[-1] if rest else None
        allowed_since = isinstance(last, Disable) and any(
            isinstance(effect, Decided) and effect.allowed for effect in own[max_index(own, last) :]
        )
        assert entry.order == (None if allowed_since else last)
