"""CEL expressions: those that Kubernetes documents, those that are not supported here, and the error messages."""

from typing import Final

import pytest

from tests.programs import ROOT
from wharfinger.formats.cel.engine import CelError, OutOfMemoryError, compile_expression, error_text
from wharfinger.formats.cel.functions import FUNCTIONS, INDEXES, MATCHES, STRING_FUNCTIONS
from wharfinger.formats.json.value import JsonValue

SETTINGS: Final[JsonValue] = {
    "minReplicas": 1,
    "replicas": 3,
    "maxReplicas": 5,
    "health": "ok",
    "set1": ["a"],
    "names": ["b", "a"],
    "nums": [3, 1, 2],
    "ratio": 1.5,
    "created": "2026-01-01T00:00:00Z",
    "expired": "2026-01-03T00:00:00Z",
    "ttl": "24h",
    "labels": {"MY_KEY": "abc"},
    "widgets": [{"key": "a", "foo": 1}, {"key": "b", "foo": 20}],
    "details": {"a": 1, "b": 2},
    "url": "https://example.com:80/path?q=1",
    "port": 8080,
    "namespace": "prod",
    "a-b": 1,
}

HOLDS: Final = (
    # The examples of Kubernetes' own documentation.
    "self.minReplicas <= self.replicas && self.replicas <= self.maxReplicas",
    "'MY_KEY' in self.labels",
    "(self.names.size() == 0) != (self.set1.size() > 0)",
    "!('MY_KEY' in self.labels) || self.labels['MY_KEY'].matches('^[a-zA-Z]*$')",
    "has(self.expired) && timestamp(self.created) + duration(self.ttl) < timestamp(self.expired)",
    "self.health.startsWith('ok')",
    "self.widgets.exists(w, w.key == 'a' && w.foo < 10)",
    "type(self.port) == string ? self.port == '99%' : self.port == 8080",
    "self.set1.exists_one(x, x == 'a')",
    "self.names.size() == self.details.size() && self.names.all(n, n in self.details)",
    "self.details.all(key, key.matches('^[a-zA-Z]*$'))",
    "self.widgets.filter(w, w.foo > 5).map(w, w.key) == ['b']",
    "size(self.names.filter(x, x != 'a')) == 1",
    # Lists.
    "[1, 2].isSorted() && !self.nums.isSorted() && ['a', 'b'].isSorted() && [].isSorted()",
    "self.nums.sum() == 6 && [1.5, 2.5].sum() == 4.0 && [].sum() == 0",
    "self.nums.min() == 1 && self.nums.max() == 3 && ['b', 'a'].min() == 'a'",
    "self.nums.indexOf(1) == 1 && [1, 2, 1].lastIndexOf(1) == 2 && ['a'].indexOf('z') == -1",
    "[true].indexOf(1) == -1 && [[1]].indexOf([1]) == 0 && [duration('1h')].indexOf(duration('60m')) == 0",
    "'abc'.indexOf('c') == 2 && 'abcabc'.lastIndexOf('b', 3) == 1 && 'hello'.indexOf('l', 3) == 3",
    "'a,b'.split(',').indexOf('b') == 1 && 'A'.lowerAscii().trim().charAt(0).indexOf('a') == 0",
    "'x-1'.replace('x', 'y').substring(0, 1).indexOf('y') == 0 && ['a', 'b'].join('+').indexOf('+') == 1",
    # Regular expressions.
    "'abc 123'.find('[0-9]+') == '123' && 'abc'.find('[0-9]+') == ''",
    "'123 abc 456'.findAll('[0-9]+') == ['123', '456'] && '123 abc 456'.findAll('[0-9]+', 1) == ['123']",
    "'abc'.find('(b)(c)') == 'bc' && 'aXbX'.findAll('(?P<n>[a-z])X', -1) == ['aX', 'bX']",
    # URLs, addresses, networks.
    "url(self.url).getHostname() == 'example.com' && url(self.url).getPort() == '80'",
    "url(self.url).getScheme() == 'https' && url(self.url).getHost() == 'example.com:80'",
    "url(self.url).getEscapedPath() == '/path' && url(self.url).getQuery() == {'q': ['1']}",
    "isURL('https://a.b/') && isURL('/absolute') && !isURL('a.b') && !isURL('https://a b/')",
    "isIP('::1') && !isIP('1.2.3') && ip('10.0.0.1').family() == 4 && ip.isCanonical('2001:db8::1')",
    "ip('127.0.0.1').isLoopback() && ip('::').isUnspecified() && ip('224.0.0.1').isLinkLocalMulticast()",
    "ip('169.254.1.1').isLinkLocalUnicast() && ip('10.1.2.3').isGlobalUnicast() && ip('::1') == ip('0:0::1')",
    "cidr('10.0.0.0/8').containsIP('10.1.1.1') && cidr('10.0.0.0/8').containsIP(ip('10.1.1.1'))",
    "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
    "cidr('10.0.0.1/8').masked() == cidr('10.0.0.0/8') && cidr('10.0.0.1/8').prefixLength() == 8",
    "cidr('10.0.0.1/8').ip() == ip('10.0.0.1') && isCIDR('::/0') && !isCIDR('10.0.0.0')",
    # Quantities and versions.
    "quantity('1Gi').isGreaterThan(quantity('500Mi')) && quantity('1k') == quantity('1000')",
    "quantity('50k').add(20).compareTo(quantity('50020')) == 0 && quantity('1').sub(quantity('2')).sign() == -1",
    "quantity('50k').asInteger() == 50000 && quantity('500m').asApproximateFloat() == 0.5",
    "isQuantity('1.3Gi') && !isQuantity('ten') && quantity('1k').isInteger() && !quantity('1m').isInteger()",
    "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('v1.2', true) == semver('1.2.0')",
    "isSemver('1.0.0-rc.1') && !isSemver('v1') && semver('1.2.3').minor() == 2 && semver('1.2.3').major() == 1",
    # Durations and timestamps.
    "duration('1h30m') > duration('1h') && duration('1h').getHours() == 1",
    "timestamp('2026-01-01T00:00:00Z').getFullYear() == 2026",
    "timestamp('2026-01-01T12:00:00Z').getHours('Europe/Berlin') == 13",
    # Strings.
    "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2)[1] == 'b,c'",
    "['a', 'b'].join('-') == 'a-b' && 'hello'.replace('l', 'L', 1) == 'heLlo' && 'gums'.reverse() == 'smug'",
    "'hello'.substring(1, 3) == 'el' && 'hello'.charAt(0) == 'h' && '  x '.trim() == 'x' && 'X'.lowerAscii() == 'x'",
    "'%s is %d of %.2f and %x'.format(['x', 5, 1.5, 255]) == 'x is 5 of 1.50 and ff'",
    "strings.quote('a') == '\"a\"' && '\\u00e9'.size() == 1",
    # Optionals, two variables, sets.
    "optional.of(1).hasValue() && self.?missing.orValue(5) == 5 && !self[?'missing'].hasValue()",
    "self.?replicas.optMap(x, x + 1).orValue(0) == 4 && [1, ?optional.none(), 2] == [1, 2]",
    "optional.none().or(optional.of(3)).value() == 3 && !optional.ofNonZeroValue(0).hasValue()",
    "[1, 2].all(i, v, i < v) && {'a': 1}.all(k, v, v == 1) && [1, 2].exists(i, v, v == 2 && i == 1)",
    "[1, 2].existsOne(i, v, v == 2) && [1, 2].transformList(i, v, v * 2 + i) == [2, 5]",
    "sets.contains([1, 2], [1]) && sets.equivalent([1, 1], [1]) && sets.intersects([1], [1, 2])",
    # Numbers of different types, and errors that do not decide the result.
    "self.replicas == 3.0 && self.replicas == 3u && self.replicas > 2.5 && self.ratio > 1 && self.replicas % 2 == 1",
    "true || self.nope && [1].exists(x, self.nope || x == 1)",
    # Names.
    "self.namespace == 'prod' && self['a-b'] == 1",
    # Extensions that Kubernetes does not have.
    "math.greatest(1, 2) == 2 && cel.bind(x, 2, x * x) == 4 && base64.encode(b'hi') == 'aGk='",
    "[3, 1].sort() == [1, 3] && [[1], [2]].flatten() == [1, 2] && [1, 1].distinct() == [1]",
)

