"""Safe messages about jq programs that failed on an object. Pure.

jq's messages quote the values that the program failed on, in many ways (``string ("…") cannot be added``, ``date "…" does not
match``, the argument of ``error``). The object may be a Secret, while the message is written to a status and a log. So only
known messages without a value are passed on as they are. Any other message is compared with the patterns below, and a new message
is built from the fixed words of the pattern that matches and the names of jq's types.
"""

import re
from typing import Final

UNKNOWN: Final = "the program failed on this object"

_TYPE: Final = "(null|boolean|number|string|array|object)"
_ONE_VALUE: Final = (
    "has no keys",
    "has no length",
    "is not a string",
    "is not valid base64 data",
    "is not valid in a csv row",
    "number required",
    "trailing base64 byte found",
    "only strings have UTF-8 byte length",
    "can not be escaped for shell",
    "can't be imploded, unicode codepoint needs to be numeric",
    "cannot be csv-formatted, only array",
    "cannot be tsv-formatted, only array",
    "cannot be grouped, as it is not an array",
    "cannot be matched, as it is not a string",
    "cannot be negated",
    "cannot be parsed as a boolean",
    "cannot be parsed as a number",
    "cannot be searched from",
    "cannot be sorted, as it is not an array",
)
_TWO_VALUES: Final = (
    "cannot be added",
    "cannot be subtracted",
    "cannot be multiplied",
    "cannot be divided",
    "cannot be divided because the divisor is zero",
    "cannot be divided (remainder)",
    "cannot be divided (remainder) because the divisor is zero",
    "cannot be iterated over",
    "cannot have their containment checked",
)
_WHOLE: Final = frozenset(
    {
        "A slice of an array can only be assigned another array",
        "Array index too large",
        "Array/string slice indices must be integers",
        "Cannot set array element at NaN index",
        "Cannot update string slices",
        "Object keys must be strings",
        "Out of bounds negative array index",
        "Path must be specified as an array",
        "Paths must be specified as an array",
        "Range bounds must be numeric",
        "Repeat string result too long",
        "break",
        "explode input must be a string",
        "flatten depth must not be negative",
        "gmtime() requires numeric inputs",
        "halt is not available in a filter",
        "implode input must be an array",
        "input is not available in a filter",
        "limit doesn't support negative count",
        "mktime requires array inputs",
        "mktime requires parsed datetime inputs",
        "modulemeta is not available in a filter",
        "nth doesn't support negative indices",
        "skip doesn't support negative count",
        "split input and separator must be strings",
        "startswith() requires string inputs",
        "strflocaltime/1 requires parsed datetime inputs",
        "strftime/1 requires a string format",
        "strftime/1 requires parsed datetime inputs",
        "strptime/1 requires string inputs and arguments",
        "trim input must be a string",
    }
)


def _any_of(words: tuple[str, ...]) -> str:
    return "(" + "|".join(re.escape(word) for word in words) + ")"


_KNOWN: Final = tuple(
    (re.compile(pattern, re.DOTALL), replacement)
    for pattern, replacement in (
        (rf"Cannot index {_TYPE} with {_TYPE} \(.*\)", "Cannot index {} with {}"),
        (rf"Cannot iterate over {_TYPE}(?: \(.*\))?", "Cannot iterate over {}"),
        (rf"Cannot check whether {_TYPE} has a {_TYPE} key", "Cannot check whether {} has a {} key"),
        (rf"Cannot delete {_TYPE} element of array", "Cannot delete {} element of array"),
        (rf"Cannot delete {_TYPE} field of object", "Cannot delete {} field of object"),
        (rf"Cannot delete fields from {_TYPE}", "Cannot delete fields from {}"),
        (rf"Cannot use {_TYPE} \(.*\) as object key", "Cannot use {} as object key"),
        (rf"Path must be specified as array, not {_TYPE}", "Path must be specified as array, not {}"),
        (rf"{_TYPE} not a string or array", "{} not a string or array"),
        (rf"{_TYPE} \(.*\) and {_TYPE} \(.*\) {_any_of(_TWO_VALUES)}", "{} and {} {}"),
        (rf"{_TYPE} \(.*\) {_any_of(_ONE_VALUE)}", "{} {}"),
        (r'date ".*" does not match format ".*"', "a date does not match the format"),
        (r"Invalid path expression .*", "Invalid path expression"),
        (r"Regex failure: .*", "Regex failure: the pattern is not valid"),
        (r".* \(while parsing '.*'\)", "a text is not JSON"),
    )
)


def without_values(message: str) -> str:
    """Return a safe message in place of jq's ``message``. It names the reason and the types of values. If jq's message is not
    known, it says only that the program failed.
    """
    if message in _WHOLE:
        return message
    for pattern, replacement in _KNOWN:
        if found := pattern.fullmatch(message):
            return replacement.format(*found.groups())
    return UNKNOWN
