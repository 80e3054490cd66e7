"""Holds the tree against three rules that no linter has.

1. No dead module: each is imported, directly or not, by a command (the table in ``wharfinger/__main__.py``).
2. No untested module: ``wharfinger/part/x.py`` has ``tests/part/test_x.py``.
3. With ``--coverage coverage.json``: each module was measured, and its lines and branches are covered to at least
   MODULE_FLOOR percent, so that a well-tested part cannot hide a module nobody runs.

Exit code 1 and one line a finding.
"""

import ast
import json
import sys
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent
PARTS = sorted(path.name for path in (ROOT / "wharfinger").iterdir() if path.is_dir() and path.name != "__pycache__")
MODULE_FLOOR = 75.0


def main() -> int:
    """Run the checks; with --coverage only the third."""
    sys.path.insert(0, str(ROOT))
    if "--coverage" in sys.argv:
        findings = below_floor(Path(sys.argv[sys.argv.index("--coverage") + 1]))
    else:
        findings = [*dead_modules(), *untested_modules()]
    for finding in findings:
        print(finding)
    return 1 if findings else 0


def dead_modules() -> list[str]:
    """Modules that no command reaches."""
    from wharfinger.__main__ import COMMANDS

    graph = grimp.build_graph(*(f"wharfinger.{part}" for part in PARTS), cache_dir=None)
    alive = {f"wharfinger.{command.part}.{command.module}" for command in COMMANDS} | imported_by_the_composition_root()
    missing = sorted(alive - graph.modules)
    frontier = alive & graph.modules
    while frontier:
        reached = set().union(*(graph.find_modules_directly_imported_by(module) for module in frontier))
        # Importing a.b.c runs the packages above it too.
        reached |= {name.rpartition(".")[0] for name in reached}
        frontier = (reached & graph.modules) - alive
        alive |= frontier
    packages = {f"wharfinger.{part}" for part in PARTS}
    dead = sorted(graph.modules - alive - packages)
    return [f"missing: {name} (named in wharfinger/__main__.py)" for name in missing] + [
        f"dead module: {name} is imported by no command" for name in dead
    ]


def imported_by_the_composition_root() -> set[str]:
    """Modules of the parts that ``wharfinger/__main__.py`` imports itself, at its top or in a function."""
    tree = ast.parse((ROOT / "wharfinger" / "__main__.py").read_text())
    imports = (node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {name for name in imports if name.startswith("wharfinger.")}


def untested_modules() -> list[str]:
    """Modules without a test module of their own."""
    findings = []
    for module in modules_of_the_parts():
        expected = Path("tests") / module.parent.relative_to("wharfinger") / f"test_{module.name}"
        if module.name != "__init__.py" and not (ROOT / expected).is_file():
            findings.append(f"untested module: {module} has no {expected}")
    return findings


def below_floor(report: Path) -> list[str]:
    """Files whose combined line and branch coverage is under the floor, and those the report does not know."""
    files = json.loads(report.read_text())["files"]
    measured = {Path(name): data["summary"]["percent_covered"] for name, data in files.items()}
    unmeasured = {*modules_of_the_parts(), Path("wharfinger/__main__.py")} - set(measured)
    return [f"not measured: {name} is not in the coverage report" for name in sorted(unmeasured)] + [
        f"covered to {percent:.0f} % only (floor {MODULE_FLOOR:.0f} %): {name}"
        for name, percent in sorted(measured.items())
        if percent < MODULE_FLOOR
    ]


def modules_of_the_parts() -> list[Path]:
    """Every module, as the path of its file below the root."""
    return [path.relative_to(ROOT) for path in sorted((ROOT / "wharfinger").glob("*/**/*.py"))]


if __name__ == "__main__":
    sys.exit(main())
