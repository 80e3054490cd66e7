"""The texts that `wharfinger history` prints for recorded events and states. Pure.

The functions read events and states in the form that :mod:`~wharfinger.runtime.recording.canonical` defines.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.runtime.lifecycle.lifecycle_machine import Operation
from wharfinger.runtime.recording.machines import JOURNAL, LIFECYCLE, PACKAGE, QUEUE, SCHEDULER
from wharfinger.runtime.recording.past import Past
from wharfinger.runtime.recording.record import EventRecord
from wharfinger.runtime.recording.status_form import OTHERS
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.status.reasons import Reason
from wharfinger.runtime.status.summary import summarize

STATUS: Final = "status"
"""The name under which a history lists the changes of a package's status, as if the status were a state machine. In a recording,
the status is a part of the package's state.
"""

_PHASES: Final = {
    "Running": "runs",
    "Completing": "has succeeded",
    "Ending": "is being interrupted",
    "BackingOff": "waits for its next attempt",
    "Parked": "is parked",
}
_SCOPES: Final = tuple(operation.value for operation in (
    Operation.UPDATE,
    Operation.RECONCILIATION,
    Operation.DISABLE,
    Operation.VOTE,
    Operation.SUSPEND,
    Operation.REMOVAL,
))  # fmt: skip
_QUIET: Final = frozenset({"Enqueued", "Completed", "Interrupted", "RetryDue", "Begin", "Start", "Complete", "Finish"})
"""The events of queues and journals that only carry out earlier decisions, by their tags (the names of their classes)."""


@dataclass(frozen=True, slots=True)
class Words:
    """The texts for an event and its cause. ``decides`` is False if the event only carries out an earlier decision. It is True
    if the event is a decision or the reason for one.
    """

    event: str
    cause: str = ""
    decides: bool = True


def words_of(record: EventRecord, before: Past) -> Words:
    """Return the texts that describe an event of a package to users; ``before`` is the state of the package before the
    event.
    """
    tag, fields = _parts(record.event)
    effects = record.effects if isinstance(record.effects, list) else []
    if record.machine == LIFECYCLE.name:
        return _lifecycle(tag, fields, effects)
    if record.machine == SCHEDULER.name:
        return _scheduler(record, tag, fields, effects)
    if record.machine == QUEUE.name:
        return _queue(tag, fields, effects, before)
    if record.machine == JOURNAL.name:
        return Words(" ".join([tag.lower(), *_texts(fields)]), decides=False)
    return _package(tag, fields, effects)


def words_of_status(state: JsonValue) -> Words | None:
    """Return the texts for the change of the status in ``state``, the recorded state after a step of a package. Return None if
    the status did not change.
    """
    match state:
        case {"status": [dict() as stages, dict() as others, _]}:
            return _status(stages, others)
        case _:
            return None


def state_of(machine: str, past: Past) -> str:
    """Return a text for the state of one state machine of a package."""
    if machine == LIFECYCLE.name:
        return _lifecycle_state(past.lifecycle)
    if machine == SCHEDULER.name:
        return _entry_state(past.entry)
    if machine == QUEUE.name:
        return "; ".join(_lane_state(name, lane) for name, lane in past.lanes.items()) or "empty"
    if machine == JOURNAL.name:
        return "; ".join(_steps_state(name, form) for name, form in past.steps.items()) or "empty"
    if machine == PACKAGE.name:
        return _phase(past.phase)
    return summarize(past.status).state if past.status is not None else "not known"


# --- lifecycle ---------------------------------------------------------------------------------------------------------------


def _lifecycle(tag: str, fields: list[JsonValue], effects: list[JsonValue]) -> Words:
    causes: list[str] = []
    begun = ""
    for effect in effects:
        match effect:
            case ["Decided", ["Decision", [_, str(kind)], ["()", *changes]]]:
                causes.append(", ".join([f"requires {kind.lower()}", *(word.lower() for word in _members(changes))]))
            case ["Refused", [_, str(why)]]:
                causes.append(f"refused: {why.lower().replace('_', ' ')}")
            case ["CancelScope", scope, str(cause)]:
                causes.append(f"cancels operation {scope}: {cause}")
            case ["BeginScope", scope, _]:
                begun = f" as operation {scope}"
            case _:
                pass
    cause = "; ".join(causes)
    match tag, fields:
        case "Desired", [["DesiredState", _, package, version, *_]]:
            return Words(f"wanted: {package} {version}".rstrip(), cause)
        case "Begin", [[_, str(operation)], _]:
            return Words(f"{operation.lower()} begins{begun}", cause)
        case "BeginReconciliation", [_, str(reason)]:
            return Words(f"reconciliation begins{begun}", "; ".join([reason, *causes]))
        case _:
            return Words(_spaced(tag), cause)


def _lifecycle_state(form: JsonValue) -> str:
    match form:
        case [[*scopes], bool(applying), bool(leaving), _]:
            running = [f"{name} {scope}" for name, scope in zip(_SCOPES, scopes, strict=False) if scope is not None]
            extra = [*(["applying"] if applying else []), *(["leaving"] if leaving else [])]
            return ", ".join([*running, *extra]) or "idle"
        case _:
            return "not known"


# --- scheduler ---------------------------------------------------------------------------------------------------------------


def _scheduler(record: EventRecord, tag: str, fields: list[JsonValue], effects: list[JsonValue]) -> Words:
    subject = next((text for text in _texts(fields)), "")
    event = _spaced(tag)
    match tag, fields:
        case "mention", [str(other), str(subject)]:
            event = f"{subject}: {_spaced(other)}" if subject else _spaced(other)
        case "NodeAdded", [["Node", name, version, *_]]:
            subject, event = str(name), f"loaded {version}".rstrip()
        case ("Failed", [_, 0]):
            event = "no run was under way"
        case (("Completed" | "Failed"), [_, run]):
            event = f"run {run} {'is complete' if tag == 'Completed' else 'failed'}"
        case "IntentSet", [_, wanted]:
            event = (
                "the user does not request that it is on or off"
                if wanted is None
                else f"the user wants it {'on' if wanted else 'off'}"
            )
        case "Rescheduled", [_, str(reason)]:
            event = f"has to run again: {reason}"
        case "ScriptVoted", [_, vote, *_]:
            event = f"its enabled script voted {_vote(vote)}"
        case _:
            pass
    causes = [text for effect in effects if (text := _order(effect))]
    return Words(event, "; ".join(causes), decides=bool(effects) or subject == record.key)


def _order(effect: JsonValue) -> str:
    match effect:
        case ["Decided", _, bool(allowed), str(reason), str(message)]:
            return f"{'on' if allowed else 'off'}: {reason}" + (f": {message}" if message else "")
        case ["Disable", _, str(reason), _, bool(uninstall)]:
            return f"{'uninstall' if uninstall else 'stop'}: {reason}"
        case ["Schedule", _, run, str(reason)]:
            return f"run {run} is ordered: {reason}"
        case _:
            return ""


def _vote(vote: JsonValue) -> str:
    return "nothing" if vote is None else "yes" if vote else "no"


def _entry_state(form: JsonValue) -> str:
    match form:
        case [_, [str(phase), *details], decision, _, bool(due), [*lacks], *_]:
            verdict = "not decided"
            match decision:
                case [verdict_word, str(reason), *_]:
                    verdict = "on" if verdict_word == "Enable" else f"off ({reason})"
                case _:
                    pass
            waits = [f"{kind} {name}".lower() if kind != "Package" else str(name) for kind, name in _pairs(lacks)]
            match phase, details:
                case "scheduled", [run, failed]:
                    doing = f"run {run}{' failed' if failed else ''}"
                case "idle", _:
                    doing = f"waits for {', '.join(waits)}" if waits else "waits for its script" if due else "idle"
                case _:
                    doing = phase
            return f"{verdict}, {doing}"
        case _:
            return "absent"


# --- queue -------------------------------------------------------------------------------------------------------------------


def _queue(tag: str, fields: list[JsonValue], effects: list[JsonValue], before: Past) -> Words:
    dropped = [str(effect[2]) for effect in effects if isinstance(effect, list) and effect[0] == "Dropped"]
    cause = next(iter(dropped), "")
    match tag, fields:
        case "Enqueued", [_, str(name), *_]:
            return Words(f"{name} is queued", cause, decides=bool(dropped))
        case "Failed", [run, str(error), bool(permanent), *_]:
            how = "failed permanently" if permanent else "failed"
            return Words(f"{_task(before, run)} {how}", error)
        case "Finished", [run]:
            return Words(f"{_task(before, run)} succeeded")
        case (("ScopeCancelled" | "Draining"), [*_, str(why)] | [str(why), bool()]):
            event = "the queue drains" if tag == "Draining" else "an operation is cancelled"
            return Words(event, why, decides=bool(effects))
        case "InputChanged", _:
            return Words("an input changed", cause, decides=bool(effects))
        case _:
            return Words(_spaced(tag), cause, decides=tag not in _QUIET)


def _task(before: Past, run: JsonValue) -> str:
    """Return the name of the task that is running with this run number."""
    for lane in before.lanes.values():
        match lane:
            case [_, str(name), _, [number, *_], *_] if number == run:
                return name
            case _:
                pass
    return f"run {run}"


def _lane_state(name: str, form: JsonValue) -> str:
    match form:
        case [str(phase), task, _, _, [attempt, *_], int(waiting), _]:
            more = f", {waiting} wait" if waiting else ""
            again = f" (attempt {attempt})" if isinstance(attempt, int) and attempt > 1 else ""
            return f"{name}: {task} {_PHASES.get(phase, phase)}{again}{more}"
        case _:
            return f"{name}: empty"


# --- journal and status ------------------------------------------------------------------------------------------------------


def _steps_state(operation: str, form: JsonValue) -> str:
    match form:
        case [_, _, dict() as steps]:
            done = [name for name, step in steps.items() if isinstance(step, list) and step[1] == "complete"]
            open_steps = [name for name, step in steps.items() if isinstance(step, list) and step[1] != "complete"]
            return f"{operation}: {len(done)} steps done" + (f", {', '.join(open_steps)}" if open_steps else "")
        case _:
            return operation


def _status(changed: JsonObject, more: JsonObject) -> Words:
    stages: list[str] = []
    causes: list[str] = []
    for stage, form in changed.items():
        match form:
            case [str(truth), str(reason), str(message), *_]:
                stages.append(f"{stage} {truth}")
                if truth != "True":
                    causes.append(f"{reason}: {message}" if message else reason)
            case _:
                pass
    others: list[str] = []
    for name in (each for each in OTHERS if each in more):
        words = name.replace("_", " ")
        match more[name]:
            case ["Condition", _, str(reason), str(message), *_]:
                causes.append(f"{reason}: {message}" if message else reason)
            case ["RollbackNote", int(revision), str(version), str(wanted), str(reason), str(message)]:
                words = (
                    f"returns to revision {revision} ({version})" if revision else "cannot return to a former revision"
                )
                causes.append(f"{reason}: {wanted}: {message}")
            case _:
                pass
        others.append(words)
    return Words(
        ", ".join(stages or others) or "conditions", "; ".join(dict.fromkeys(causes)), decides=bool(stages or others)
    )


# --- package -----------------------------------------------------------------------------------------------------------------

_CARRIED_OUT: Final = frozenset(
    {"Progressed", "Succeeded", "Tracked", "Released", "Placed", "Changed", "DecisionReported"}
)
"""The tags of those events of a package whose effect is visible in the status."""


def _package(tag: str, fields: list[JsonValue], effects: list[JsonValue]) -> Words:
    causes = [text for effect in effects if (text := _consequence(effect))]
    event, cause = _spaced(tag), "; ".join(dict.fromkeys(causes))
    match tag, fields:
        case "RunOrdered", [int(run), str(reason)]:
            event, cause = f"run {run} is ordered", "; ".join([reason, *causes])
        case "DisableOrdered", [str(reason), bool(uninstall)]:
            event, cause = f"has to be {'uninstalled' if uninstall else 'stopped'}", "; ".join([reason, *causes])
        case ("StageFailed", [[_, str(stage)], ["Failure", reason, str(message), *_]]):
            event, cause = f"{Stage[stage].value} failed", f"{_reason(reason)}: {message}"
        case ("NodeRefused", [["Failure", reason, str(message), *_], *_]):
            event, cause = "its definition was refused", f"{_reason(reason)}: {message}"
        case (("HookDone" | "EventHookDone" | "ValuesChanged"), [str(hook), *more]):
            errors = [each for each in more[-1:] if isinstance(each, str) and each]
            event, cause = f"{hook}: {event}", "; ".join([*errors, *causes])
            return Words(event, cause, decides=bool(cause))
        case _:
            pass
    return Words(event, cause, decides=bool(causes) and tag not in _CARRIED_OUT)


def _consequence(effect: JsonValue) -> str:
    match effect:
        case [("BeginUpdate" | "BeginReconciliation" | "BeginDisable" | "BeginVote" | "RepeatVote") as tag, *_]:
            return f"asks for {_spaced(tag.removeprefix('Begin'))}" if tag != "RepeatVote" else "asks for another vote"
        case ["GiveWay", _, True]:
            return "lets other packages run first"
        case ["Tell", ["SchedulerRescheduled", _, str(reason)]]:
            return f"asks to run again: {reason}"
        case _:
            return ""


def _reason(form: JsonValue) -> str:
    match form:
        case [_, str(member)]:
            return Reason[member].value
        case _:
            return str(form)


def _phase(phase: Mapping[str, bool]) -> str:
    if phase.get("refused"):
        return "refused"
    if phase.get("joined"):
        return "joined"
    return "read" if phase.get("definition") else "unread"


# --- parts -------------------------------------------------------------------------------------------------------------------


def _parts(form: JsonValue) -> tuple[str, list[JsonValue]]:
    match form:
        case [str(tag), *fields]:
            return tag, fields
        case _:
            return "", []


def _texts(fields: list[JsonValue]) -> Iterator[str]:
    for value in fields:
        match value:
            case str():
                yield value
            case [str(tag), str(member)] if tag.startswith("="):
                yield member.lower()
            case _:
                pass


def _members(values: list[JsonValue]) -> Iterator[str]:
    for value in values:
        match value:
            case [_, str(member)]:
                yield member
            case _:
                pass


def _pairs(values: list[JsonValue]) -> Iterator[tuple[JsonValue, JsonValue]]:
    for value in values:
        match value:
            case [first, second]:
                yield first, second
            case _:
                pass


def _spaced(tag: str) -> str:
    """Return ``NodeRemoved`` as ``node removed``."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in tag).strip()
