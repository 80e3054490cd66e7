"""The output of the author's commands: documents on stdout, messages on stderr."""

import argparse
import sys
from contextlib import suppress

from wharfinger.formats.encodable import encodable
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonValue, encode_json
from wharfinger.formats.terminal_text import is_safe, json_printable, printable
from wharfinger.formats.yaml.writer import write_yaml


def add_output(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add the option ``-o yaml|json``."""
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml", help=purpose)


def rendered(document: JsonValue, form: str) -> str:
    """Return the document as YAML or JSON, with a newline at its end."""
    if form == "yaml":
        # JSON is also YAML. It is used if the value is nested too deeply for YAML in block style, or is not safe for a terminal.
        with suppress(FormatError):
            text = write_yaml(document)
            if is_safe(text, allow="\n"):
                return text
    return json_printable(encode_json(document).decode()) + "\n"


def say(text: str) -> None:
    """Write text to stdout, in the encoding of stdout. Control sequences for terminals are escaped, as in `tell`."""
    sys.stdout.write(encodable(printable(text, allow="\n\t"), sys.stdout.encoding or "utf-8"))


def tell(line: str) -> None:
    """Write a line to stderr, and flush stderr. A closed pipe is ignored, because the results are still valid.

    The line may come from a hook, so control sequences for terminals are escaped.
    """
    with suppress(BrokenPipeError):
        safe = printable(line, allow="\n\t")
        sys.stderr.write(encodable(safe, sys.stderr.encoding or "utf-8") + "\n")
        sys.stderr.flush()


def refuse(error: Exception | str) -> int:
    """Print an error on stderr and return exit code 1."""
    tell(f"error: {error}")
    return 1
