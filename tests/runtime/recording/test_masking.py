"""Masked texts: they contain no known secret, and texts that differ only in their secrets stay different."""

from hypothesis import given
from hypothesis import strategies as st

from wharfinger.runtime.recording.masking import MOST_TEXTS, Masking, Renewals

SECRET = "hunter2-planted"


def test_known_secrets_and_credentials_are_masked() -> None:
    masking = Masking(lambda: (SECRET,), Renewals())
    assert masking(f"login with {SECRET} failed") == "login with ***1 failed"
    assert masking("password=swordfish and more") == "password=***2 and more"
    assert masking("nothing secret") == "nothing secret"


def test_texts_that_differ_only_in_a_secret_remain_different() -> None:
    masking = Masking(lambda: ("first-secret", "other-secret"), Renewals())
    assert masking("with first-secret") != masking("with other-secret")
    assert masking("again with first-secret") == "again with ***1"


def test_a_newly_known_secret_masks_earlier_texts_again() -> None:
    known: list[str] = []
    masking, renewals = Masking(lambda: tuple(known), Renewals()), Renewals()
    masking = Masking(lambda: tuple(known), renewals)
    assert masking(f"uses {SECRET}") == f"uses {SECRET}"
    known.append(SECRET)
    assert masking("another text") == "another text"
    assert (masking.renewed, renewals.count) == (1, 1)
    assert masking(f"uses {SECRET}") == "uses ***1"
    known.clear()
    assert masking(f"still {SECRET}") == "still ***1", "a former secret is still masked"


def test_the_number_of_cached_texts_is_bounded() -> None:
    renewals = Renewals()
    masking = Masking(tuple, renewals)
    for number in range(MOST_TEXTS):
        masking(f"text {number}")
    renewals.trim()
    assert masking.renewed == 0
    kept = masking.texts()
    for number in range(MOST_TEXTS + 2):
        masking(f"text {number}")
    assert masking.renewed == 0, "a record may still need them"
    renewals.trim()
    renewals.trim()
    assert (masking.renewed, renewals.count, len(masking.texts())) == (1, 1, 0)
    assert len(kept) == MOST_TEXTS + 2, "another thread may still read them"


@given(st.text(max_size=40), st.text(min_size=4, max_size=12), st.text(max_size=40))
def test_no_text_contains_a_known_secret(before: str, secret: str, after: str) -> None:
    masking = Masking(lambda: (secret,), Renewals())
    masked = masking(f"{before}{secret}{after}")
    assert secret not in masked or secret in "***0123456789"
