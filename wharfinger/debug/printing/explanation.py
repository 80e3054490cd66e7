"""The explanation of a package's state as text: a line for each cause, the root cause last, and a line with the remedy."""

from datetime import UTC, datetime, timedelta
from typing import Final

from wharfinger.debug.fields import duration
from wharfinger.formats.terminal_text import printable
from wharfinger.formats.text_width import width
from wharfinger.runtime.scheduler_details import CauseSnapshot, ExplanationSnapshot

_GAP: Final = "  "
_A_DAY: Final = timedelta(days=1)


def explanation_lines(explanation: ExplanationSnapshot, now: datetime) -> list[str]:
    """Return the lines, safe to print on a terminal. Ages are counted back from ``now``."""
    also = [f"also: {text}" for text in explanation.also]
    if explanation.ready:
        return [printable(line) for line in (f"{explanation.name}: ready; nothing blocks it", *also)]
    subjects = [printable(cause.subject) for cause in explanation.causes]
    columns = max(map(width, subjects), default=0)
    chain = [
        subject + " " * (columns - width(subject)) + _GAP + printable(_cause_text(cause, now))
        for subject, cause in zip(subjects, explanation.causes, strict=True)
    ]
    return [*chain, *(printable(line) for line in (f"remedy: {explanation.remedy}", *also))]


def _cause_text(cause: CauseSnapshot, now: datetime) -> str:
    what = f"{cause.state}: {cause.message}" if cause.message else cause.state
    return f"{what}{_GAP}since {since_text(cause.since, now)}" if cause.since is not None else what


def since_text(since: datetime, now: datetime) -> str:
    """Format a time and its age: ``12:03:11 UTC (4m05s)``, with the date if it is a day ago or more."""
    moment, age = since.astimezone(UTC), max(now - since, timedelta())
    form = "%H:%M:%S UTC" if age < _A_DAY else "%Y-%m-%d %H:%M:%S UTC"
    return f"{moment:{form}} ({duration(age.total_seconds())})"
