"""Votes of enabled scripts: when another package causes a script to run again, and when a vote is provisional."""

from dataclasses import dataclass, field, replace

from tests.runtime.package.test_machine import SCRIPTED, installed
from tests.runtime.support.notes import instance, learn, put
from wharfinger.packages.definition.definition import Definition, Layout
from wharfinger.packages.definition.requirements import NO_REQUIREMENTS
from wharfinger.runtime.core.decision_reporting import UnreportedDecisions
from wharfinger.runtime.core.modules import Modules
from wharfinger.runtime.core.script_votes import ScriptVotes
from wharfinger.runtime.lifecycle.desired_state import DesiredState
from wharfinger.runtime.lifecycle.store import LifecycleStore
from wharfinger.runtime.package.effects import CastVote
from wharfinger.runtime.package.events import Event, OthersTurned, VoteRecorded
from wharfinger.runtime.package.findings import PackageRead
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.resources.identity import ModuleId
from wharfinger.runtime.scheduler.events import IntentSet, NodeAdded, Resumed, ScriptVoted
from wharfinger.runtime.scheduler.graph import Node
from wharfinger.runtime.scheduler.scheduler import Scheduler

VOTING = replace(SCRIPTED, layout=Layout.MODULE_FOLDER, weight=20)
VOTE = CastVote(True, "yes", "", may_be_early=True)
DESIRED = DesiredState("folder:/x", "web", "1.0.0", "")


@dataclass
class Ground:
    """A loaded package `web` with a script, and the parts of a runtime around it."""

    scheduler: Scheduler = field(default_factory=Scheduler)
    lifecycle: LifecycleStore = field(default_factory=LifecycleStore)
    instances: dict[str, Instance] = field(default_factory=dict)
    taken: list[tuple[str, Event]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.unreported = UnreportedDecisions(self.scheduler)
        self.modules = Modules(self.instances, self.scheduler, "")
        self.votes = ScriptVotes(self.instances, self.lifecycle, self.unreported, self.modules, self.take)
        self.scheduler.apply(Resumed())
        self.web = self.add("web", VOTING)

    def add(self, name: str, definition: Definition | None = None) -> Instance:
        one = self.instances[name] = instance(ModuleId(name))
        if definition is not None:
            learn(one, PackageRead(replace(definition, name=name), ()))
        return one

    def switch_on(self, name: str) -> None:
        """Enable a Module that comes before `web` in the order."""
        self.add(name, replace(VOTING, weight=10, enabled_script=False))
        self.scheduler.apply(IntentSet(name, enabled=True))
        self.scheduler.apply(NodeAdded(Node(name, "1.0.0", NO_REQUIREMENTS)))
        self.scheduler.apply(ScriptVoted(name, None))
        assert self.scheduler.enabled(name)
        self.votes.decision_changed()

    def take(self, one: Instance, event: Event) -> None:
        self.taken.append((one.id.name, event))

    def since(self) -> list[tuple[str, Event]]:
        taken, self.taken = self.taken, []
        return taken


def recorded(*, provisional: bool) -> tuple[str, Event]:
    return "web", VoteRecorded(ScriptVoted("web", True, "yes", "", provisional=provisional))


def asked(*before: str, forced: bool) -> tuple[str, Event]:
    return "web", OthersTurned(before, forced)


def test_a_vote_is_provisional_while_an_installed_package_is_not_loaded() -> None:
    ground = Ground()
    other = ground.add("dns")
    put(other, installed(other.state).status)
    ground.votes.record(ground.web, VOTE)
    assert ground.since() == [recorded(provisional=True)]
    ground.votes.rerun_provisional()
    assert ground.since() == []
    learn(other, PackageRead(SCRIPTED, ()))
    ground.votes.rerun_provisional()
    assert ground.since() == [asked(forced=True)]  # dns is loaded, but not on
    ground.votes.record(ground.web, VOTE)
    assert ground.since() == [recorded(provisional=False)]
    ground.votes.rerun_provisional()
    assert ground.since() == []


def test_a_vote_is_provisional_for_unknown_but_not_for_leaving_packages() -> None:
    ground = Ground()
    ground.unreported.unknown.add("dns")
    ground.votes.record(ground.web, VOTE)
    ground.votes.record(ground.web, replace(VOTE, may_be_early=False))
    ground.unreported.unknown.clear()
    going = ground.add("log")
    put(going, installed(going.state).status)
    ground.lifecycle.reconcile("log", DESIRED)
    ground.lifecycle.begin_removal("log")
    ground.votes.record(ground.web, VOTE)
    assert ground.since() == [recorded(provisional=True), *[recorded(provisional=False)] * 2]


def test_the_script_of_a_forgotten_package_does_not_run_again() -> None:
    ground = Ground()
    ground.unreported.unknown.add("dns")
    ground.votes.record(ground.web, VOTE)
    ground.votes.forget("web")
    ground.unreported.unknown.clear()
    ground.since()
    ground.votes.rerun_provisional()
    assert ground.since() == []


def test_a_script_that_sees_other_modules_runs_once_after_a_change() -> None:
    ground = Ground()
    ground.votes.rerun_one_if_modules_changed(ground.web)
    assert ground.since() == [asked(forced=False)]
    ground.votes.rerun_if_modules_changed()
    assert ground.since() == []  # the set of enabled Modules has not changed
    ground.switch_on("dns")
    ground.votes.rerun_if_modules_changed()
    assert ground.since() == [asked("dns", forced=False)]
    ground.votes.rerun_if_modules_changed()
    assert ground.since() == []
    ground.votes.node_removed("web")
    ground.votes.rerun_if_modules_changed()
    assert ground.since() == []


def test_a_script_does_not_run_while_its_package_is_loaded_again() -> None:
    ground = Ground()
    ground.lifecycle.reconcile("web", DESIRED)
    ground.lifecycle.begin_update("web")
    ground.votes.rerun_one_if_modules_changed(ground.web)
    assert ground.since() == []
    ground.lifecycle.complete_update("web")
    ground.votes.decision_changed()
    ground.votes.rerun_if_modules_changed()
    assert ground.since() == [asked(forced=False)]


def test_only_scripts_of_module_folders_see_the_modules_before_them() -> None:
    ground = Ground()
    for definition in (replace(VOTING, layout=Layout.PACKAGE), replace(VOTING, enabled_script=False)):
        ground.votes.rerun_one_if_modules_changed(ground.add("other", definition))
    ground.votes.rerun_one_if_modules_changed(ground.add("unread"))
    ground.votes.decision_changed()
    ground.votes.rerun_if_modules_changed()
    assert ground.since() == []
