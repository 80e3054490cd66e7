r"""The names in ``\p{…}`` that Go knows, and the equivalent parts of RE2's character classes.

Go folds the case of a name, and removes spaces, hyphens and underscores from it. The names in Go's tables keep these
characters, so Go never finds a name such as ``\p{Old_Italic}``, but it finds ``\p{letter}``. Unassigned characters are in Go's
category ``C``, but in no category of RE2.
"""

import re
from functools import lru_cache
from typing import Final

from wharfinger.kube import re2_library as matching

_UNFOLDED: Final = re.compile("[ _-]")
_ALIASES: Final = {
    "casedletter": "Lc",
    "closepunctuation": "Pe",
    "combiningmark": "M",
    "connectorpunctuation": "Pc",
    "control": "Cc",
    "currencysymbol": "Sc",
    "dashpunctuation": "Pd",
    "decimalnumber": "Nd",
    "enclosingmark": "Me",
    "finalpunctuation": "Pf",
    "format": "Cf",
    "initialpunctuation": "Pi",
    "letter": "L",
    "letternumber": "Nl",
    "lineseparator": "Zl",
    "lowercaseletter": "Ll",
    "mark": "M",
    "mathsymbol": "Sm",
    "modifierletter": "Lm",
    "modifiersymbol": "Sk",
    "nonspacingmark": "Mn",
    "number": "N",
    "openpunctuation": "Ps",
    "other": "C",
    "otherletter": "Lo",
    "othernumber": "No",
    "otherpunctuation": "Po",
    "othersymbol": "So",
    "paragraphseparator": "Zp",
    "privateuse": "Co",
    "punctuation": "P",
    "separator": "Z",
    "spaceseparator": "Zs",
    "spacingmark": "Mc",
    "surrogate": "Cs",
    "symbol": "S",
    "titlecaseletter": "Lt",
    "unassigned": "Cn",
    "uppercaseletter": "Lu",
    "cntrl": "Cc",
    "digit": "Nd",
    "punct": "P",
}
_ASSIGNED: Final = r"\p{L}\p{M}\p{N}\p{P}\p{S}\p{Z}"
_MADE_OF: Final = {"Ascii": r"\x00-\x7F", "Assigned": rf"{_ASSIGNED}\p{{C}}", "Lc": r"\p{Lu}\p{Ll}\p{Lt}"}
_NOT: Final = {"C": _ASSIGNED, "Cn": _MADE_OF["Assigned"]}
_CODES: Final = (range(0xD800), range(0xE000, 0x10000), range(0x10000, 0x40000), range(0x40000, 0x110000))
"""All code points except surrogates, in ranges that are quick to search."""


def unicode_class(name: str, *, negated: bool) -> str | None:
    """Return the text for the named characters inside a bracketed class of RE2; None if Go does not know the name."""
    name = _UNFOLDED.sub("", name)
    if not (name.isascii() and name.isalpha()):
        return None
    name = _ALIASES.get(name.lower(), name.capitalize())
    if name in _NOT:
        return _ranges(_NOT[name], negated=not negated)
    if name in _MADE_OF:
        return _ranges(_MADE_OF[name], negated=negated)
    spelled = rf"\{'P' if negated else 'p'}{{{name}}}"
    return spelled if matching.compiles(spelled) else None


@lru_cache(maxsize=8)
def _ranges(inner: str, *, negated: bool) -> str:
    """Return the characters of a class, or if ``negated`` all other characters, as a list of ranges. A list of ranges can be
    used inside another class, where ``^`` has no meaning.
    """
    pattern = f"[{'^' if negated else ''}{inner}]+"
    runs = (run for codes in _CODES for run in matching.found(pattern, "".join(map(chr, codes))))
    return "".join(rf"\x{{{ord(run[0]):X}}}-\x{{{ord(run[-1]):X}}}" for run in runs)
