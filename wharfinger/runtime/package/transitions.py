"""The changes of a package's state by facts (:mod:`~wharfinger.runtime.package.facts`). Pure.

==================  =============================================  ==========================================================
part of the state   changed by                                     rule
==================  =============================================  ==========================================================
status, warnings    StatusSet, Warned, Renamed                     new warnings about a subject replace earlier ones
desired             DesiredGiven, FoundInstalled, SettingsGiven,   after a request for a reconciliation, downloads ask the
                    AccountGiven, RefreshWanted, UpdateBegun,      registry until one download has done so; a permanent failure
                    Downloaded, AttemptBegun, AttemptFailed,       of an attempt is kept until another attempt begins
                    AttemptSettled
files               Downloaded … LoadCompleted, ChartSearched,     the result of a search is valid for one digest
                    WebhooksSearched
node                Offered, Joined, JoinRefused,                  a refusal lasts until the next offer; a reconciliation ends
                    Reconciliation…, Disable…,                     a Disable; a Disable that a suspension interrupts counts
                    MissedDisableDropped, SuspendBegun             as missed
vote                VoteCast, VoteBegun, ScriptAsked,              a script that fails was asked, but has not answered
                    ScriptAnswered, VoteReported, ScriptDone
configuration       SettingsConverted, Configured,                 settings for a removal are in force although no definition
                    AdoptedForRemoval, ValuesPatched               has checked them
applied             ObjectsKnown, ChartApplied, OverridesMatched,  if the inputs of the render change, fights are forgotten
                    ValuesRead, ValuesOutdated, Verified,
                    DriftSeen
hooks               HooksStarting, HooksStarted, HooksStopped,     stopped hooks have no scope, no failure and no completed
                    StartupHookDone, HookRan, LaneFailed,          startup; their history stays
                    LaneRecovered
crds                Offered, JoinRefused, CrdsBegun, CrdsEnded,    CRDs of a new definition do not count as established
                    CrdsEstablished
removal             RemovalBegun, DeletionChosen,                  delete hooks that were skipped stay skipped
                    DeleteHooksSkipped
==================  =============================================  ==========================================================

Only this module replaces parts of the state. No trio, no clock, no I/O: a fact contains everything that is needed to apply it.
"""

from typing import Final, assert_never

from msgspec.structs import replace

from wharfinger.runtime.package.facts import (
    AttemptBegun,
    AttemptFact,
    AttemptFailed,
    AttemptSettled,
    ConfigurationFact,
    CrdsBegun,
    CrdsEnded,
    CrdsFact,
    DeleteHooksSkipped,
    DesiredFact,
    DesiredGiven,
    DisableBegun,
    DisableEnded,
    DisableMissed,
    DriftSeen,
    Fact,
    FilesFact,
    HookRan,
    HooksFact,
    Joined,
    JoinRefused,
    LaneFailed,
    LaneRecovered,
    LoadCompleted,
    MissedDisableDropped,
    NodeFact,
    Offered,
    ReconciliationBegun,
    ReconciliationOrdered,
    RefreshWanted,
    ReleaseFact,
    RemovalBegun,
    RemovalFact,
    ScriptDone,
    ScriptFact,
    SettingsGiven,
    StatusSet,
    SuspendBegun,
    UpdateBegun,
    ValuesOutdated,
    VoteBegun,
    VoteCast,
    Warned,
)
from wharfinger.runtime.package.findings import (
    AccountGiven,
    AdoptedForRemoval,
    AttemptBase,
    ChartApplied,
    ChartSearched,
    ConfigurationBase,
    Configured,
    CrdsBase,
    CrdsEstablished,
    DeletionChosen,
    DesiredBase,
    Downloaded,
    FilesBase,
    FoundInstalled,
    FoundStored,
    HooksBase,
    HooksStarted,
    HooksStarting,
    HooksStopped,
    HooksUnusable,
    NodeBase,
    ObjectsKnown,
    OverridesMatched,
    PackageRead,
    ReleaseBase,
    RemovalBase,
    Renamed,
    ScriptAnswered,
    ScriptAsked,
    ScriptBase,
    SettingsConverted,
    StartupHookDone,
    Unpacked,
    ValuesPatched,
    ValuesRead,
    Verified,
    VoteReported,
    WebhooksSearched,
)
from wharfinger.runtime.package.state import (
    NO_FAILURES,
    Applied,
    Attempt,
    Configuration,
    Crds,
    DesiredPackage,
    Files,
    HookHistory,
    HookState,
    Node,
    Package,
    Removal,
    Vote,
)

