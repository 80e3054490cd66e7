"""The choice of the tests that coverage traces. Tracing doubles the cost of Python code, so only the tests in the test module
of a module are traced.

====================================== ================================================================================
the test                               what is traced
====================================== ================================================================================
is in the test module of a module      the call of the test, in this process; for a Hypothesis test its first
                                       TRACED_EXAMPLES examples, each of them separately
is marked ``measured``                 the same, and the children that the test or its fixtures start
tests many modules, or is a state      nothing
machine, or is marked ``unmeasured``
====================================== ================================================================================

Use the mark ``measured`` only in tests of modules whose code otherwise runs only in children or in tests of many modules. Use
``unmeasured`` for tests that often repeat what other tests run once, such as fuzzing, and for slow tests that cover nothing
new. `.ci/coverage` does not run tests with this mark.

The collection of tests is not traced, nor is pytest itself. The collection would only cover the imports of the product's
modules, so each worker imports all of them under the tracer instead. Tracing is switched on and off in the same frame. The
tracer counts calls and returns, so it must see both the call of a function and its return, or neither.
"""

import functools
import importlib
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Final, Protocol, TypeAlias, cast

import pytest

import wharfinger

TRACED_EXAMPLES: Final = 10
PRODUCT: Final = Path(wharfinger.__file__).parent
TESTS: Final = Path(__file__).parent
_OF_CHILDREN: Final = "COVERAGE_PROCESS_CONFIG"
"""The environment variable that tells child processes to measure their coverage."""

HookBody: TypeAlias = Generator[None, object, object]
"""The body of a wrapper around a hook of pytest."""


class _Example(Protocol):
    """A test with the arguments that Hypothesis generated for it."""

    def __call__(self, *args: object, **kwargs: object) -> object: ...


class _Handle(Protocol):
    """The object that Hypothesis attaches to a test: ``inner_test`` runs one example."""

    inner_test: _Example


class Measuring:
    """The tracing in one process. Tracing is off, except during the calls of those tests for which `is_traced` is true."""

    def __init__(self) -> None:
        self._trace = sys.gettrace()
        self._of_children = os.environ.get(_OF_CHILDREN)

    @property
    def active(self) -> bool:
        """Return whether coverage runs in this process."""
        return self._trace is not None

    def session(self) -> HookBody:
        """Switch tracing off in this process, and do not measure its children, while the wrapped hook of pytest runs."""
        os.environ.pop(_OF_CHILDREN, None)
        sys.settrace(None)
        try:
            return (yield)
        finally:
            sys.settrace(self._trace)
            self._measure_children()

    def untraced(self) -> HookBody:
        """Switch tracing off in this process while the wrapped hook of pytest runs."""
        sys.settrace(None)
        try:
            return (yield)
        finally:
            sys.settrace(self._trace)

    def protocol(self, item: pytest.Item) -> HookBody:
        """If a test is marked ``measured``, also measure the coverage in child processes that the test or its fixtures
        start.
        """
        if _mark(item) != "measured":
            return (yield)
        self._measure_children()
        try:
            return (yield)
        finally:
            os.environ.pop(_OF_CHILDREN, None)

    def call(self, item: pytest.Function) -> HookBody:
        """Trace the call of a test, or the first examples of a Hypothesis test, if `is_traced` is true for the test."""
        if not is_traced(item):
            return (yield)
        if handle := getattr(item.obj, "hypothesis", None):
            return (yield from self._first_examples(cast("_Handle", handle)))
        test = item.obj
        item.obj = self._traced(test)
        try:
            return (yield)
        finally:
            item.obj = test

    def _first_examples(self, handle: _Handle) -> HookBody:
        example = handle.inner_test
        handle.inner_test = self._traced(example, TRACED_EXAMPLES)
        try:
            return (yield)
        finally:
            handle.inner_test = example

    def _traced(self, test: _Example, most: int = 1) -> _Example:
        """Return the test in a form that traces its first ``most`` runs."""
        runs = 0

        @functools.wraps(test)
        def traced(*args: object, **kwargs: object) -> object:
            nonlocal runs
            runs += 1
            if runs > most:
                return test(*args, **kwargs)
            sys.settrace(self._trace)
            try:
                return test(*args, **kwargs)
            finally:
                sys.settrace(None)

        return traced

    def _measure_children(self) -> None:
        if self._of_children is not None:
            os.environ[_OF_CHILDREN] = self._of_children


def is_traced(item: pytest.Item) -> bool:
    """Return whether coverage traces a test."""
    mark = _mark(item)
    return mark == "measured" or (not mark and tests_a_module(item.path))


def _mark(item: pytest.Item) -> str:
    """Return the mark of the test itself, or else the mark of its file, or "" if neither is marked."""
    return next((mark.name for mark in item.iter_markers() if mark.name in {"measured", "unmeasured"}), "")


@functools.cache
def tests_a_module(path: Path) -> bool:
    """Return whether a file is the test module of one module of the product."""
    place = path.relative_to(TESTS)
    return (PRODUCT / place.parent / place.name.removeprefix("test_")).is_file()


def import_product() -> None:
    """Import each module of the product while tracing is on, so that code at the top level of modules counts as covered."""
    for module in sorted(PRODUCT.glob("*/**/*.py")):
        path = module.relative_to(PRODUCT).with_suffix("")
        importlib.import_module(".".join(("wharfinger", *path.parts)).removesuffix(".__init__"))
