"""One line about a signed statement: the builder and the source of an artifact, or the name and size of an SBOM. Pure.

The fields are those of SLSA's provenance (1.0 and 0.2), SPDX and CycloneDX. For any other file that was signed with
`cosign attest`, the line is "a file". For a predicate of another type or form, there is no line.
"""

from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find, find_list, find_object, find_str
from wharfinger.formats.listing import counted
from wharfinger.packages.trust.envelopes import Statement

MAX_LINE: Final = 300


def summary(statement: Statement) -> str:
    """Return a line about a statement's predicate; "" if its type or form is not known."""
    try:
        return _line(statement.predicate_type, statement.predicate)[:MAX_LINE]
    except FormatError:
        return ""


def _line(kind: str, predicate: JsonObject) -> str:
    if kind == "https://slsa.dev/provenance/v1":
        builder = find_str(predicate, "runDetails", "builder", "id")
        source = find_str(predicate, "buildDefinition", "resolvedDependencies", 0, "uri")
        return _built(builder, source)
    if kind == "https://slsa.dev/provenance/v0.2":
        builder = find_str(predicate, "builder", "id")
        return _built(builder, find_str(predicate, "invocation", "configSource", "uri"))
    if kind.startswith("https://spdx.dev/Document"):
        return _listed("SPDX", find_str(predicate, "name"), len(find_list(predicate, "packages")))
    if kind.startswith("https://cyclonedx.org/bom"):
        about = find_object(predicate, "metadata", "component")
        return _listed("CycloneDX", find_str(about, "name"), len(find_list(predicate, "components")))
    if find(predicate, "Data") is not None:  # the predicate in which `cosign attest` puts any other file
        return "a file"
    return ""


def _built(builder: str, source: str) -> str:
    parts = [f"built by {builder}" if builder else "", f"from {source}" if source else ""]
    return " ".join(filter(None, parts))


def _listed(form: str, name: str, count: int) -> str:
    return f"{form}{f' of {name}' if name else ''}: {counted(count, 'package')}"
