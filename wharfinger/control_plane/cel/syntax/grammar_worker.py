"""A program that compiles the expression on its standard input with the C++ library of CEL, and writes the library's errors.

:mod:`~wharfinger.control_plane.cel.syntax.grammar_errors` starts it, so that the server itself never loads the library.
"""

import sys
from typing import Protocol, cast


class _Environment(Protocol):
    def compile(self, expression: str) -> object: ...


def compile_errors(text: str) -> str:
    """Return the errors of the C++ library of CEL; "" if the library accepts the text."""
    from cel_expr_python import cel  # noqa: PLC0415 - only a worker may load it

    config = cel.NewEnvConfigFromYaml("extensions:\n  - name: optional\n")
    environment = cast("_Environment", cel.NewEnv(config=config, variables={}))
    try:
        environment.compile(text)
    except (RuntimeError, ValueError, TypeError) as error:
        return str(error)
    return ""


def main() -> int:
    """Read an expression, and write its errors."""
    sys.stdout.buffer.write(compile_errors(sys.stdin.buffer.read().decode()).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
