"""The parser of fault rules, which are either a list in a YAML file, or one line of text (on the command line).

A line contains rules that are separated by ``;``. A rule consists of the name of its fault and words of the form ``key=value``::

    latency verb=list,watch kind=secrets delay=200ms; error code=503 verb=patch times=2 skip=1

In a file, each rule is a mapping with the same keys, and the key ``fault`` has the name of the fault. All functions raise
FaultRuleError if a rule does not have this form.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from wharfinger.control_plane.faults.rule import (
    READS,
    VERBS,
    WRITES,
    CutWatch,
    DropAfter,
    DropBefore,
    ErrorAnswer,
    Fault,
    Latency,
    Partition,
    Rule,
    Selection,
    SlowList,
    StaleRead,
)
from wharfinger.formats.duration import DurationError, parse_duration
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.yaml.reader import read_yaml

MAX_RULES: Final = 100
MAX_BYTES: Final = 100_000
MAX_DELAY_S: Final = 3600.0
_COMMON: Final = ("verb", "kind", "namespace", "name", "agent", "skip", "every", "times", "chance")
_OWN: Final[Mapping[str, tuple[str, ...]]] = {
    "latency": ("delay",),
    "drop-before": (),
    "drop-after": (),
    "error": ("code", "reason", "message", "retry-after"),
    "throttle": ("retry-after",),
    "cut-watch": ("events", "after"),
    "stale-read": ("back",),
    "slow-list": ("delay",),
    "partition": ("start", "for", "period"),
}
_HITS: Final[Mapping[str, frozenset[str]]] = {
    "drop-after": WRITES | READS,
    "cut-watch": frozenset({"watch"}),
    "stale-read": READS,
    "slow-list": frozenset({"list"}),
}
"""For each fault, the verbs of the requests that it can hit. A fault that is not listed can hit requests with any verb."""
_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class FaultRuleError(FormatError):
    """A rule cannot be read; the message names the rule, the error, and what is allowed."""


def read_rules(source: str) -> tuple[Rule, ...]:
    """Return the rules in the file that ``source`` names, or in ``source`` itself if it is not the name of a YAML or JSON file.

    Raises FaultRuleError, and OSError if the file cannot be read.
    """
    path = Path(source)
    if "=" not in source and path.suffix in {".yaml", ".yml", ".json"}:
        data = path.read_bytes()[: MAX_BYTES + 1]
        return parse_file(data, str(path))
    return parse_line(source)


def parse_file(data: bytes, what: str) -> tuple[Rule, ...]:
    """Return the rules in a YAML document. Raises FaultRuleError."""
    if len(data) > MAX_BYTES:
        raise FaultRuleError(f"{what} has more than {MAX_BYTES} bytes; expected a file with a few rules")
    try:
        listed = read_yaml(data, what=what)
    except FormatError as error:
        raise FaultRuleError(str(error)) from error
    if not isinstance(listed, list):
        raise FaultRuleError(
            f"{what} is not a list of rules; start each rule with '- fault: latency', and its keys below"
        )
    rules = [_rule(_words(item, f"rule {number}"), f"rule {number}") for number, item in enumerate(listed, 1)]
    return _bounded(rules)


def parse_line(text: str) -> tuple[Rule, ...]:
    """Return the rules in a line. Raises FaultRuleError."""
    if len(text) > MAX_BYTES:
        raise FaultRuleError(f"the rules have more than {MAX_BYTES} characters; put them into a file")
    rules = []
    for number, part in enumerate((part for part in text.split(";") if part.strip()), 1):
        name, *pairs = part.split()
        words = {"fault": name}
        for pair in pairs:
            key, separator, value = pair.partition("=")
            if not separator:
                raise FaultRuleError(f"rule {number}: {pair!r} is not key=value")
            if key in words:
                raise FaultRuleError(f"rule {number}: {key} is given twice")
            words[key] = value
        rules.append(_rule(words, f"rule {number}"))
    if not rules:
        raise FaultRuleError(f"found no rule; write one such as: latency delay=200ms (faults: {', '.join(_OWN)})")
    return _bounded(rules)


def _bounded(rules: list[Rule]) -> tuple[Rule, ...]:
    if len(rules) > MAX_RULES:
        raise FaultRuleError(f"found {len(rules)} rules; at most {MAX_RULES} are allowed")
    return tuple(rules)


def _words(item: JsonValue, what: str) -> dict[str, str]:
    if not isinstance(item, dict):
        raise FaultRuleError(f"{what} is not a mapping; write 'fault: latency' and the fault's keys")
    words = {}
    for key, value in item.items():
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            words[key] = ",".join(str(part) for part in value)
        elif isinstance(value, bool | dict | list) or value is None:
            raise FaultRuleError(f"{what}: {key} is neither a string nor a number")
        else:
            words[key] = str(value)
    return words


def _rule(words: Mapping[str, str], what: str) -> Rule:
    name = words.get("fault", "")
    if name not in _OWN:
        raise FaultRuleError(f"{what}: there is no fault {name!r}; faults: {', '.join(_OWN)}")
    what = f"{what} ({name})"
    known = ("fault", *_COMMON, *_OWN[name])
    if unknown := sorted(words.keys() - set(known)):
        raise FaultRuleError(f"{what}: unknown key {', '.join(unknown)}; known keys: {', '.join(known[1:])}")
    times = _count(words, "times", what, default=-1)
    return Rule(
        fault=_fault(name, words, what),
        selection=_selection(name, words, what),
        skip=_count(words, "skip", what),
        every=_count(words, "every", what, default=1, least=1),
        times=None if times < 0 else times,
        chance=_chance(words, what),
        name=name,
    )


def _selection(name: str, words: Mapping[str, str], what: str) -> Selection:
    verbs = frozenset(verb for verb in words.get("verb", "").split(",") if verb)
    possible = _HITS.get(name, frozenset(VERBS))
    if wrong := sorted(verbs - possible):
        raise FaultRuleError(f"{what}: cannot hit verb {', '.join(wrong)}; it can hit {', '.join(sorted(possible))}")
    chosen = {key: words[key] for key in ("kind", "namespace", "name", "agent") if key in words}
    return Selection(verbs=verbs or _HITS.get(name, frozenset()), **chosen)


def _fault(name: str, words: Mapping[str, str], what: str) -> Fault:
    match name:
        case "latency":
            return Latency(_seconds(words, "delay", what))
        case "drop-before":
            return DropBefore()
        case "drop-after":
            return DropAfter()
        case "error":
            return _error(words, what)
        case "throttle":
            why = "too many requests, please try again later"
            return ErrorAnswer(429, "TooManyRequests", why, _count(words, "retry-after", what, default=1))
        case "cut-watch":
            after = _seconds(words, "after", what) if "after" in words else None
            events = _count(words, "events", what) if "events" in words else None
            return CutWatch(events if events is not None or after is not None else 0, after)
        case "stale-read":
            return StaleRead(_count(words, "back", what, default=1, least=1))
        case "slow-list":
            return SlowList(_seconds(words, "delay", what))
        case _:
            return _partition(words, what)


def _error(words: Mapping[str, str], what: str) -> ErrorAnswer:
    code = _count(words, "code", what, default=500)
    if not 400 <= code <= 599:
        raise FaultRuleError(f"{what}: code {code} is not an error code; use one from 400 to 599")
    reason = words.get("reason", _REASONS.get(code, ""))
    message = words.get("message", "an injected fault")
    return ErrorAnswer(code, reason, message, _count(words, "retry-after", what))


def _partition(words: Mapping[str, str], what: str) -> Partition:
    length = _seconds(words, "for", what)
    period = _seconds(words, "period", what, default=0.0)
    if period and period <= length:
        raise FaultRuleError(f"{what}: a partition of {length:g} s does not fit in a period of {period:g} s")
    return Partition(_seconds(words, "start", what, default=0.0), length, period)


def _seconds(words: Mapping[str, str], key: str, what: str, *, default: float | None = None) -> float:
    if key not in words:
        if default is None:
            raise FaultRuleError(f"{what}: {key} is missing; write one such as {key}=200ms")
        return default
    try:
        found = parse_duration(words[key]).total_seconds()
    except DurationError as error:
        raise FaultRuleError(f"{what}: {key}: {error}") from error
    if found > MAX_DELAY_S:
        raise FaultRuleError(f"{what}: {key} is {found:g} s; the maximum is {MAX_DELAY_S:g} s")
    return found


def _count(words: Mapping[str, str], key: str, what: str, *, default: int = 0, least: int = 0) -> int:
    if key not in words:
        return default
    text = words[key]
    if not (text.isascii() and text.isdigit() and len(text) < 10) or int(text) < least:
        raise FaultRuleError(f"{what}: {key}={text} is not a number of at least {least}")
    return int(text)


def _chance(words: Mapping[str, str], what: str) -> float:
    text = words.get("chance", "1")
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise FaultRuleError(f"{what}: chance={text} is not a number from 0 to 1")
    return found