_NEVER_RAN: Final = HookHistory()


def applied(package: Package, event: Fact) -> Package:
    """Return the state of a package after a fact: an event that reports something that has happened."""
    match event:
        case HooksBase():  # checked first, because it is the most frequent fact
            return replace(package, hooks=_hooks(package.hooks, event))
        case StatusSet() | Warned() | Renamed() | Downloaded() | Offered() | JoinRefused():
            return _whole(package, event)
        case ReleaseBase():
            return replace(package, applied=_release(package.applied, event))
        case NodeBase():
            return replace(package, node=_node(package.node, event))
        case DesiredBase():
            return replace(package, desired=_desired(package.desired, event))
        case FilesBase():
            return replace(package, files=_files(package.files, event))
        case ConfigurationBase():
            return replace(package, configuration=_configuration(package.configuration, event))
        case ScriptBase():
            return replace(package, vote=_vote(package.vote, event))
        case CrdsBase():
            return replace(package, crds=_crds(package.crds, event))
        case RemovalBase():
            return replace(package, removal=_removal(package.removal, event))
        case AttemptBase():
            return replace(package, desired=replace(package.desired, attempt=_attempt(package.desired.attempt, event)))
        case _:
            assert_never(event)


def _whole(package: Package, event: StatusSet | Warned | Renamed | Downloaded | Offered | JoinRefused) -> Package:
    """Return the package after an event that changes a field of the package itself, or several parts of its state."""
    match event:
        case StatusSet(status):
            return replace(package, status=status)
        case Renamed(identity):
            return replace(package, id=identity)
        case Warned(subject, warnings):
            return replace(package, warnings={**package.warnings, subject: warnings})
        case Downloaded(_, asked):
            desired = replace(package.desired, refresh=False) if asked else package.desired
            return replace(package, desired=desired, files=_files(package.files, event))
        case Offered(established):
            # The state changes before the scheduler is notified, because the scheduler's orders begin operations immediately.
            crds = replace(package.crds, established=established)
            return replace(package, node=_node(package.node, event), crds=crds)
        case JoinRefused(_, established):
            crds = replace(package.crds, established=established)
            return replace(package, node=_node(package.node, event), crds=crds)
        case _:
            assert_never(event)


def _desired(desired: DesiredPackage, event: DesiredFact) -> DesiredPackage:
    match event:
        case DesiredGiven(package, version, source, settings, directives, first):
            again = not first and desired.directives.requested != directives.requested
            refresh = desired.refresh or again
            return DesiredPackage(
                package, version, source, settings, directives, desired.begun, refresh, desired.attempt
            )
        case FoundInstalled(package, version, directives):
            # An account that was given for a removal does not replace the account in later directives.
            account = desired.account if directives is None else None
            directives = directives or desired.directives
            return replace(desired, package=package, version=version, directives=directives, account=account)
        case SettingsGiven(settings):
            return replace(desired, settings=settings)
        case AccountGiven(account):
            return replace(desired, account=account)
        case RefreshWanted():
            return replace(desired, refresh=True)
        case UpdateBegun(at):
            return replace(desired, begun=at)
        case _:
            assert_never(event)


def _files(files: Files, event: FilesFact) -> Files:
    match event:
        case Downloaded(manifest, _):
            return replace(files, manifest=manifest)
        case Unpacked(tree):
            return replace(files, tree=tree)
        case FoundStored(manifest, tree):
            return replace(files, manifest=manifest, tree=tree)
        case PackageRead(definition, hooks):
            return replace(files, definition=definition, hooks=hooks)
        case HooksUnusable():
            return replace(files, hooks=())
        case LoadCompleted():
            return replace(files, loaded_once=True)
        case ChartSearched(digest, use):
            return replace(files, chart_use=(digest, use))
        case WebhooksSearched(digest, mentioned):
            return replace(files, mentions_webhooks=(digest, mentioned))
        case _:
            assert_never(event)


def _node(node: Node, event: NodeFact) -> Node:
    match event:
        case Offered(_):
            return replace(node, refused=None)
        case Joined(definition):
            return replace(node, joined=definition)
        case JoinRefused(failure, _):
            return replace(node, refused=failure)
        case ReconciliationOrdered(run):
            return replace(node, run=run)
        case ReconciliationBegun():
            return replace(node, disabling=None, missed_disable=None)
        case DisableBegun(reason, uninstall):
            return replace(node, disabling=(reason, uninstall))
        case DisableEnded():
            return replace(node, disabling=None)
        case DisableMissed(reason, uninstall):
            return replace(node, missed_disable=(reason, uninstall))
        case MissedDisableDropped():
            return replace(node, missed_disable=None)
        case SuspendBegun():
            return replace(node, disabling=None, missed_disable=node.disabling or node.missed_disable)
        case _:
            assert_never(event)


