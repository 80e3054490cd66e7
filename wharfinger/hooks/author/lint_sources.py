"""The findings of lint, and their places: a file of the package, and the line that an editor should go to.

Checks name a file and a field, as in ``openapi/settings.yaml: properties.replicas.type: …``. This module turns that into a line
of the file. If a field has no line of its own (for example, because it is missing), the line of its nearest parent is used. If no
parent has a line either, the first line is used. The functions block. Files are read within the usual limits.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.yaml.lines import Lines, yaml_lines
from wharfinger.packages.author.package_check import Severity
from wharfinger.packages.definition.definition import SETTINGS_SCHEMAS, VALUES_SCHEMA
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.files.package_files import PackageFiles

PACKAGE: Final = "."
"""The file of a finding that does not concern a particular file."""
MAX_MESSAGE: Final = 1_000
PLACE: Final = re.compile(r"^line (\d+)(?:, column \d+)?:? ?")
"""The place in a file, with which each message of the YAML reader begins."""
_LAST_STEP: Final = re.compile(r"(?:\.[^.\[\]]*|\[[^\[]*\]|^[^.]*|.)\Z", re.DOTALL)
_TEMPLATE: Final = re.compile(r"\b((?:charts/[^/\s:]+/)*templates/[^\s:)]+):(\d+)")


@dataclass(frozen=True, slots=True, order=True)
class LintFinding:
    """One problem; ``line`` counts from 1, and is 0 for a problem without a line."""

    file: str
    line: int
    severity: Severity
    message: str

    def __str__(self) -> str:
        """Format the finding as compilers do: ``file:line: severity: message``."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.severity.value}: {self.message}"


def finding(file: str, line: int, severity: Severity, message: str) -> LintFinding:
    """Make a finding with its message in one line, limited in length, without control characters for terminals."""
    text = "".join(character if character.isprintable() else " " for character in " ".join(message.split()))
    return LintFinding(file, line, severity, text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…")


def in_order(findings: Iterable[LintFinding]) -> tuple[LintFinding, ...]:
    """Sort findings by file and line, with errors before warnings on the same line, and remove duplicates."""
    return tuple(sorted(set(findings), key=lambda each: (each.file, each.line, each.severity.value, each.message)))


@dataclass(slots=True)
class Sources:
    """The content of the files of a package, and the lines on which the values in them are. Each file is read only once."""

    files: PackageFiles
    _texts: dict[str, bytes | None] = field(default_factory=dict)
    _lines: dict[str, tuple[Lines, ...]] = field(default_factory=dict)

    def text(self, name: str) -> bytes | None:
        """Return the content of a file; None if it cannot be read."""
        if name not in self._texts:
            try:
                self._texts[name] = self.files.read(name)
            except ArtifactError:
                self._texts[name] = None
        return self._texts[name]

    def documents(self, name: str) -> tuple[Lines, ...]:
        """Return the line numbers of the values in each document of a YAML file."""
        if name not in self._lines:
            self._lines[name] = yaml_lines(self.text(name) or b"")
        return self._lines[name]

    def line(self, name: str, where: str) -> int | None:
        """Return the line of a field of a file's first document; None if there is no such field."""
        documents = self.documents(name)
        return documents[0].named(where) if documents else None

    def located(self, severity: Severity, message: str, where: str = "") -> LintFinding:
        """Make a finding from a message about the file ``where``.

        Without ``where``, the message begins with a file name, usually followed by a line or a field.
        """
        template = _TEMPLATE.search(message)
        if template and self.text(template[1]) is not None:
            return finding(template[1], int(template[2]), severity, message)
        head, colon, rest = (where, ":", message) if where else message.partition(": ")
        file = self._file(head)
        if not colon or not file:
            return finding(PACKAGE, 0, severity, f"{where}: {message}" if where else message)
        if found := PLACE.match(rest):
            return finding(file, int(found[1]), severity, rest[found.end() :])
        return finding(file, self._nearest(file, rest), severity, rest)

    def _file(self, head: str) -> str:
        """Return the file that the beginning of a message names; "" if it names no file."""
        schemas = {
            "settings schema": next((name for name in SETTINGS_SCHEMAS if self.files.has_file(name)), ""),
            "values schema": VALUES_SCHEMA,
        }
        name = schemas.get(head.removeprefix("the "), head.partition(" (")[0])
        return name if name and len(name) < MAX_MESSAGE and self.files.has_file(name) else ""

    def _nearest(self, file: str, message: str) -> int:
        """Return the line of the field that a message begins with, or of its nearest parent."""
        where = message.partition(": ")[0]
        while where and len(where) < MAX_MESSAGE:
            if (line := self.line(file, where)) is not None:
                return line
            where = _LAST_STEP.sub("", where)
        documents = self.documents(file)
        return documents[0].first if documents else 1