MISSING: Final = {
    # docs/cel.md lists each of these.
    "format.dns1123Label().validate('a').hasValue()": "undeclared reference to 'format'",
    "authorizer.group('').resource('pods').check('get').allowed()": "undeclared reference to 'authorizer'",
    "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}": "unknown macro or function",
    "{'a': 1}.transformMapEntry(k, v, {v: k}) == {1: 'a'}": "unknown macro or function",
    "string(ip('10.0.0.1')) == '10.0.0.1'": "found no matching overload for 'string'",
    "string(cidr('10.0.0.0/8')) == '10.0.0.0/8'": "found no matching overload for 'string'",
    "'a'.reverse().indexOf('a') == 0": "no matching overload for 'reverse'",
    "1 in [1.0]": "found no matching overload",
}
REFUSED: Final = {
    "": "Syntax error",
    "self ==": "Syntax error",
    "true) || (true": "Syntax error",
    "nope == 1": "undeclared reference to 'nope'",
    "self.nope()": "undeclared reference to 'nope'",
    "'a' > 1": "found no matching overload for '_>_' applied to '\\(string, int\\)'",
    "'text'": "returns string, not bool",
    "1 + 1": "returns int, not bool",
    "(" * 100 + "true" + ")" * 100: "recursion limit",
    "+".join(["1"] * 1000) + " > 0": "recursion depth",
    "true" + " " * 100_000: "codepoint limit",
}
NO_ANSWER: Final = {
    "self.nope == 1": "no such key: nope",
    "self.labels.deep.deeper == 1": "no such key: deep",
    "self.health < null": "no such overload: _<_\\(string, null_type\\)",
    "self.nums[10] == 1": "index out of range",
    "self.replicas / 0 == 1": "divide by zero",
    "self.replicas + 9223372036854775807 == 1": "integer overflow",
    "[].min() == 1": "min: min\\(\\) of an empty list",
    "[1, 'a'].max() == 1": "max: values that cannot be combined",
    "['a'].sum() == 1": "sum: sum\\(\\) expects a list of numbers",
    "[9223372036854775807, 1].sum() == 1": "sum: integer overflow",
    "quantity('x').sign() == 1": "quantity: expected a quantity",
    "quantity('1').isLessThan(semver('1.0.0'))": "isLessThan: expected the result of quantity\\(\\)",
    "ip('1.2.3').family() == 4": "ip: not an IP address",
    "'a'.find('(') == ''": "find: invalid arguments",
    "'%s'.format([duration('1h')]).indexOf('s') == 4": "format: invalid arguments",
    "optional.none().value() == 1": "invalid argument",
    "[duration('1h')].max() == duration('1h')": "invalid argument",  # docs/cel.md
    "[duration('1h')].sum() == duration('1h')": "sum\\(\\) expects a list of numbers",  # docs/cel.md
    "timestamp(self.health) == timestamp(self.created)": "invalid argument",
    "self.created + duration('1h') > self.created": "no such overload: _\\+_\\(string, duration\\)",  # docs/cel.md
    "lists.range(20000).all(x, x >= 0)": "more than 10000 steps",
    "lists.range(200).all(x, lists.range(200).all(y, true))": "more than 10000 steps",
}