def _vote(vote: Vote, event: ScriptFact) -> Vote:
    match event:
        case VoteCast(cast):
            return replace(vote, cast=cast)
        case VoteBegun(scope, reason, before):
            return replace(vote, voting=scope, reason=reason, saw=vote.saw if before is None else before)
        case ScriptAsked(before):
            return replace(vote, saw=before)
        case ScriptAnswered(kept):
            return replace(vote, kept=kept)
        case VoteReported(about):
            return replace(vote, asked_about=about)
        case ScriptDone():
            return replace(vote, voting=None, reason="")
        case _:
            assert_never(event)


def _configuration(now: Configuration, event: ConfigurationFact) -> Configuration:
    match event:
        case SettingsConverted(newest):
            return replace(now, newest=newest)
        case Configured(by, newest, settings, values):
            return replace(now, configured=newest, configured_by=by, settings=settings, values=values)
        case AdoptedForRemoval(newest, values):
            return replace(now, configured=newest, configured_by=None, values=values)
        case ValuesPatched(values):
            return replace(now, values=values)
        case _:
            assert_never(event)


def _release(release: Applied, event: ReleaseFact) -> Applied:
    match event:
        case ObjectsKnown(objects):
            return replace(release, objects=objects)
        case ChartApplied(objects, inputs, brought):
            same = release.brought is not None and release.brought.inputs == inputs
            # The recorded fights were about the objects that were rendered from the earlier inputs.
            return replace(release, objects=objects, brought=brought, fought=release.fought if same else ())
        case OverridesMatched(unmatched):
            return replace(release, unmatched=unmatched)
        case ValuesRead():
            return replace(release, dirty=False)
        case ValuesOutdated():
            return replace(release, dirty=True)
        case Verified():
            return replace(release, verified=True)
        case DriftSeen(drift, fought):
            return replace(release, drift=drift, fought=fought)
        case _:
            assert_never(event)


def _hooks(hooks: HookState, event: HooksFact) -> HookState:
    match event:
        case HookRan(hook, error, at):
            ran = HookHistory(hooks.history.get(hook, _NEVER_RAN).runs + 1, at, error)
            return replace(hooks, history={**hooks.history, hook: ran})
        case HooksStarting(scope):
            return replace(hooks, scope=scope)
        case HooksStarted(started):
            return replace(hooks, started=started)
        case HooksStopped():
            return HookState(history=hooks.history)
        case StartupHookDone(hook):
            return replace(hooks, startup_done=hooks.startup_done | {hook})
        case LaneFailed(hook, lane, error):
            return replace(hooks, failing={**hooks.failing, (hook, lane): error})
        case LaneRecovered(hook, lane):
            left = {key: error for key, error in hooks.failing.items() if key != (hook, lane)}
            return replace(hooks, failing=left or NO_FAILURES)
        case _:
            assert_never(event)


def _crds(crds: Crds, event: CrdsFact) -> Crds:
    match event:
        case CrdsBegun(scope):
            return replace(crds, scope=scope)
        case CrdsEnded():
            return replace(crds, scope=None)
        case CrdsEstablished(kinds):
            return replace(crds, established=kinds)
        case _:
            assert_never(event)


def _removal(removal: Removal, event: RemovalFact) -> Removal:
    match event:
        case RemovalBegun(deletion, disowned, moved):
            return replace(removal, deletion=deletion, disowned=disowned, moved=moved)
        case DeletionChosen(deletion):
            return replace(removal, deletion=deletion)
        case DeleteHooksSkipped():
            return replace(removal, skip_delete_hooks=True)
        case _:
            assert_never(event)


def _attempt(attempt: Attempt, event: AttemptFact) -> Attempt:
    match event:
        case AttemptBegun(asked, at):
            return Attempt(asked, at, changed=attempt.asked not in ("", asked))
        case AttemptFailed(failure):
            kept = attempt.failure if attempt.failure is not None and attempt.failure.permanent else failure
            return replace(attempt, failures=attempt.failures + 1, failure=kept)
        case AttemptSettled():
            return replace(attempt, settled=True)
        case _:
            assert_never(event)
