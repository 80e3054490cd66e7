"""Test cases of the peer (the public program that spec/runtime describes) about stored hooks: all bindings are retained in
order, and cannot be changed.
"""

from tests.hooks.running.test_package_hooks import unopened
from tests.hooks.support.hooked import hook

BOTH = hook(
    "{configVersion: v1, onStartup: 3, beforeHelm: 1, afterHelm: 2, schedule: [{name: a, crontab: '* * * * *'},"
    " {name: b, crontab: '*/5 * * * *', queue: slow}]}"
)


def test_all_bindings_of_a_hook_are_retained_and_accessible() -> None:
    opened = unopened(BOTH)
    assert (BOTH.config.on_startup, BOTH.config.before_helm, BOTH.config.after_helm) == (3, 1, 2)
    assert [one.name for one in BOTH.config.schedules] == ["a", "b"]
    assert opened.crontabs() == ("* * * * *", "*/5 * * * *")
    assert [box.queue for crontab in opened.crontabs() for box in opened.tick(crontab)] == ["main", "slow"]


def test_returned_hooks_monitors_and_schedules_are_immutable() -> None:
    opened = unopened(BOTH)
    assert opened.hooks == (BOTH,)
    assert [type(one) for one in (opened.hooks, opened.monitors(), BOTH.config.schedules)] == [tuple] * 3