def answer(text: str, value: JsonValue = SETTINGS, self_type: str = "") -> object:
    return compile_expression(text, self_type=self_type, result="bool").evaluate(value, None)


@pytest.mark.parametrize("text", HOLDS)
def test_rules_documented_by_kubernetes_hold(text: str) -> None:
    assert answer(text) is True


@pytest.mark.parametrize("text", MISSING)
def test_missing_functions_are_refused_at_compile_time(text: str) -> None:
    with pytest.raises(CelError, match=MISSING[text]):
        compile_expression(text, self_type="", result="bool")


@pytest.mark.parametrize("text", REFUSED)
def test_invalid_expressions_do_not_compile(text: str) -> None:
    with pytest.raises(CelError, match=REFUSED[text]):
        compile_expression(text, self_type="", result="bool")


def test_compile_errors_report_a_position() -> None:
    with pytest.raises(CelError) as caught:
        compile_expression("self.a ==\n nope", self_type="", result="bool")
    assert str(caught.value) == "2:2: undeclared reference to 'nope'"


@pytest.mark.parametrize("text", NO_ANSWER)
def test_failed_evaluations_report_the_reason(text: str) -> None:
    with pytest.raises(CelError, match=NO_ANSWER[text]):
        answer(text)


@pytest.mark.parametrize(
    ("text", "self_type", "fits"),
    [
        ("self > 'a'", "string", True),
        ("self > 1", "string", False),
        ("self.size() == 1", "boolean", False),
        ("self.all(x, x > 1)", "array", True),
        ("self + 1 > 2", "array", False),
        ("self.a > 1", "object", True),
        ("self > 1", "object", False),
        ("self > 1.5", "integer", True),
        ("self > 1", "number", True),
        ("self > 1", "", True),
    ],
)
def test_self_has_the_type_of_the_schema(text: str, self_type: str, fits: bool) -> None:
    if fits:
        assert not compile_expression(text, self_type=self_type, result="bool").uses_old
    else:
        with pytest.raises(CelError, match="overload"):
            compile_expression(text, self_type=self_type, result="bool")


