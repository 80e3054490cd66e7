"""The checks that an API server makes, for the custom resource definitions in ``crds/``.

Lint reports an error for a definition that a server refuses, and a warning for an unknown keyword, which a server would drop. An
object of another kind also causes only a warning, because it is applied anyway.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_object
from wharfinger.formats.yaml.lines import Lines
from wharfinger.formats.yaml.reader import read_yaml_all
from wharfinger.hooks.author.lint_schemas import misspelt
from wharfinger.hooks.author.lint_sources import LintFinding, Sources, finding
from wharfinger.packages.author.package_check import Severity
from wharfinger.packages.definition.crd_files import crd_file_names
from wharfinger.packages.errors import PackageError

API_VERSION: Final = "apiextensions.k8s.io/v1"
KIND: Final = "CustomResourceDefinition"
_SCHEMA: Final = ("schema", "openAPIV3Schema")
_SHARED: Final = {"validation": "schema"} | {
    name: name for name in ("subresources", "additionalPrinterColumns", "selectableFields")
}
"""Parts of a version. If such a part is the same in all versions, a server reports errors in it as if the part were directly
below ``spec``.

The keys are the names below ``spec``, and the values are the names in a version.
"""

RefusedFields: TypeAlias = Callable[[JsonObject], Sequence[tuple[str, str]]]
"""A function that takes a new definition, and returns the fields that a server would refuse, each with the reason."""

_MEMBER: Final = re.compile(r"\[([^\]\d][^\]]*)\]")
"""A name in brackets. A server's path has the form ``properties[spec]``, but :meth:`Lines.named` expects
``properties.spec``.
"""


def lint_crds(sources: Sources, refused: RefusedFields) -> list[LintFinding]:
    """Check all files in ``crds/``. Blocking."""
    found: list[LintFinding] = []
    try:
        names = crd_file_names(sources.files.root)
    except PackageError:  # package check has reported this
        return found
    for name in names:
        try:
            documents = read_yaml_all(sources.text(name) or b"", what=name)
        except FormatError:  # package check has reported this
            continue
        for document, lines in zip(documents, sources.documents(name), strict=False):
            found += _of_document(document, lines, name, refused)
    return found


def _of_document(document: JsonValue, lines: Lines, name: str, refused: RefusedFields) -> Iterator[LintFinding]:
    if not isinstance(document, dict):
        return
    kind, version = document.get("kind"), document.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(version, str):  # package check has reported this
        return
    if kind != KIND:
        why = f"{kind} is not a {KIND}, but it is applied before all other objects, because it is in crds/"
        yield finding(name, lines.of(("kind",)), Severity.WARNING, why)
    elif version != API_VERSION:
        why = f"apiVersion: {version} is not served by any supported Kubernetes; write {API_VERSION}"
        yield finding(name, lines.of(("apiVersion",)), Severity.ERROR, why)
    else:
        yield from _of_definition(document, lines, name, refused)


def _of_definition(document: JsonObject, lines: Lines, name: str, refused: RefusedFields) -> Iterator[LintFinding]:
    try:
        for field, why in refused(document):
            yield finding(name, _line(lines, field), Severity.ERROR, why)
        versions = find_list(document, "spec", "versions")
        for number, version in enumerate(versions):
            schema = find_object(version, *_SCHEMA)
            where = ("spec", "versions", number, *_SCHEMA)
            for path, why in misspelt(schema):
                yield finding(name, lines.of((*where, *path)), Severity.WARNING, why)
        if versions and not any(find(version, "served") is True for version in versions):
            why = "spec.versions: no version is served, so the kind cannot be used"
            yield finding(name, lines.of(("spec", "versions")), Severity.WARNING, why)
    except FormatError as error:
        yield finding(name, lines.of(("spec",)), Severity.ERROR, str(error))


def _line(lines: Lines, field: str) -> int:
    """Return the line of a field, or of its nearest parent.

    For a part that all versions share, its line in the first version is returned.
    """
    parts = _MEMBER.sub(r".\1", field).split(".", 2)
    if len(parts) > 1 and parts[0] == "spec" and (name := _SHARED.get(parts[1])):
        parts[1] = f"versions[0].{name}"
    field = ".".join(parts)
    while field:
        if (line := lines.named(field)) is not None:
            return line
        field = field.rpartition(".")[0]
    return lines.first
