"""Quantities and versions in CEL rules."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.cel import quantity as q


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("+1", 1), ("-1.5", Fraction(-3, 2)), (".5", Fraction(1, 2)), ("1.", 1), ("100m", Fraction(1, 10)),
        ("1k", 1000), ("1Ki", 1024), ("1.5Gi", 3 * 2**29), ("1E", 10**18), ("1Ei", 2**60),
        ("1e3", 1000), ("1E-2", Fraction(1, 100)),
        ("5n", Fraction(5, 10**9)), ("5u", Fraction(5, 10**6)), ("2M", 2 * 10**6), ("2G", 2 * 10**9),
        ("2T", 2 * 10**12), ("2P", 2 * 10**15),
    ],
)  # fmt: skip
def test_quantities_are_parsed_to_exact_fractions(text: str, value: Fraction) -> None:
    assert q.quantity(text) == {"quantity": f"{Fraction(value).numerator}/{Fraction(value).denominator}"}
    assert q.is_quantity(text)


@pytest.mark.parametrize(
    "text", ["", ".", "x", "1 Gi", "1gi", "1KI", "1e", "1e1000", "--1", "1..2", "0x1", "1\n", "9" * 65, "٣"]
)
def test_invalid_quantities_are_refused(text: str) -> None:
    assert not q.is_quantity(text)
    with pytest.raises(ValueError, match="expected a quantity"):
        q.quantity(text)


@given(st.fractions(), st.fractions(), st.integers(-(10**6), 10**6))
def test_quantities_compare_and_add_as_numbers(one: Fraction, other: Fraction, whole: int) -> None:
    a = {"quantity": f"{one.numerator}/{one.denominator}"}
    b = {"quantity": f"{other.numerator}/{other.denominator}"}
    assert q.compare(a, b) == (one > other) - (one < other)
    assert q.is_greater(a, b) is (one > other)
    assert q.is_less(a, b) is (one < other)
    assert q.sub(q.add(a, b), b) == a
    assert q.sub(q.add(a, whole), whole) == a
    assert q.sign(a) == (one > 0) - (one < 0)
    assert q.as_float(a) == float(one)


def test_quantities_beyond_64_bit_integers_are_refused_as_integers() -> None:
    assert q.as_integer(q.quantity("2k")) == 2000
    for text in ("1m", "9223372036854775808", "-9223372036854775809"):
        assert not q.is_integer(q.quantity(text))
        with pytest.raises(ValueError, match="64 bits"):
            q.as_integer(q.quantity(text))
    assert q.is_integer(q.quantity("-9223372036854775808"))


@pytest.mark.parametrize(
    ("text", "normalize", "canonical"),
    [
        ("1.2.3", False, "1.2.3"),
        ("1.2.3-rc.1+build", False, "1.2.3-rc.1"),
        ("v1.2", True, "1.2.0"),
        ("01.02.03", True, "1.2.3"),
        ("v1-rc1", True, "1.0.0-rc1"),
        ("v1.2.3", False, None),
        ("1.2", False, None),
        ("", True, None),
        ("one", True, None),
        ("1.2.3-", True, None),
        ("1" * 300, True, None),
    ],
)
def test_semantic_versions_are_parsed_and_normalized(text: str, normalize: bool, canonical: str | None) -> None:
    assert q.is_version(text, normalize) is (canonical is not None)
    if canonical is not None:
        assert q.version(text, normalize) == {"semver": canonical}
    else:
        with pytest.raises(ValueError, match="not a semantic version"):
            q.version(text, normalize)


def test_versions_have_parts_and_an_order() -> None:
    version = q.version("1.2.3-rc.1")
    assert (q.major(version), q.minor(version), q.patch(version)) == (1, 2, 3)
    assert q.is_less(version, q.version("1.2.3"))
    assert q.compare(version, version) == 0
    assert q.is_greater(q.version("1.10.0"), q.version("1.9.0"))


@pytest.mark.parametrize("value", [{}, {"quantity": 1}, {"ip": "1"}, {"quantity": "1/1", "more": ""}])
def test_values_of_another_type_are_refused(value: q.Tagged) -> None:
    with pytest.raises(ValueError, match=r"expected the result of quantity\(\)"):
        q.sign(value)
