"""The errors of a text that is not an expression, in the words of the grammar that all implementations of CEL share."""

import re
from functools import cache
from typing import Final, Protocol, cast

_PREFIX: Final = "INVALID_ARGUMENT: "
TOO_DEEP: Final = "ERROR: <input>:1:1: expression is nested too deep"
_RESERVED: Final = re.compile("no viable alternative at input '.(true|false|null)'")
_SUFFIX: Final = " [INVALID_ARGUMENT]"


class _Environment(Protocol):
    def compile(self, expression: str) -> object: ...


@cache
def _environment() -> _Environment:
    from cel_expr_python import cel  # noqa: PLC0415 - large, and only needed for the text of errors

    config = cel.NewEnvConfigFromYaml("extensions:\n  - name: optional\n")
    return cast("_Environment", cel.NewEnv(config=config, variables={}))


def syntax_errors(text: str) -> str:
    """Return the syntax errors of a text, each with its line."""
    try:
        _environment().compile(text)
    except (RuntimeError, ValueError, TypeError) as error:
        said = str(error).removeprefix(_PREFIX).removesuffix(_SUFFIX).replace("'\\u003F'", "'?'")
        said = said if text else said.replace("<input>:1:1:", "<input>:1:0:")
        said = _RESERVED.sub(r"mismatched input '\1' expecting IDENTIFIER", said)
        blocks = said.split("\nERROR: ")
        kept = [block if index == 0 else f"ERROR: {block}" for index, block in enumerate(blocks)]
        kept = [block for block in kept if "<input>:-1:-1" not in block and "Syntax error" in block]
        return "\n".join(kept) or said
    return TOO_DEEP
