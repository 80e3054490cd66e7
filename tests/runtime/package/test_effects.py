"""The effects of a package: each simple effect describes its action, and an effect that begins or enqueues an operation is
marked as such.
"""

from typing import get_args

from wharfinger.runtime.package import effects


def test_simple_effects_describe_their_action() -> None:
    words = [effect.value for effect in effects.Simple]
    assert len(set(words)) == len(words)
    assert all(" " in word and not word.endswith(".") for word in words)


def test_effects_that_begin_or_enqueue_are_marked_as_such() -> None:
    made = {each.__name__ for each in vars(effects).values() if isinstance(each, type)} - {"BeginBase", "EnqueueBase"}
    assert {name for name in made if name.startswith("Enqueue")} == {
        each.__name__ for each in get_args(effects.Enqueue)
    }
    begin = {name for name in made if name.startswith("Begin")} | {"RepeatVote"}
    assert begin == {each.__name__ for each in get_args(effects.Begin)}
    every = set(get_args(effects.Effect))
    assert all(issubclass(each, effects.EnqueueBase) for each in get_args(effects.Enqueue))
    assert all(issubclass(each, effects.BeginBase) for each in get_args(effects.Begin))
    assert {*get_args(effects.Enqueue), *get_args(effects.Begin), effects.Simple} < every
