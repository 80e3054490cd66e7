"""A JSON value as text for people and programs: JSON or YAML that is safe on a terminal and can be parsed back.

Pure. The parsed value is the same, except for NaN, infinities and lone surrogates, which JSON cannot express. A strange
character or number, or a deep nesting, in one package's settings must not make the whole dump fail. If block-style YAML cannot
express a value, or can express it only in a way that is unsafe on a terminal, the value is written as JSON with escapes, which is
also YAML.
"""

from typing import Final, Literal, TypeAlias

import msgspec

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.terminal_text import is_safe, json_printable

OutputFormat: TypeAlias = Literal["json", "yaml"]
OUTPUT_FORMATS: Final[tuple[OutputFormat, ...]] = ("json", "yaml")
MEDIA_TYPES: Final[dict[OutputFormat, str]] = {"json": "application/json", "yaml": "application/yaml"}


def render(value: JsonValue, output: OutputFormat) -> str:
    """Return the value as a document that ends with a line break."""
    return render_json(value) if output == "json" else render_yaml(value)


def render_json(value: JsonValue) -> str:
    """Return indented JSON in the value's own key order. NaN and infinities, which JSON lacks, become null."""
    return json_printable(_json(value)) + "\n"


def render_yaml(value: JsonValue) -> str:
    """Return block-style YAML in the value's own key order, or JSON that is also YAML (see the docstring of the module)."""
    from wharfinger.formats.yaml.writer import write_yaml  # noqa: PLC0415 - commands that print a table start without it

    try:
        document = write_yaml(value)
        if is_safe(document, allow="\n"):
            return document
    except FormatError:
        pass
    return json_printable(_json(value), yaml=True) + "\n"


def _json(value: JsonValue) -> str:
    try:
        document = msgspec.json.encode(value)
    except UnicodeEncodeError:  # a lone surrogate, which has no UTF-8 form
        document = msgspec.json.encode(_replaced(value))
    return msgspec.json.format(document, indent=2).decode()


def _replaced(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_replaced(item) for item in value]
    if isinstance(value, dict):
        return {str(_replaced(key)): _replaced(item) for key, item in value.items()}
    return value
