"""The list of components of the image: a CycloneDX document of the Python libraries and of the modules in the Go programs.

    sbom.py FOLDER [MODULES]

FOLDER is an installed virtual environment, and MODULES is a file with the output of ``go version -m`` for the programs. The
same input gives the same bytes, because the document contains no time and no random number. Debian's packages are not listed,
because the image contains the package database.
"""

import email.parser
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

SPEC = "1.6"


def python_components(folder: Path) -> Iterator[dict[str, object]]:
    """Yield each distribution that is installed in a virtual environment, with its license."""
    for metadata in sorted(folder.glob("lib/python3*/site-packages/*.dist-info/METADATA")):
        found = email.parser.HeaderParser().parsestr(metadata.read_text(encoding="utf-8"))
        name, version = found["Name"].lower().replace("_", "-"), found["Version"]
        license_text = found["License-Expression"] or (found["License"] or "").partition("\n")[0]
        licenses = {"licenses": [{"license": {"name": license_text}}]} if license_text else {}
        yield {"type": "library", "name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}", **licenses}


def go_components(modules: str) -> Iterator[dict[str, object]]:
    """Yield each module in the output of ``go version -m`` once, with its checksum."""
    seen: dict[tuple[str, str], str] = {}
    for line in modules.splitlines():
        kind, *fields = line.split()
        if kind in ("dep", "mod", "=>") and len(fields) >= 2:
            seen[fields[0], fields[1]] = fields[2] if len(fields) > 2 else ""
    for (name, version), checksum in sorted(seen.items()):
        properties = {"properties": [{"name": "go:sum", "value": checksum}]} if checksum else {}
        yield {
            "type": "library",
            "name": name,
            "version": version,
            "purl": f"pkg:golang/{name}@{version}",
            **properties,
        }


def document(folder: Path, modules: str) -> dict[str, object]:
    """Return the whole document. Its serial number is computed from its content."""
    components = [*python_components(folder), *go_components(modules)]
    digest = hashlib.sha256(json.dumps(components, sort_keys=True).encode()).hexdigest()
    serial = f"{digest[:8]}-{digest[8:12]}-5{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
    own = next((each for each in components if each["name"] == "wharfinger"), {"name": "wharfinger"})
    return {
        "bomFormat": "CycloneDX",
        "specVersion": SPEC,
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": {**own, "type": "application"}},
        "components": [each for each in components if each["name"] != "wharfinger"],
    }


def main(arguments: list[str]) -> int:
    """Print the document."""
    if len(arguments) not in (1, 2):
        print("usage: sbom.py FOLDER [MODULES]", file=sys.stderr)
        return 2
    modules = Path(arguments[1]).read_text(encoding="utf-8") if len(arguments) == 2 else ""
    print(json.dumps(document(Path(arguments[0]), modules), indent=1, sort_keys=True))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
