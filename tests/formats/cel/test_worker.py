"""The process of a rule worker, and hostile rules that it evaluates."""

import io
import resource
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from wharfinger.formats.cel import worker as cel_worker
from wharfinger.formats.cel.protocol import (
    CelProtocolError,
    Finding,
    FindingKind,
    decode_line,
    encode_at,
    encode_check,
    encode_evaluation,
)
from wharfinger.formats.cel.worker import SCHEMAS_KEPT, Schemas, serve
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.schemas.openapi_schema import compile_schema
from wharfinger.formats.schemas.validations import KUBERNETES, SchemaRules


def rules(*texts: str) -> SchemaRules:
    found = compile_schema({KUBERNETES: [{"rule": text} for text in texts]}, what="s").rules
    assert found is not None
    return found


def evaluation(value: JsonValue, *texts: str) -> bytes:
    return encode_evaluation(rules(*texts), value, None)


def served(*lines: bytes) -> list[str | tuple[Finding, ...]]:
    answers = io.BytesIO()
    serve(io.BytesIO(b"".join(lines)), answers)
    return [decode_line(line) for line in answers.getvalue().splitlines()]


@pytest.fixture(autouse=True)
def _no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not set the CPU limit in this process. It would kill a test process that has already used much CPU time."""
    monkeypatch.setattr(resource, "setrlimit", lambda _which, _limits: None)


def test_the_worker_answers_checks_and_evaluations() -> None:
    place = f"{KUBERNETES}[0]"
    assert served(encode_check(rules("self > 1")), evaluation(2, "self > 1"), evaluation(0, "self > 1")) == [
        (),
        place,
        (),
        place,
        (Finding(FindingKind.FAILED, (), place, "failed rule: self > 1"),),
    ]
    (found,) = served(encode_check(rules("self >")))
    assert isinstance(found, tuple)
    assert found[0].message.startswith("does not compile: ")


def test_an_incomplete_request_ends_the_worker() -> None:
    assert served(encode_check(rules("true")), encode_check(rules("true"))[:-1]) == [()]
    assert served() == []


@pytest.mark.parametrize("line", [b"\n", b"{}\n", b'{"rules":[]}\n', b'{"rules":{"rules":[{}]}}\n', encode_at("x")])
def test_an_invalid_request_ends_the_worker(line: bytes) -> None:
    with pytest.raises(FormatError):
        served(line)


def test_a_request_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cel_worker, "REQUEST_BYTES", 100)
    with pytest.raises(CelProtocolError, match="more than 100 bytes"):
        served(b"x" * 101)


def test_recently_used_compiled_rules_are_cached() -> None:
    schemas = Schemas()
    first = schemas.get(b'{"rules":[]}')
    for number in range(SCHEMAS_KEPT - 1):
        schemas.get(b'{"type":"%d"}' % number)
    assert schemas.get(b'{"rules":[]}') is first
    for number in range(SCHEMAS_KEPT):
        schemas.get(b'{"type":"%d"}' % number)
    assert schemas.get(b'{"rules":[]}') is not first


BOMBS: dict[str, tuple[str, JsonValue, str]] = {
    "loops": ("self.all(a, self.all(b, self.all(c, a + b + c >= 0)))", list(range(1000)), "more than 10000 steps"),
    "lists of lists": ("self.map(a, self.map(b, a + b)).size() > 0", list(range(1000)), "more than 10000 steps"),
    "two variables": ("self.all(i, a, self.all(j, b, i + b >= 0))", list(range(1000)), "more than 10000 steps"),
    "a long range": ("lists.range(1000000000).size() > 0", 1, "too much memory"),
    "doubling": (
        "cel.bind(a, self + self + self + self, cel.bind(b, a + a + a + a, cel.bind(c, b + b + b + b, c + c))) != ''",
        "x" * 10_000_000,
        "too much memory",
    ),
    "replacing": ("self.replace('x', self).replace('x', self).size() > 0", "x" * 1500, "too much memory"),
    "texts in a loop": (
        "self.map(a, '" + "x" * 10_000 + "' + string(a)).size() < 0",
        list(range(9_000)),
        "too much memory",
    ),
    "a pattern": ("self.matches('((a{1,30}){1,30})b') || self.matches('(a|a|aa|a*)*b')", "a" * 100_000, "failed rule"),
    "a large pattern": ("'a'.matches('((((a{1,100}){1,100}){1,100}){1,100}){1,100}')", 1, "invalid argument"),
    "formats": ("'%.999999999f'.format([1.0]).size() > 0", 1, "invalid argument"),
}


def ask(*lines: bytes, seconds: float = 300) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-I", "-m", cel_worker.__name__]
    return subprocess.run(command, input=b"".join(lines), capture_output=True, timeout=seconds, check=False)


@pytest.mark.sampled
@pytest.mark.parametrize("name", BOMBS)
def test_a_rule_that_exhausts_resources_is_reported(name: str) -> None:
    """A rule that needs too much time or memory fails within the limits of the process. If it took too long, the worker then
    evaluates the next rule. If it needed too much memory, the worker evaluates no further rule.
    """
    text, value, why = BOMBS[name]
    done = ask(evaluation(value, text, "false || size('a') == 2"))
    assert done.returncode == 0
    found = decode_line(done.stdout.splitlines()[-1])
    assert isinstance(found, tuple)
    assert found[0].at == f"{KUBERNETES}[0]"
    assert why in found[0].message
    assert len(found) == (1 if "memory" in why else 2)


def test_the_worker_ends_after_running_out_of_memory() -> None:
    text, value, _ = BOMBS["a long range"]
    done = ask(evaluation(value, text), evaluation(1, "true"))
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 2


@pytest.mark.slow
def test_an_endless_rule_is_ended_by_the_cpu_limit() -> None:
    """The CPU limit ends a worker even if its daemon has died. A running daemon learns the reason from the signal."""
    line = evaluation(list(range(3_000)), *["self.map(x, x + 1).size() > 0"] * 900)
    command = [sys.executable, "-I", "-m", cel_worker.__name__, "1"]
    done = subprocess.run(command, input=line, capture_output=True, timeout=300, check=False)
    assert done.returncode == -signal.SIGXCPU


@pytest.mark.parametrize(("arguments", "seconds"), [(("7",), 7), ((), cel_worker.CPU_S)])
def test_the_cpu_time_is_an_argument(arguments: tuple[str, ...], seconds: int) -> None:
    script = (
        "import sys; from wharfinger.formats.cel import worker as cel_worker;"
        "cel_worker.serve = lambda _, answers, cpu_s: answers.write(b'%d' % cpu_s); cel_worker.main()"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script, *arguments], capture_output=True, timeout=300, check=True
    )
    assert done.stdout == b"%d" % seconds


def test_each_request_has_its_own_cpu_time(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed: list[int] = []

    def setrlimit(which: int, limits: tuple[int, int]) -> None:
        assert which == resource.RLIMIT_CPU
        allowed.append(limits[0])

    used = iter([0.2, 7.0])

    def getrusage(_: int) -> SimpleNamespace:
        return SimpleNamespace(ru_utime=next(used), ru_stime=0.5)

    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "getrusage", getrusage)
    serve(io.BytesIO(encode_check(rules("true")) * 2), io.BytesIO(), 3)
    assert allowed == [1 + 3, 8 + 3]


def test_the_worker_cannot_write_files(tmp_path: Path) -> None:
    """The real program runs here, so the kernel enforces its limit on the size of files."""
    target = tmp_path / "written"
    script = (
        "import sys; from wharfinger.formats.cel import worker as cel_worker;"
        f"cel_worker.serve = lambda *_: open({str(target)!r}, 'wb', 0).write(b'x'); cel_worker.main()"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, timeout=300, check=False)
    assert done.returncode != 0
    assert b"File too large" in done.stderr
    assert target.read_bytes() == b""


def test_the_daemon_does_not_load_the_library() -> None:
    script = (
        "import sys; from wharfinger.formats.cel import worker as cel_worker; print('cel_expr_python' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, timeout=300, check=True)
    assert done.stdout == b"False\n"