@pytest.mark.parametrize(
    ("value", "self_type"), [(2**70, ""), ({"a": -(2**64)}, ""), (1, "string"), ("a", "object"), (None, "array")]
)
def test_values_without_a_cel_form_are_refused(value: JsonValue, self_type: str) -> None:
    with pytest.raises(CelError, match=r"type that the schema declares|invalid argument"):
        answer("self == self && size(string(self == self)) > 0", value, self_type)


def test_expressions_may_return_text() -> None:
    told = compile_expression("'at most ' + string(self.maxReplicas)", self_type="", result="string")
    assert told.evaluate(SETTINGS, None) == "at most 5"
    with pytest.raises(CelError, match="returns bool, not string"):
        compile_expression("true", self_type="", result="string")


def test_rules_can_compare_with_the_old_value() -> None:
    for text in ("self.a >= oldSelf.a", "oldSelf == self || self.a > oldSelf['a']"):
        for kind in ("", "object"):
            rule = compile_expression(text, self_type=kind, result="bool")
            assert rule.uses_old
            assert rule.evaluate({"a": 2}, {"a": 2}) is True
            assert rule.evaluate({"a": 1}, {"a": 2}) is False
    assert not compile_expression("self.oldSelf == 'oldSelf'", self_type="", result="bool").uses_old


def test_an_optional_old_value_may_be_absent() -> None:
    rule = compile_expression(
        "oldSelf.hasValue() ? self >= oldSelf.value() : self > 10 // or so",
        self_type="",
        result="bool",
        optional_old=True,
    )
    assert rule.uses_old
    assert rule.evaluate(2, 1) is True
    assert rule.evaluate(2, 3) is False
    assert rule.evaluate(2, None) is False
    assert rule.evaluate(11, None) is True
    for text in ("true) || (oldSelf.hasValue()", "oldSelf.hasValue() ? 'a' : 'b'"):
        with pytest.raises(CelError, match=r"Syntax error|returns string"):
            compile_expression(text, self_type="", result="bool", optional_old=True)
    assert not compile_expression("self > 1", self_type="", result="bool", optional_old=True).uses_old


