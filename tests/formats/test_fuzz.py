"""All readers with mutated input, in processes that may crash, and a proof that the fuzzer finds bad readers."""

import os
from pathlib import Path

import pytest

from tests.formats.support.fuzz_harness import FuzzFinding, fuzz
from tests.formats.support.fuzz_inputs import make_input
from tests.formats.support.fuzz_readers import BAD_TARGETS, TARGETS, check_tree, is_bad
from tests.scale import scaled

pytestmark = pytest.mark.unmeasured


@pytest.mark.sampled
@pytest.mark.parametrize("target", TARGETS)
def test_no_input_breaks_a_reader(target: str) -> None:
    """A reader may raise only FormatError. It must not crash, hang or exhaust the memory."""
    count = scaled(100_000, 300)

    report = fuzz(target, count=count, seed=1)

    assert report.accepted + report.refused == count
    # A fuzzer shows nothing if all its inputs are refused, or if all are accepted.
    assert min(report.accepted, report.refused) > count // 20, report


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(
    ("target", "kind", "detail"),
    [
        ("bad-abort", "crash", "SIGABRT"),
        ("bad-segfault", "crash", "SIGSEGV"),
        ("bad-exit", "crash", "ended with 0"),
        ("bad-loop", "hang", "SIGPROF"),
        ("bad-memory", "memory", "MemoryError"),
        ("bad-key-error", "exception", "KeyError"),
        ("bad-recursion", "exception", "RecursionError"),
    ],
)
def test_the_harness_finds_bad_readers(target: str, kind: str, detail: str) -> None:
    with pytest.raises(FuzzFinding) as caught:
        fuzz(target, count=1_000, seed=2, cpu_seconds=0.5 if kind == "hang" else 10.0)

    finding = caught.value
    assert (finding.kind, detail in str(finding)) == (kind, True)
    assert is_bad(finding.data)
    assert f"fuzz_child {target} 2 {finding.index} {finding.index + 1}" in str(finding)
    # This is the first bad input. All inputs before it were run, and no reader failed on them.
    assert not any(is_bad(make_input("yaml", 2, index)) for index in range(finding.index))


def test_every_kind_of_bad_reader_is_tested() -> None:
    assert len(BAD_TARGETS) == 7


def test_a_tree_with_an_outward_link_or_loose_modes_is_detected(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir(0o700)
    (tree / "in").symlink_to(".")
    check_tree(tree)

    (tree / "out").symlink_to("..")
    with pytest.raises(AssertionError, match="out leads to"):
        check_tree(tree)
    (tree / "out").unlink()
    (tree / "file").touch(0o600)
    check_tree(tree)
    for mode in (0o640, 0o4700, 0o604):
        (tree / "file").chmod(mode)
        with pytest.raises(AssertionError, match="has mode"):
            check_tree(tree)
    (tree / "file").unlink()
    os.mkfifo(tree / "fifo", 0o600)
    with pytest.raises(AssertionError, match="has mode"):
        check_tree(tree)


@pytest.mark.parametrize("corpus", ["yaml", "json", "redaction", "tar", "layers", "schema", "json-patch"])
def test_inputs_repeat_and_differ(corpus: str) -> None:
    inputs = [make_input(corpus, 1, index) for index in range(100)]

    assert inputs == [make_input(corpus, 1, index) for index in range(100)]
    assert len(set(inputs)) > 80
    assert inputs != [make_input(corpus, 2, index) for index in range(100)]
