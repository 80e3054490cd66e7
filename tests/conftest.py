"""Settings for the whole suite: Hypothesis profiles, and the tools that `make setup` has installed."""

import gc
import logging
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.measuring import HookBody, Measuring, import_product
from tests.scale import FULL

# The tools of the checkout come first on PATH, however the tests were started (`make test`, `python -m pytest`, an editor).
TOOLS = Path(__file__).resolve().parent.parent / ".cache" / "tools" / "bin"
os.environ["PATH"] = os.pathsep.join([str(TOOLS), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])

# A background job of a shell ignores SIGINT. Its children would inherit this, but tests send SIGINT to them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("sample", max_examples=20, deadline=None, derandomize=True, print_blob=True)
settings.register_profile(
    "full", max_examples=200, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("full" if FULL else "sample")

MEASURING = Measuring()

# Almost all objects that are created while tests are collected stay, so a garbage collection would find nothing.
gc.disable()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Show an argument of type bytes by its name in the test's id, and not by its value.

    An archive, for example, contains the time of its creation, but all workers must collect tests with the same ids.
    """
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases of sampled tests that `make test` leaves out. Of each test, it runs only the first case, or every n-th
    case if the mark is ``sampled(n)``.

    While coverage is measured, all cases of a test that is marked ``measured`` run, because no other test covers the same code.
    In a run of `make test-full`, the modules that have slow tests come first.
    """
    seen: Counter[tuple[Path, str]] = Counter()
    for item in items:
        if MEASURING.active and item.get_closest_marker("measured"):
            continue
        if isinstance(item, pytest.Function) and (marker := item.get_closest_marker("sampled")):
            test = (item.path, item.originalname)
            if seen[test] % marker.args[0] if marker.args else seen[test]:
                item.add_marker(pytest.mark.left_out)
            seen[test] += 1
    if FULL:
        # If a long module started last, it would keep one worker busy while the others are idle.
        long = {item.path for item in items if item.get_closest_marker("slow")}
        items.sort(key=lambda item: item.path not in long)


def pytest_collection_finish() -> None:
    """Exempt tests and modules from garbage collection, because each run of the garbage collector would visit all of them."""
    gc.enable()
    gc.collect()
    gc.freeze()


def hands_out(session: pytest.Session) -> bool:
    """Return whether this process distributes tests to workers, and runs none itself."""
    return session.config.pluginmanager.has_plugin("dsession")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> HookBody:
    """Switch the tracing for coverage off while pytest finds the tests."""
    if not MEASURING.active:
        return (yield)
    if not hands_out(session):
        import_product()
    return (yield from MEASURING.untraced())


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> HookBody:
    """Switch the tracing for coverage off while tests are distributed. While they run, trace only the tests themselves."""
    if not MEASURING.active:
        return (yield)
    return (yield from MEASURING.untraced() if hands_out(session) else MEASURING.session())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> HookBody:
    """Measure the child processes of a test that is marked ``measured``."""
    return (yield from MEASURING.protocol(item)) if MEASURING.active else (yield)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> HookBody:
    """Trace only tests that add to the coverage."""
    return (yield from MEASURING.call(pyfuncitem)) if MEASURING.active else (yield)


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """Restore the logging configuration after each test."""
    root, own = logging.getLogger(), logging.getLogger("wharfinger")
    handlers, level, own_level = list(root.handlers), root.level, own.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    own.setLevel(own_level)
