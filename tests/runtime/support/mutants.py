"""Mutants of pure modules. Each of them differs from its original in one decision or one returned value.

A mutant has one condition reversed, one ``and`` in place of an ``or`` (or the other way round), one effect left out of a tuple,
or one field left out of a call of ``replace``. Its name says where the change is, and what it is: ``offers.offer: without
Simple.CRDS``.

A mutant is tried in a fork of a process that has imported everything. In the fork, the mutant takes the place of its original.
The modules around it and the tests are imported again, and each test function is called. This is done without pytest, which would
take longer than all test functions. The mutant is killed if one of the functions fails.
"""

import ast
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from tests.programs import ROOT, run

SURVIVED, KILLED = 0, 1
UNCHANGED = "unchanged"
"""The name of the mutant without a change."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one change."""

    name: str
    module: str
    source: str


def mutants_of(module: str) -> Iterator[Mutant]:
    """Yield all mutants of a module, each with a unique name."""
    text, seen = _path(module).read_text(), Counter[str]()
    for number in range(_places(text)):
        tree = ast.parse(text)
        change = _Change(number)
        changed = change.visit(tree)
        name = f"{module.rpartition('.')[2]}.{change.function}: {change.what}"
        seen[name] += 1
        if seen[name] > 1:
            name += f" ({seen[name]})"
        yield Mutant(name, module, ast.unparse(ast.fix_missing_locations(changed)))


def _places(text: str) -> int:
    counted = _Change(-1)
    counted.visit(ast.parse(text))
    return counted.met


class _Change(ast.NodeTransformer):
    """A transformer that makes the change with this number in a syntax tree."""

    def __init__(self, number: int) -> None:
        self.number, self.met = number, 0
        self.function = self.what = ""
        self._within: list[str] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._within.append(node.name)
        node.body = [
            self.visit(each) for each in node.body
        ]  # only the body is changed, not the annotations and the defaults
        self._within.pop()
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        node.test = self._reversed(node.test)
        return self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        node.test = self._reversed(node.test)
        return self.generic_visit(node)

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        if node.guard is not None:
            node.guard = self._reversed(node.guard)
        node.body = [self.visit(each) for each in node.body]
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if self._is_here(f"`{ast.unparse(node)}` with the other of `and` and `or`"):
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return self.generic_visit(node)

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        kept = [each for each in node.elts if not (_is_effect(each) and self._is_here(f"without {ast.unparse(each)}"))]
        node.elts = [self.visit(each) for each in kept]
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if ast.unparse(node.func) == "replace":
            node.keywords = [each for each in node.keywords if not self._is_here(f"without {ast.unparse(each)}")]
        return self.generic_visit(node)

    def _reversed(self, test: ast.expr) -> ast.expr:
        return ast.UnaryOp(ast.Not(), test) if self._is_here(f"not `{ast.unparse(test)}`") else test

    def _is_here(self, what: str) -> bool:
        if not self._within:
            return False
        self.met += 1
        if self.met - 1 != self.number:
            return False
        self.function, self.what = ".".join(self._within), what
        return True


def _is_effect(node: ast.expr) -> bool:
    """Return whether an element of a tuple is an effect, or a starred group of effects."""
    if isinstance(node, ast.Starred):
        return True
    name = ast.unparse(node.func if isinstance(node, ast.Call) else node)
    return name.startswith("Simple.") or (isinstance(node, ast.Call) and name[:1].isupper())


def survivors(module: str, tests: Sequence[str], anew: Sequence[str]) -> list[str]:
    """Return the names of a module's mutants that no test kills.

    `UNCHANGED` has to be one of them, because the tests must pass without a change. ``tests`` are modules. ``anew`` contains the
    modules and packages that are imported again. The mutants are tried in a new process, which has one thread and can therefore
    fork.
    """
    asked = json.dumps([module, tests, anew])
    return [str(name) for name in json.loads(run(sys.executable, "-m", "tests.runtime.support.mutants", asked))]


def main() -> None:
    """Print the result of `survivors`."""
    module, tests, anew = json.loads(sys.argv[1])
    for name in tests:
        importlib.import_module(name)
    gc.freeze()
    unchanged = Mutant(UNCHANGED, module, ast.unparse(ast.parse(_path(module).read_text())))
    found = [each.name for each in (unchanged, *mutants_of(module)) if _tried(each, tests, anew) == SURVIVED]
    sys.stdout.write(json.dumps(found))


def _path(module: str) -> Path:
    return ROOT / (module.replace(".", "/") + ".py")


def _tried(mutant: Mutant, tests: Sequence[str], anew: Sequence[str]) -> int:
    pid = os.fork()
    if not pid:
        code = 2
        try:
            code = _try(mutant, tests, anew)
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (SURVIVED, KILLED), f"{mutant.name}: the tests ended with {code}"
    return code


def _try(mutant: Mutant, tests: Sequence[str], anew: Sequence[str]) -> int:
    for name in [name for name in sys.modules if any(name == each or name.startswith(each + ".") for each in anew)]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Finder(mutant))
    try:
        for name in tests:
            module = importlib.import_module(name)
            for function in [one for key, one in vars(module).items() if key.startswith("test_")]:
                for arguments in _cases(function):
                    function(**arguments)
    except (Exception, pytest.fail.Exception):  # noqa: BLE001 - a mutant may raise anything
        return KILLED
    return SURVIVED


def _cases(function: object) -> Iterator[dict[str, object]]:
    """Yield the arguments of each case of a test."""
    marks = [mark for mark in getattr(function, "pytestmark", ()) if mark.name == "parametrize"]
    for values in itertools.product(*(mark.args[1] for mark in marks)):
        arguments: dict[str, object] = {}
        for mark, value in zip(marks, values, strict=True):
            names = mark.args[0] if isinstance(mark.args[0], tuple) else (mark.args[0],)
            arguments |= zip(names, value if isinstance(mark.args[0], tuple) else (value,), strict=True)
        yield arguments


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """An import finder that replaces the original by the mutant."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if name != self._mutant.module:
            return None
        return importlib.util.spec_from_loader(name, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """Accept the default way in which a module is created."""
        del spec

    def exec_module(self, module: ModuleType) -> None:
        """Run the mutant as the module."""
        exec(compile(self._mutant.source, self._mutant.name, "exec"), module.__dict__)  # noqa: S102 - as an import does


if __name__ == "__main__":
    main()