@pytest.mark.parametrize(
    "text",
    [
        "self[self.k] == 1",
        "{1: 2}[self.k] == 1",
        "duration(self.k) == duration('1h')",
        "int(self.k) == 1",
        "'a'.matches('(' + self.k)",
        "self.k.find('(' + self.k) == ''",
        "semver(self.k).major() == 1",
        "quantity(self.k).sign() == 1",
        "url(self.k).getHost() == ''",
        "ip(self.k).family() == 4",
        "cidr(self.k).prefixLength() == 4",
        "('%q' + self.k).format(['a']) == ''",
        "timestamp(self.k) == timestamp('2026-01-01T00:00:00Z')",
        "base64.decode(self.k + '!') == b''",
        "timestamp('2026-01-01T00:00:00Z').getHours(self.k) == 1",
    ],
)
def test_errors_never_contain_the_value(text: str) -> None:
    with pytest.raises(CelError) as caught:
        answer(text, {"k": "topsecret"})
    assert "topsecret" not in str(caught.value)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ('NOT_FOUND: Key not found in map : "a"', "no such key: a"),
        ('NOT_FOUND: Key not found in map : "b"', "no such key"),
        ("UNKNOWN: No matching overloads found : f(secret value!, 'x)", "a function was given an invalid argument"),
        ("anything at all", "a function was given an invalid argument"),
    ],
)
def test_error_texts_of_the_library_are_shortened_without_values(said: str, text: str) -> None:
    assert error_text(said, "self.a") == text


def test_memory_is_not_bounded_by_the_library() -> None:
    """An expression may use all memory of its process. tests/formats/cel/test_worker.py runs one in a process with a limit."""
    assert issubclass(OutOfMemoryError, CelError)
    assert answer("cel.bind(a, self + self, cel.bind(b, a + a, b.size())) == 400", "x" * 100) is True


def test_docs_list_the_known_and_missing_functions() -> None:
    """docs/cel.md must name each function that rules can use, and each missing construct that this test lists."""
    page = (ROOT / "docs" / "cel.md").read_text()
    known = page.partition("## Functions in rules")[2].partition("\n## ")[0]
    for overload in (*FUNCTIONS, *INDEXES):
        assert f"`{overload.name}`" in known
    for name, *_ in (*STRING_FUNCTIONS, *MATCHES):
        assert f"`{name}`" in known
    missing = page.partition("## What is missing")[2].partition("\n## ")[0]
    for name in (
        "format.dns1123Label()",
        "authorizer",
        "transformMap",
        "transformMapEntry",
        "string(ip(",
        "`1 in [1.0]`",
    ):
        assert name in missing


@pytest.mark.parametrize(
    "text",
    [
        # The lines of docs/cel.md about different results, not about missing functions.
        "'123 abc 456'.findAll('[0-9]*') == ['123', '456']",
        "type(quantity('1')) == map && type(ip('::1')) == map && type(url('/')) == map && type(semver('1.0.0')) == map",
        "type(self.created) == string && timestamp(self.created) < timestamp(self.expired)",
        "type(self.encoded) == string",
        "self.sets != ['b', 'a'] && self.sets + ['a'] == ['a', 'b', 'a']",
        "!has(self.undeclared)",
    ],
)
def test_documented_differences_from_kubernetes_hold(text: str) -> None:
    value: JsonValue = {
        "created": "2026-01-01T00:00:00Z",
        "expired": "2026-01-03T00:00:00Z",
        "encoded": "aGk=",
        "sets": ["a", "b"],
    }
    assert answer(text, value) is True
