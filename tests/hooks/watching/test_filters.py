"""The filter protocol: its error, and the jq pool as an implementation."""

from wharfinger.formats.errors import ProgramError
from wharfinger.hooks.watching.filters import FilterError, Filters
from wharfinger.hooks.watching.jq_pool import JqLimits, JqPool
from wharfinger.packages.definition.conversions import JqRunner


def test_filter_error_names_the_filter_and_the_reason() -> None:
    error = FilterError(".a |", "syntax error")
    assert str(error) == "jq filter '.a |': syntax error"
    assert (error.program, error.why, error.transient) == (".a |", "syntax error", False)
    assert isinstance(error, ProgramError), "code that does not know hooks handles it as a ProgramError"
    assert FilterError(".", "late", transient=True).transient
    assert not FilterError(".", "late", transient=True).at_once
    assert FilterError(".", "died", transient=True, at_once=True).at_once


def test_long_filters_are_truncated_in_errors() -> None:
    assert len(str(FilterError("x" * 10_000, "why"))) < 200


def test_jq_pool_implements_the_filters_protocol() -> None:
    pool = JqPool(None, JqLimits())
    filters: Filters = pool
    assert filters is pool
    owned: Filters = filters.of("web").of("shop")
    assert owned is not pool
    runs_conversions: JqRunner = owned
    assert runs_conversions is owned
    pool.close()
