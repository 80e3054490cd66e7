"""The offer of a package to the scheduler: when its node is offered, and when its script runs."""

import pytest

from tests.runtime.package.test_machine import (
    GIVEN,
    LOADING,
    NAME,
    SCRIPTED,
    after,
    effects,
    loaded,
    offer,
    package,
    refused,
)
from wharfinger.queue.scope import WorkScope
from wharfinger.runtime.lifecycle.desired_state import Change, Decision, DecisionKind
from wharfinger.runtime.package.effects import BeginVote, CastVote, Effect, EnqueueVote, RepeatVote, Simple, Tell
from wharfinger.runtime.package.events import (
    DesiredAdopted,
    NeedsChanged,
    OthersTurned,
    UpdateStarted,
    Voted,
    VoteDone,
    VoteRecorded,
    VoteRepeated,
    VoteStarted,
)
from wharfinger.runtime.package.state import Package
from wharfinger.runtime.scheduler.events import Rescheduled, ScriptVoted


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (package(), Tell(Rescheduled(NAME, "PatchesChanged"))),
        (loaded(), Tell(Rescheduled(NAME, "PatchesChanged"))),
        (loaded(SCRIPTED), BeginVote("PatchesChanged")),
        (refused(SCRIPTED), offer(SCRIPTED, fresh=True)),
    ],
)
def test_a_changed_specification_is_offered_or_put_to_the_vote(known: Package, expected: Effect) -> None:
    decision = Decision(DecisionKind.RECONFIGURE, (Change.PATCHES,))
    desired = DesiredAdopted(GIVEN, decision, 1, None, new_login=False, needs_changed=False)
    assert effects(known, desired) == (Simple.UNPARK, expected)
    assert effects(known, desired, LOADING) == (Simple.UNPARK,)


def test_changed_dependencies_are_offered_unless_a_load_runs() -> None:
    assert effects(loaded(), NeedsChanged()) == (offer(),)
    assert effects(loaded(), NeedsChanged(), LOADING) == ()
    assert effects(package(), NeedsChanged()) == ()


def test_a_vote_is_recorded_and_reported_to_the_scheduler() -> None:
    scope, vote = WorkScope("vote"), ScriptVoted(NAME, enabled=True)
    assert effects(loaded(SCRIPTED), Voted(True, "yes")) == (CastVote(True, "yes", "", may_be_early=True),)
    assert effects(loaded(), Voted(None, "broken", failed=True)) == (CastVote(None, "", "broken", may_be_early=False),)
    assert effects(loaded(), VoteRecorded(vote)) == (Tell(vote),)
    assert effects(loaded(), VoteRecorded(vote), LOADING) == ()
    assert effects(refused(), VoteRecorded(vote)) == ()
    assert after(refused(), VoteRecorded(vote)).vote.cast == vote
    assert effects(loaded(), VoteStarted(scope, "why", None)) == (EnqueueVote(scope, "why"),)
    assert effects(loaded(), VoteDone("why")) == (Simple.RESTATE, Tell(Rescheduled(NAME, "why")))
    known = after(loaded(), VoteStarted(scope, "", ("dns",)))
    assert (known.vote.saw, known.vote.voting) == (("dns",), scope)
    assert after(known, VoteRepeated()).vote.voting is None
    assert effects(known, VoteRepeated()) == (Simple.RESTATE,)


@pytest.mark.parametrize(
    ("runs", "before", "forced", "asked"),
    [
        (True, ("dns",), True, False),
        (True, ("dns",), False, False),
        (True, (), False, True),
        (False, ("dns",), True, True),
        (False, ("dns",), False, False),
        (False, (), True, True),
    ],
)
def test_a_script_runs_again_only_for_other_inputs(
    runs: bool, before: tuple[str, ...], forced: bool, asked: bool
) -> None:
    scope = WorkScope("vote")
    known = after(loaded(SCRIPTED), VoteStarted(scope, "", ("dns",)))
    if not runs:
        scope.cancel("superseded")
    assert effects(known, OthersTurned(before, forced)) == ((RepeatVote(before, ""),) if asked else ())


def test_an_interrupted_vote_for_changed_settings_still_ends_in_a_run() -> None:
    first, second = WorkScope("vote"), WorkScope("vote")
    known = after(loaded(SCRIPTED), VoteStarted(first, "SettingsChanged", None))
    assert effects(known, OthersTurned((), forced=False)) == ()
    again = RepeatVote(("dns",), "SettingsChanged")
    assert effects(known, OthersTurned(("dns",), forced=False)) == (again,)
    assert effects(known, OthersTurned((), forced=True)) == (RepeatVote((), "SettingsChanged"),)
    first.cancel("asked again")
    known = after(known, VoteStarted(second, again.reason, again.before))
    assert effects(known, OthersTurned(("web",), forced=False)) == (RepeatVote(("web",), "SettingsChanged"),)
    known = after(known, VoteDone("SettingsChanged"))
    assert (known.vote.voting, known.vote.reason) == (None, "")
    assert effects(known, OthersTurned(("web",), forced=False)) == (RepeatVote(("web",), ""),)


def test_an_update_cancels_the_vote_for_a_run() -> None:
    known = after(loaded(SCRIPTED), VoteStarted(WorkScope("vote"), "SettingsChanged", None))
    known = after(known, UpdateStarted(WorkScope("update"), 2))
    assert (known.vote.voting, known.vote.reason) == (None, "")
