"""Check the tree by rules that no linter has.

1. No dead module: each module is imported, directly or indirectly, by a command (``wharfinger/command_table.py``) or by
   ``wharfinger/__main__.py``.
2. No untested module: ``wharfinger/part/x.py`` has ``tests/part/test_x.py``.
3. No crowded folder: a folder has at most MOST_MODULES modules. No undocumented room: the ``__init__.py`` of each room has a
   docstring. (A part is a folder in ``wharfinger/``, and a room is a folder in a part.)
4. No import cycle. Imports for type checkers count, too.
5. With ``--coverage coverage.json``, no low coverage: each module was measured, and at least MODULE_FLOOR percent of its lines
   and branches are covered, except in the modules UNTRACED. A limit for each module is needed, because a limit for the whole
   project would be met even if some modules are never run.

``--tests-of-low-coverage coverage.json`` prints the test modules of all modules below MODULE_FLOOR.

The script prints one line for each finding. The exit code is 1 if there are any.
"""

import ast
import json
import sys
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent
PARTS = sorted(path.name for path in (ROOT / "wharfinger").iterdir() if path.is_dir() and path.name != "__pycache__")
MODULE_FLOOR = 75.0
UNTRACED = {
    Path("wharfinger/pools/interpreters/script_end.py"),
    Path("wharfinger/pools/interpreters/zygote_program.py"),
}
"""Programs that run in the interpreters of hooks, where coverage cannot be measured; tests check them from outside."""
MOST_MODULES = 20


def main() -> int:
    """Run all checks except the coverage check, or with ``--coverage`` only the coverage check."""
    sys.path.insert(0, str(ROOT))
    if "--tests-of-low-coverage" in sys.argv:
        print(*tests_of_low_coverage(Path(sys.argv[sys.argv.index("--tests-of-low-coverage") + 1])))
        return 0
    if "--coverage" in sys.argv:
        findings = below_floor(Path(sys.argv[sys.argv.index("--coverage") + 1]))
    else:
        graph = grimp.build_graph(*(f"wharfinger.{part}" for part in PARTS), cache_dir=None)
        findings = [*dead_modules(graph), *untested_modules(), *rooms(), *circles(graph)]
    for finding in findings:
        print(finding)
    return 1 if findings else 0


def dead_modules(graph: grimp.ImportGraph) -> list[str]:
    """Return a finding for each module that neither a command nor ``wharfinger/__main__.py`` imports, directly or indirectly.

    Each module that the command table names, but that does not exist, is a finding, too.
    """
    from wharfinger.command_table import COMMANDS, LIVE_DIFF

    alive = {
        f"wharfinger.{command.part}.{command.module}" for command in (*COMMANDS, LIVE_DIFF)
    } | imported_by_the_composition_root()
    missing = sorted(alive - graph.modules)
    frontier = alive & graph.modules
    while frontier:
        reached = set().union(*(graph.find_modules_directly_imported_by(module) for module in frontier))
        # An import of a.b.c also imports a and a.b.
        reached |= {parent for name in reached for parent in packages_above(name)}
        frontier = (reached & graph.modules) - alive
        alive |= frontier
    packages = {f"wharfinger.{part}" for part in PARTS}
    dead = sorted(graph.modules - alive - packages)
    return [f"missing: {name} (named in wharfinger/command_table.py)" for name in missing] + [
        f"dead module: {name} is imported by no command" for name in dead
    ]


def packages_above(name: str) -> list[str]:
    """Return ``a`` and ``a.b`` for ``a.b.c``."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def imported_by_the_composition_root() -> set[str]:
    """Return the modules that ``wharfinger/__main__.py`` itself imports, at its top or in a function."""
    tree = ast.parse((ROOT / "wharfinger" / "__main__.py").read_text())
    imports = (node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    parts = tuple(f"wharfinger.{part}." for part in PARTS)
    return {name for name in imports if name.startswith(parts)}


def untested_modules() -> list[str]:
    """Return a finding for each module without a test module of its own."""
    findings = []
    for module in modules_of_the_parts():
        expected = tests_of(module)
        if module.name != "__init__.py" and not (ROOT / expected).is_file():
            findings.append(f"untested module: {module} has no {expected}")
    return findings


def tests_of(module: Path) -> Path:
    """Return the path of the test module for a module."""
    return Path("tests") / module.parent.relative_to("wharfinger") / f"test_{module.name}"


def rooms() -> list[str]:
    """Return a finding for each folder with too many modules, and for each room (a folder in a part) without a docstring."""
    findings = []
    for folder in sorted({(ROOT / module).parent for module in modules_of_the_parts()}):
        name = folder.relative_to(ROOT)
        modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        if len(modules) > MOST_MODULES:
            findings.append(f"full room: {name} has {len(modules)} modules, more than {MOST_MODULES}")
        init = folder / "__init__.py"
        if len(name.parts) > 2 and not (init.is_file() and ast.get_docstring(ast.parse(init.read_text()))):
            findings.append(f"undocumented room: {name}/__init__.py has no docstring")
    return findings


def circles(graph: grimp.ImportGraph) -> list[str]:
    """Return a finding for each import cycle."""
    left = {module: graph.find_modules_directly_imported_by(module) & graph.modules for module in graph.modules}
    # A module is in no cycle if it imports no remaining module, or if no remaining module imports it.
    while True:
        imported = set().union(*left.values())
        free = {module for module, imports in left.items() if not imports or module not in imported}
        if not free:
            break
        left = {module: imports - free for module, imports in left.items() if module not in free}
    reached = {module: reachable(module, left) for module in left}
    circles = {frozenset(other for other in reached[module] if module in reached[other]) for module in left}
    return [f"import cycle: {', '.join(sorted(circle))}" for circle in circles if circle]


def reachable(module: str, imports: dict[str, set[str]]) -> set[str]:
    """Return the modules that a module imports, directly or indirectly."""
    found, frontier = set(), set(imports[module])
    while frontier:
        found |= frontier
        frontier = set().union(*(imports[name] for name in frontier)) - found
    return found


def tests_of_low_coverage(report: Path) -> list[str]:
    """Return the test modules of the modules whose coverage is below the floor."""
    files = json.loads(report.read_text())["files"]
    low = {Path(name) for name, data in files.items() if data["summary"]["percent_covered"] < MODULE_FLOOR} - UNTRACED
    expected = (tests_of(module) for module in sorted(low & set(modules_of_the_parts())))
    return [str(path) for path in expected if (ROOT / path).is_file()]


def below_floor(report: Path) -> list[str]:
    """Return a finding for each file that was not measured, or whose combined line and branch coverage is below the floor."""
    files = json.loads(report.read_text())["files"]
    measured = {Path(name): data["summary"]["percent_covered"] for name, data in files.items()}
    unmeasured = {*modules_of_the_parts(), Path("wharfinger/__main__.py")} - set(measured)
    return [f"not measured: {name} is not in the coverage report" for name in sorted(unmeasured)] + [
        f"low coverage: {percent:.0f} % (at least {MODULE_FLOOR:.0f} %): {name}"
        for name, percent in sorted(measured.items())
        if percent < MODULE_FLOOR and name not in UNTRACED
    ]


def modules_of_the_parts() -> list[Path]:
    """Return the path of every module in a subfolder of ``wharfinger/``, relative to ROOT."""
    return [path.relative_to(ROOT) for path in sorted((ROOT / "wharfinger").glob("*/**/*.py"))]


if __name__ == "__main__":
    sys.exit(main())
