"""The records of a package: each has few fields, and only one module changes them."""

import ast
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pytest

from wharfinger.runtime.package import state
from wharfinger.runtime.package.instance import Instance

ROOT: Final = Path(__file__).resolve().parents[3] / "wharfinger"
MOST_FIELDS: Final = 12
RECORDS: Final = tuple(
    sorted(
        (each for each in vars(state).values() if isinstance(each, type) and each.__module__ == state.__name__),
        key=lambda record: record.__name__,
    )
)
PARTS: Final = frozenset(state.Package.__struct_fields__)
OWN: Final = frozenset(field.name for field in dataclasses.fields(Instance))
WRITER: Final = "runtime/package/transitions.py"
SHELL: Final = "runtime/package/instance.py"


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((ROOT / "runtime").rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())


def ends_of(node: ast.expr) -> tuple[str, str]:
    """Return the expression before the last attribute, and the last attribute, such as ``instance`` and ``desired`` for
    ``instance.desired``.
    """
    return (ast.unparse(node.value), node.attr) if isinstance(node, ast.Attribute) else ("", ast.unparse(node))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_no_record_of_a_package_has_many_fields(record: type[msgspec.Struct]) -> None:
    assert len(record.__struct_fields__) <= MOST_FIELDS


def test_an_instance_has_few_fields() -> None:
    assert len(OWN) <= MOST_FIELDS


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_the_records_are_frozen(record: type[msgspec.Struct]) -> None:
    values = dict.fromkeys(record.__struct_fields__)
    made = msgspec.structs.replace(record(**values))
    with pytest.raises(AttributeError):
        setattr(made, record.__struct_fields__[0], None)


@pytest.mark.slow
def test_records_are_replaced_in_one_module() -> None:
    writers = set()
    for name, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "replace" and node.args:
                owner, last = ends_of(node.args[0])
                if (last in PARTS and owner.endswith(("instance", "package", "state", "self"))) or last == "state":
                    writers.add(name)
    assert writers <= {WRITER}


@pytest.mark.slow
def test_records_are_created_in_one_module() -> None:
    names = {record.__name__ for record in RECORDS} - {"Package", "Brought"}
    makers = {
        name
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in names
        and imports(tree, node)
    }
    # The snapshot shows an empty history for a hook that never ran, and the recording reads states.
    assert makers <= {WRITER, "runtime/core/package_snapshot.py", "runtime/recording/package_form.py"}


def imports(tree: ast.Module, call: ast.Call) -> bool:
    """Return whether the called name is imported from the module of the records."""
    source = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == state.__name__]
    return any(alias.name == ast.unparse(call.func) for node in source for alias in node.names)


@pytest.mark.slow
def test_only_an_instance_writes_its_own_attributes() -> None:
    writers = {
        name
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr in OWN
        if "instance" in ast.unparse(node.value) or (name == SHELL and ast.unparse(node.value) == "self")
    }
    assert writers == {SHELL}


def test_the_check_detects_replaced_records() -> None:
    call = ast.parse("replace(instance.state.desired, version='1')").body[0]
    assert isinstance(call, ast.Expr)
    assert isinstance(call.value, ast.Call)
    owner, last = ends_of(call.value.args[0])
    assert (owner, last) == ("instance.state", "desired")
    assert last in PARTS
    assert {"state", "record", "steps", "running_hooks"} <= OWN


def test_new_packages_share_their_empty_records() -> None:
    fields = {field.name: field for field in msgspec.structs.fields(state.Package)}
    assert fields["desired"].default is state.NOTHING_DESIRED
    assert fields["configuration"].default is state.NO_CONFIGURATION
    assert state.HookState().failing is state.NO_FAILURES
    assert state.HookState().history is state.NO_HISTORY
