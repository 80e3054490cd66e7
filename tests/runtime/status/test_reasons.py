"""The reasons: there is one member for every reason that the code uses, and each failure has an explanation and a remedy."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from wharfinger.runtime.resources.resources import IGNORE_DEPENDENTS
from wharfinger.runtime.status import transitions as status
from wharfinger.runtime.status.reasons import (
    HELD,
    LOOKED_AT_ANEW,
    OFF,
    UNKNOWN_TIP,
    Again,
    Reason,
    advice,
    explanation,
    known,
)

RUNTIME = Path(inspect.getfile(status)).resolve().parents[1]
WORD = re.compile(r"[A-Z][a-z]+([A-Z][A-Za-z]*)?")
POSITIONS = {
    # These functions take a reason, at this position of their arguments.
    "Failure": 0, "RepositoryUnusableError": 0, "Progressed": 1, "progressing": 2, "failed": 2, "blocked": 2, "block": 3,
    "_block": 2, "Removing": 0, "required": 1,
}  # fmt: skip


def reasons_given(source: str) -> Iterator[str]:
    """Yield every text that is passed as a reason."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            position = POSITIONS.get(name, len(node.args))
            for argument in node.args[position : position + 1]:
                yield from (
                    part.value
                    for part in ast.walk(argument)
                    if isinstance(part, ast.Constant) and isinstance(part.value, str) and WORD.fullmatch(part.value)
                )


def test_every_reason_in_the_code_is_a_member() -> None:
    given = {reason for path in RUNTIME.rglob("*.py") for reason in reasons_given(path.read_text())}
    assert {"SpecInvalid", "NotReady", "Removing"} <= given
    assert given - set(Reason) == set()


def test_the_search_finds_reasons_in_calls() -> None:
    source = 'host.emit(instance, Progressed(Stage.HOOKS, "Odd" if x else "Strange", "text"))\nFailure("Weird", "Text", True)'
    assert set(reasons_given(source)) == {"Odd", "Strange", "Weird"}


def test_disabled_and_rechecked_packages_wait_for_a_change() -> None:
    assert {reason for reason in Reason if reason.again is Again.CHANGE} >= OFF | LOOKED_AT_ANEW


@pytest.mark.parametrize("reason", list(Reason))
def test_a_reason_is_found_by_its_text(reason: Reason) -> None:
    assert reason == reason.value == str(reason)
    assert WORD.fullmatch(reason)
    assert known(str(reason)) is reason
    assert explanation(reason) == reason.text


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason.again is not Again.NOTHING])
def test_failures_have_an_explanation_and_a_remedy(reason: Reason) -> None:
    assert reason.text
    assert reason.tip
    for text in (reason.text, reason.tip):
        assert not text.endswith(".")
        assert "automatically" not in text


def test_advice_mentions_automatic_retries() -> None:
    assert advice(Reason.REGISTRY_FAILED).endswith("; the daemon retries automatically")
    assert advice(Reason.CLUSTER_FAILED).endswith("; the daemon retries automatically")
    assert advice(Reason.CLUSTER_FAILED, permanent=True) == Reason.CLUSTER_FAILED.tip
    assert advice(Reason.APPLY_FAILED) == Reason.APPLY_FAILED.tip
    assert advice(Reason.REPOSITORY_NOT_FOUND, permanent=True).endswith("; the daemon then continues automatically")
    assert advice(Reason.DOWNLOADING) == ""


def test_advice_about_held_changes_names_the_annotation() -> None:
    for reason in HELD:
        assert reason.again is Again.OTHERS
        assert f"{IGNORE_DEPENDENTS}=true" in advice(reason)


def test_a_reason_of_another_version_has_a_general_tip() -> None:
    assert known("FromTheFuture") is None
    assert explanation("FromTheFuture") == ""
    assert advice("FromTheFuture") == UNKNOWN_TIP


def test_every_member_is_used_by_the_code() -> None:
    """Check that the code of the runtime uses every reason."""
    sources = [path.read_text() for path in RUNTIME.rglob("*.py") if path.name != "reasons.py"]
    texts = {
        node.value
        for source in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    names = {match for source in sources for match in re.findall(r"\bReason\.([A-Z_]+)", source)}
    assert [reason.name for reason in Reason if reason.value not in texts and reason.name not in names] == []
