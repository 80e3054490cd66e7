"""Mutation tests of a package's state machine (`wharfinger/runtime/package`). The machine's tests detect every mutant of it."""

from typing import Final

import pytest

from tests.runtime.support.mutants import UNCHANGED, survivors

PACKAGE: Final = "wharfinger.runtime.package"
PARTS: Final = ("transitions", "reports", "offers", "operations", "decisions", "machine")
TESTS: Final = tuple(f"tests.runtime.package.test_{part}" for part in PARTS)
ANEW: Final = (*(f"{PACKAGE}.{part}" for part in PARTS), "tests.runtime.package")


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("part", PARTS)
def test_no_mutant_survives(part: str) -> None:
    own = f"tests.runtime.package.test_{part}"  # these tests kill most mutants, so they run first
    tests = (own, *(test for test in TESTS if test != own))
    assert survivors(f"{PACKAGE}.{part}", tests, ANEW) == [UNCHANGED]
