"""The errors of a text that is not an expression, in the words of the grammar that the implementations of CEL share.

In Python, only the C++ library of CEL has these messages. The server never loads that library; a child process loads it to
check one text. The check takes about 40 ms, in which the server answers no other request. It is needed only for an expression
that does not match the grammar.
"""

import re
import subprocess
import sys
from functools import lru_cache
from typing import Final

from wharfinger.control_plane.cel.syntax import grammar_worker

DEADLINE_S: Final = 5.0
"""The time limit for the child process in seconds."""
TOO_DEEP: Final = "ERROR: <input>:1:1: expression is nested too deep"
_UNKNOWN: Final = "ERROR: <input>:1:1: Syntax error"
"""The error that is reported if the child process has failed."""
_COMMAND: Final = (sys.executable, "-I", "-m", grammar_worker.__name__)
_PREFIX: Final = "INVALID_ARGUMENT: "
_RESERVED: Final = re.compile("no viable alternative at input '.(true|false|null)'")
_SUFFIX: Final = " [INVALID_ARGUMENT]"


@lru_cache(maxsize=64)
def syntax_errors(text: str) -> str:
    """Return the syntax errors of a text, each with its line."""
    try:
        child = subprocess.run(
            _COMMAND, input=text.encode(), capture_output=True, timeout=DEADLINE_S, check=True, env={}
        )
    except (OSError, UnicodeEncodeError, subprocess.SubprocessError):
        return _UNKNOWN
    return _worded(child.stdout.decode(errors="replace"), text) if child.stdout else TOO_DEEP


def _worded(message: str, text: str) -> str:
    """Return the library's errors in the API server's words."""
    message = message.removeprefix(_PREFIX).removesuffix(_SUFFIX).replace("'\\u003F'", "'?'")
    message = message if text else message.replace("<input>:1:1:", "<input>:1:0:")
    message = _RESERVED.sub(r"mismatched input '\1' expecting IDENTIFIER", message)
    blocks = message.split("\nERROR: ")
    kept = [block if index == 0 else f"ERROR: {block}" for index, block in enumerate(blocks)]
    kept = [block for block in kept if "<input>:-1:-1" not in block and "Syntax error" in block]
    return "\n".join(kept) or message
