"""How much of a test coverage looks at: tracing doubles what Python costs, and soon finds nothing new.

The process that hands tests out is not traced, nor is the collecting of tests: what is traced of it is that the product's modules
are imported, all of them before. A property is traced for its first TRACED_EXAMPLES examples, and the engine that makes them up
never: what the first ones do not reach, tests by example have to, which say what they are for. A test marked ``unmeasured`` is
not traced at all, and neither is any child that it starts. It repeats for certainty's sake what others run once (fuzzing,
``kill -9`` at every step), or tells a story of many modules, each of which has tests of its own.

Tracing is switched in one frame each time, off and on again: the tracer counts calls and returns, and must see both or neither.
"""

import functools
import importlib
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Final, Protocol, cast

import wharfinger

TRACED_EXAMPLES: Final = 10
_OF_CHILDREN: Final = "COVERAGE_PROCESS_CONFIG"
"""By this, children know that they are measured."""


class _Example(Protocol):
    """A test with all that Hypothesis makes up for it."""

    def __call__(self, *args: object, **kwargs: object) -> object: ...


class _Handle(Protocol):
    """What Hypothesis keeps of a test: ``inner_test`` runs one example."""

    inner_test: _Example


def untraced() -> Generator[None, object, object]:
    """The body of a hook's wrapper: what is run inside is not traced, but its children are."""
    trace = sys.gettrace()
    sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(trace)


def import_product() -> None:
    """Import each module of the product, so that what runs when that is done is traced once, whatever else is not."""
    package = Path(wharfinger.__file__).parent
    for module in sorted(package.glob("*/**/*.py")):
        path = module.relative_to(package).with_suffix("")
        importlib.import_module(".".join(("wharfinger", *path.parts)).removesuffix(".__init__"))


def unmeasured() -> Generator[None, object, object]:
    """The body of a hook's wrapper: what is run inside is not traced, nor are its children."""
    trace, of_children = sys.gettrace(), os.environ.pop(_OF_CHILDREN, None)
    sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(trace)
        if of_children is not None:
            os.environ[_OF_CHILDREN] = of_children


def measured_at_first(test: object) -> Generator[None, object, object]:
    """The same for a property: its first examples are traced, each of them alone."""
    handle = cast("_Handle", test)
    example, trace, examples = handle.inner_test, sys.gettrace(), 0

    @functools.wraps(example)
    def traced_at_first(*args: object, **kwargs: object) -> object:
        nonlocal examples
        examples += 1
        if examples > TRACED_EXAMPLES:
            return example(*args, **kwargs)
        sys.settrace(trace)
        try:
            return example(*args, **kwargs)
        finally:
            sys.settrace(None)

    handle.inner_test = traced_at_first
    sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(trace)
        handle.inner_test = example
