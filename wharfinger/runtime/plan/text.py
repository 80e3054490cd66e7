"""The output of `wharfinger plan`: a table, and the reasons why some packages would not be on; or a document for programs.
Pure.

Shape of the document; empty fields are left out::

    {converges, facts: {kubernetes, platform, bootstrapped, edition, bundle}, order: [<name>], leftAlone,
     packages: {<name>: {kind, package, version, place, state: on | off | suspended | blocked, reason, message?,
                         turn?, tier?, after?, notes?, causes?: [{subject, state, message?}], remedy?}}}

Messages come from untrusted packages and resources. So control characters in them are replaced by spaces in the output for
people, and escaped in documents.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Final

from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.listing import counted, listed
from wharfinger.formats.text_table import layout
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.runtime.plan.plan import Plan, PlannedPackage, PlanState
from wharfinger.runtime.scheduler.rules import Facts
from wharfinger.runtime.scheduler_details import ExplanationSnapshot

_HEADER: Final = ("TURN", "TIER", "NAME", "KIND", "PACKAGE", "VERSION", "STATE", "AFTER")
_NONE: Final = "-"
_MOST_AFTER: Final = 5
_WOULD: Final = {
    PlanState.BLOCKED: "would not be on",
    PlanState.OFF: "stays off",
    PlanState.SUSPENDED: "is suspended",
}


def plan_text(plan: Plan) -> str:
    """Return the plan as a text for people."""
    on = plan.order
    others = [each for each in plan.packages if not each.turn]
    parts = [_table((*on, *others))] if plan.packages else []
    parts += [_reason(each) for each in others]
    notes = [f"{each.name}: {note}" for each in plan.packages for note in each.notes]
    parts += [notes] if notes else []
    parts.append(list(_summary(plan)))
    return "\n".join("".join(f"{printable(line)}\n" for line in part) for part in parts)


def plan_json(plan: Plan, facts: Facts) -> str:
    """Return the plan as a JSON document."""
    return (
        json.dumps(_document(plan, facts), indent=2) + "\n"
    )  # the text is ASCII, so it has no control characters for terminals


def plan_yaml(plan: Plan, facts: Facts) -> str:
    """Return the plan as a YAML document."""
    document = write_yaml(_document(plan, facts))
    return document if document.replace("\n", "").isprintable() else plan_json(plan, facts)  # JSON is also YAML


def _table(packages: Sequence[PlannedPackage]) -> list[str]:
    return layout(_HEADER, [_row(each) for each in packages], None)


def _row(package: PlannedPackage) -> tuple[str, ...]:
    after = listed(package.after, _MOST_AFTER)
    return (
        str(package.turn or _NONE),
        str(package.tier) if package.turn else _NONE,
        package.name,
        package.kind,
        package.package,
        package.version,
        package.state.value,
        after,
    )


def _reason(package: PlannedPackage) -> list[str]:
    """Return why a package is not on: the reason from its gates, the chain of causes to the root cause, and the remedy."""
    said = f"{package.reason}: {package.message}" if package.message else package.reason
    lines = [f"{package.name} {_WOULD[package.state]}: {said}"]
    if package.explanation is not None and package.state is not PlanState.OFF:
        lines += _chain(package.explanation)
    return lines


def _chain(explanation: ExplanationSnapshot) -> Iterator[str]:
    for cause in explanation.causes[1:]:
        yield (
            f"  {cause.subject} {cause.state}: {cause.message}" if cause.message else f"  {cause.subject} {cause.state}"
        )
    for text in explanation.also:
        yield f"  also: {text}"
    yield f"  remedy: {explanation.remedy}"


def _summary(plan: Plan) -> Iterator[str]:
    on, blocked = len(plan.order), len(plan.blocked)
    tiers = len({each.tier for each in plan.order})
    if blocked:
        yield f"{blocked} of {on + blocked} wanted packages would not be on"
    elif on:
        yield f"all wanted packages would be on: {counted(on, 'package')} in {counted(tiers, 'tier')}"
    else:
        yield "no package is wanted"
    if plan.left_alone:
        yield f"{counted(plan.left_alone, 'document')} ignored (of another kind, or being deleted)"


def _document(plan: Plan, facts: Facts) -> JsonObject:
    return {
        "converges": not plan.blocked,
        "facts": {
            "kubernetes": facts.kubernetes,
            "platform": facts.platform,
            "bootstrapped": facts.bootstrapped,
            "edition": facts.edition,
            "bundle": facts.bundle,
        },
        "order": [each.name for each in plan.order],
        "leftAlone": plan.left_alone,
        "packages": {each.name: _package(each) for each in plan.packages},
    }


def _package(package: PlannedPackage) -> JsonObject:
    explanation = package.explanation
    found: JsonObject = {
        "kind": package.kind,
        "package": package.package,
        "version": package.version,
        "place": package.place,
        "state": package.state.value,
        "reason": package.reason,
        "message": package.message,
        "turn": package.turn,
        "tier": package.tier if package.turn else 0,
        "after": [*package.after],
        "notes": [*package.notes],
    }
    if explanation is not None:
        found["causes"] = [
            {
                key: text
                for key, text in (("subject", each.subject), ("state", each.state), ("message", each.message))
                if text
            }
            for each in explanation.causes
        ]
        found["remedy"] = explanation.remedy
    return {key: value for key, value in found.items() if value or (key == "tier" and package.turn)}


def printable(text: str) -> str:
    """Return untrusted text in a form that a terminal can show: one line, no control characters."""
    return "".join(character if character.isprintable() else " " for character in text)
