"""Case 5: waiting events of one hook are combined into one run; consecutive events of a group become one context."""

from tests.hooks.conformance.telling import asking, happened, pod, read, unopened, waiting
from wharfinger.formats.json.value import JsonObject
from wharfinger.hooks.config.bindings import WatchVerb
from wharfinger.hooks.running.inbox import Inbox, Occurrence
from wharfinger.hooks.watching.contexts import synchronized_together

ADDED, MODIFIED, DELETED = WatchVerb.ADDED, WatchVerb.MODIFIED, WatchVerb.DELETED
H1 = asking(
    """
schedule:
- {name: tick, crontab: "* * * * *"}
- {name: grouped tick, crontab: "* * * * *", group: main}
kubernetes:
- {name: pods, kind: Pod, keepFullObjectsInMemory: false, jqFilter: .metadata.name}
- {name: one, kind: Pod, keepFullObjectsInMemory: false, jqFilter: .metadata.name, group: main}
- {name: two, kind: Pod, keepFullObjectsInMemory: false, jqFilter: .metadata.name, group: main}
- {name: three, kind: Pod, keepFullObjectsInMemory: false, jqFilter: .metadata.name, group: other}
""",
    "hooks/h1.sh",
)
H2 = asking("kubernetes: [{name: pods, kind: Pod}]", "hooks/h2.sh")
TICK, GROUPED_TICK = H1.config.schedules
PODS, ONE, TWO, THREE = H1.config.kubernetes


def told(box: Inbox) -> list[JsonObject]:
    """Return the contexts of the next run."""
    return read(*unopened(box.hook).contexts(box.hook, box.offered()))


def short(box: Inbox) -> list[str]:
    """Return the contexts in short: ``pods Added a``, ``tick``, or ``main: one`` for a group."""
    words = []
    for context in told(box):
        if context.get("type") == "Group":
            words.append(f"{context['groupName']}: {context['binding']}")
        else:
            words.append(
                " ".join(str(context[key]) for key in ("binding", "watchEvent", "filterResult") if key in context)
            )
    return words


def test_single_event_is_one_context() -> None:
    assert short(waiting(H1, [happened(PODS, ADDED, pod("a"), "a")])) == ["pods Added a"]


def test_waiting_occurrences_are_reported_in_order() -> None:
    occurrences = [
        happened(PODS, ADDED, pod("a"), "a"),
        Occurrence(TICK, None),
        happened(PODS, MODIFIED, pod("a"), "a2"),
        happened(PODS, DELETED, pod("b"), "b"),
    ]
    assert short(waiting(H1, occurrences)) == ["pods Added a", "tick", "pods Modified a2", "pods Deleted b"]


def test_events_of_two_hooks_are_never_combined() -> None:
    opened = unopened(H1, H2)
    other = H2.config.kubernetes[0]
    opened.inbox(H1, "main").add(happened(PODS, ADDED, pod("a"), "a"))
    opened.inbox(H2, "main").add(happened(other, ADDED, pod("b")))
    opened.inbox(H1, "main").add(happened(PODS, ADDED, pod("c"), "c"))
    assert short(opened.inbox(H1, "main")) == ["pods Added a", "pods Added c"]
    assert [context["binding"] for context in told(opened.inbox(H2, "main"))] == ["pods"]


def test_events_of_two_queues_are_never_combined() -> None:
    opened = unopened(H1)
    opened.inbox(H1, "main").add(happened(PODS, ADDED, pod("a"), "a"))
    opened.inbox(H1, "other").add(happened(PODS, ADDED, pod("b"), "b"))
    assert short(opened.inbox(H1, "main")) == ["pods Added a"]
    assert short(opened.inbox(H1, "other")) == ["pods Added b"]


def test_consecutive_occurrences_of_a_group_become_one_context() -> None:
    row = [happened(ONE, ADDED, pod("a"), "a"), happened(TWO, ADDED, pod("b"), "b"), Occurrence(GROUPED_TICK, None)]
    assert short(waiting(H1, row)) == ["main: grouped tick"]
    (context,) = told(waiting(H1, row))
    assert sorted(context) == ["binding", "groupName", "snapshots", "type"]


def test_other_occurrences_interrupt_the_combining_of_a_group() -> None:
    occurrences = [
        happened(ONE, ADDED, pod("a"), "a"),
        happened(TWO, ADDED, pod("b"), "b"),
        happened(PODS, ADDED, pod("c"), "c"),
        happened(PODS, ADDED, pod("d"), "d"),
        happened(ONE, ADDED, pod("e"), "e"),
        happened(THREE, ADDED, pod("f"), "f"),
        happened(ONE, ADDED, pod("g"), "g"),
    ]
    assert short(waiting(H1, occurrences)) == [
        "main: two",
        "pods Added c",
        "pods Added d",
        "main: one",
        "other: three",
        "main: one",
    ]


def test_retry_gets_the_same_events_and_later_ones() -> None:
    box = waiting(H1, [happened(PODS, ADDED, pod("a"), "a")])
    assert short(box) == ["pods Added a"]
    box.add(happened(PODS, ADDED, pod("b"), "b"))
    assert short(box) == ["pods Added a", "pods Added b"]


def test_processed_events_are_not_reported_again() -> None:
    box = waiting(H1, [happened(PODS, ADDED, pod("a"), "a")])
    running = box.offered()
    box.add(happened(PODS, ADDED, pod("b"), "b"))
    box.remove_processed(running)
    assert short(box) == ["pods Added b"]


def test_empty_inbox_offers_nothing() -> None:
    assert waiting(H1, []).offered() == ()


def names(text: str) -> list[list[str]]:
    runs = synchronized_together(asking(f"kubernetes:\n{text}").config)
    return [[binding.name for binding in run] for run in runs]


def test_synchronizations_without_a_group_are_not_combined() -> None:
    assert names("- {name: a, kind: Pod}\n- {name: b, kind: Pod}\n- {name: c, kind: Pod, group: g}") == [
        ["a"],
        ["b"],
        ["c"],
    ]


def test_grouped_synchronization_is_combined_with_the_following_ones() -> None:
    """The synchronization of a grouped binding is combined with those of the following bindings, up to one whose
    ``executeHookOnSynchronization`` differs.
    """
    text = "- {name: a, kind: Pod, group: g}\n- {name: b, kind: Pod}\n- {name: c, kind: Pod, group: h}\n"
    assert names(text) == [["a", "b", "c"]]
    apart = "- {name: a, kind: Pod, group: g}\n- {name: b, kind: Pod, group: g, executeHookOnSynchronization: false}\n"
    assert names(apart + "- {name: c, kind: Pod, group: g}") == [["a"], ["b"], ["c"]]
