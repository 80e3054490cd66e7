"""Redaction of text: given secrets never remain, and credentials are found by their form."""

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.redaction.redaction_text import MARK, SHORTEST_SECRET, TextRedactor, redact_text

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://user:pa55@host/x and git+ssh://tok@h:22/y", "see https://***@host/x and git+ssh://***@h:22/y"),
        ("https://a@b:c@host/", "https://***@host/"),
        (f"before\n{PEM}\nafter", "before\n***\nafter"),
        (PEM[:40], "***"),
        (PEM.replace("RSA ", ""), "***"),
        (f"jwt {JWT}, ok", "jwt ***, ok"),
        ("Bearer abcdefgh12345", "Bearer ***"),
        ("authorization=abc", "authorization=***"),
        ('-H "X-Authorization: Basic dXNlcjpwYXNz"', '-H "X-Authorization: Basic ***"'),
        ("got Authorization: Token abc from peer", "got Authorization: Token *** from peer"),
        ("password=hunter2 user=bob", "password=*** user=bob"),
        ("1 sha256:2c26b46b", "1 sha256:2c26b46b"),
        ("sha256:2c26b46b password: hunter2", "sha256:2c26b46b password: ***"),
        ("sha256:2c26b46b\npassword: hunter2", "sha256:2c26b46b\npassword: ***"),
        ("sha256://user:pa55@host", "sha256://***@host"),
        ("password-sha256:2c26b46b password=hunter2", "password-sha256:2c26b46b password=***"),
        ("?user=a&password=hunter2&ssl=1", "?user=a&password=***&ssl=1"),
        ("--token abc --password=def --name x", "--token *** --password=*** --name x"),
        ("-token abcdefgh", "-token ***"),
        ("--token 'a b' --token --next", "--token '***' --token --next"),
        ("export DB_PASS=hunter2 # note", "export DB_PASS=*** # note"),
        ("password: correct horse battery\nname: x", "password: ***\nname: x"),
        ("- password: a b\n- x", "- password: ***\n- x"),
        ("+  password: new\n-  password: old", "+  password: ***\n-  password: ***"),
        ("a:\n  password: |\n    one\n\n    two\n  next: 1", "a:\n  password: ***\n  next: 1"),
        ("password: >-\n  one\nnext: 1", "password: ***\nnext: 1"),
        ("password: |\nnext: 1", "password: |\nnext: 1"),
        ('{"apiKey": "abc\\"def", "n": 1}', '{"apiKey": "***", "n": 1}'),
        ('"{\\"password\\":\\"hunter2\\",\\"x\\":1}"', '"{\\"password\\":\\"***\\",\\"x\\":1}"'),
        ("{a: 1, password: x, b: 2}", "{a: 1, password: ***, b: 2}"),
        ("token: 'it''s'", "token: '***'"),
        ('password="never closed, so all', "password=***"),
        ("error: password: hunter2", "error: password: ***"),
        ("Driver=x;UID=sa;PWD=/hunter2;", "Driver=x;UID=sa;PWD=***;"),
        ("PWD=hunter2", "PWD=***"),
        ("PWD=/a b", "PWD=*** b"),
        ("password: Permission denied, said hunter2", "password: ***"),
        ("password: /etc/hunter2", "password: ***"),
        ("password: open /etc/hunter2", "password: ***"),
        ("kubeconfig: YXBpVmVyc2lvbjogdjEK", "kubeconfig: ***"),
        ('"kubeconfig": "apiVersion: v1"', '"kubeconfig": "***"'),
        ("export KUBECONFIG=/a/kubeconfig TOKEN=hunter2", "export KUBECONFIG=/a/kubeconfig TOKEN=***"),
    ],
)
def test_credentials_are_recognized_by_their_form(text: str, expected: str) -> None:
    assert redact_text(text) == expected
    assert redact_text(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing to see",
        "invalid token: unexpected end of input",
        "cat: /var/lib/wharfinger/embedded/kubeconfig: Permission denied",
        "cat: /run/secrets/token: Permission denied",
        "kubeconfig: No such file or directory",
        "Secret shop/db-password: not there",
        "release shop/web: Secret shop/db-password: not there; ConfigMap shop/token: not there",
        'error loading config file "/a/kubeconfig": open /a/kubeconfig: permission denied',
        "kubeconfig /a/kubeconfig: no such file; give one with --kubeconfig",
        "cat: /home/u/.pgpass: Is a directory\nls: /home/u/.netrc: Permission denied (os error 13)",
        "PWD=/var/lib/wharfinger/scratch",
        'HOME=/root\nexport PWD=/root\ndeclare -x PWD="/root"\nOLDPWD=/',
        "KUBECONFIG=/a/kubeconfig PATH=/bin",
        "helm --kubeconfig /a/kubeconfig --kubeconfig=~/.kube/config list",
        'kubeconfig: "/a/kubeconfig"',
        "https://host/path@1.2?x=user@example.com",
        "image registry/app@sha256:0123",
        "secretName: web-tls\ntokenExpirationSeconds: 3600",
        'password: ""',
        "password: null\ntoken: ~\nsecret: {}\nautomountToken: true",
        "a bearer of news",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "name: password",
        "2026-01-01T10:00:00Z INFO pass: 5 tests",
        "a -- token is fine",
        "\ud800 lone",
    ],
)
def test_texts_without_credentials_are_unchanged(text: str) -> None:
    assert redact_text(text) == text


def test_a_sensitive_block_at_the_end_of_a_text_is_redacted() -> None:
    assert redact_text("password: |\n  one\n  two\n") == "password: ***\n"


def test_known_secrets_are_replaced_in_every_form() -> None:
    secret = 'p4ss "w\u00f6rd"/\n&second line'
    forms = [
        secret,
        base64.b64encode(secret.encode()).decode(),
        base64.urlsafe_b64encode(secret.encode()).decode().rstrip("="),
        quote(secret, safe=""),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        "&second line",
    ]

    assert redact_text(" | ".join(forms), [secret]) == " | ".join([MARK] * len(forms))


def test_the_longest_secret_is_replaced_first() -> None:
    assert redact_text("abcdefgh abcd", ["abcd", "abcdefgh"]) == "*** ***"


def test_short_secrets_are_not_replaced() -> None:
    assert SHORTEST_SECRET == 4
    assert redact_text("a no b", ["no", "", "b"]) == "a no b"


def test_a_secret_that_contains_the_redaction_mark_is_redacted() -> None:
    assert redact_text("abSECRETcd", ["SECRET", "ab***cd"]) == MARK
    assert redact_text("******", ["****"]) == MARK


def test_a_redactor_can_be_used_for_many_texts() -> None:
    redactor = TextRedactor(["hunter2!"])

    assert [redactor.redact(line) for line in ("a hunter2!", "b", "token=x")] == ["a ***", "b", "token=***"]


SECRETS = st.text(min_size=SHORTEST_SECRET, max_size=20).filter(lambda text: text != MARK * 2)
FRAGMENTS = st.sampled_from(
    [
        *(
            "password",
            "token",
            "apiKey",
            "x",
            "name",
            "=",
            ": ",
            ":",
            " ",
            "\n",
            "  ",
            "- ",
            '"',
            "'",
            "\\",
            '\\"',
            ",",
            "{",
            "}",
        ),
        *(
            "https://",
            "@",
            "/",
            "user:pw",
            "Bearer ",
            "Authorization: ",
            "Basic ",
            "abcdefghij",
            "|\n",
            ">-\n",
            "--token ",
            "***",
        ),
        *(
            "eyJabcdef.eyJabcdef.xyz",
            "-----BEGIN PRIVATE KEY-----",
            "-----END PRIVATE KEY-----",
            "null",
            "\u00e9",
            "''",
            "*",
        ),
    ]
)
TEXTS = st.lists(FRAGMENTS | st.text(max_size=5), max_size=25).map("".join)


@given(TEXTS, st.lists(SECRETS, max_size=3))
def test_redacting_twice_changes_nothing(text: str, secrets: list[str]) -> None:
    once = redact_text(text, secrets)

    assert redact_text(once, secrets) == once


@given(TEXTS, SECRETS, TEXTS, st.lists(SECRETS, max_size=2))
def test_a_known_secret_never_survives(before: str, secret: str, after: str, others: list[str]) -> None:
    assert secret not in redact_text(before + secret + after, [secret, *others])


# The prefix ensures that a planted secret is not a word of the surrounding text.
PLANTED = st.text(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/_.~$!%^()", min_size=4, max_size=26
).map("S3cr".__add__)


@given(
    PLANTED,
    st.sampled_from(
        [
            "password={}",
            "--password {}",
            "x --api-key={} y",
            "\npassword: {}\n",
            '{{"password": "{}"}}',
            '{{"a":1,"clientSecret":"{}"}}',
            "Authorization: Bearer {}",
            "authorization: Basic {}\n",
            "-----BEGIN EC PRIVATE KEY-----\n{}\n-----END EC PRIVATE KEY-----",
            "a:\n  token: |\n    {}\n  b: 1",
            "token: '{}'",
            "INFO password: {}",
        ]
    ),
    TEXTS.filter(lambda text: "\\" not in text and '"' not in text and "'" not in text),
)
def test_a_planted_credential_never_survives(secret: str, form: str, before: str) -> None:
    assert secret not in redact_text(f"{before}\n{form.format(secret)}")


ERRORS = st.sampled_from(["Permission denied", "No such file or directory", "is a directory", "no such file"])
FILES = st.sampled_from(["kubeconfig", "token", "password", ".netrc", "id_rsa", "secret", "db.password", "auth"])


@given(st.from_regex(r"(/[a-z0-9._]{1,8}){0,3}", fullmatch=True), FILES, ERRORS)
def test_an_error_about_a_file_is_unchanged(folder: str, name: str, error: str) -> None:
    for line in (
        f"cat: {folder}/{name}: {error}",
        f"open {folder}/{name}: {error}",
        f"x: {folder}/{name}: {error}; do y",
    ):
        assert redact_text(line) == line


@given(PLANTED, st.sampled_from(["password", "/a/kubeconfig", "/a/dbPassword", "PWD"]), ERRORS, st.booleans())
def test_no_planted_secret_passes_as_an_error_or_a_path(secret: str, key: str, error: str, first: bool) -> None:
    """A planted secret is redacted beside the words of an error, in place of a path, and alone in a line."""
    name = key.rpartition("/")[2]
    assert secret not in redact_text(f"{name}: {error} {secret}" if first else f"{name}: {secret} {error}")
    assert secret not in redact_text(f"x: {key}: {secret}: {error}") or len(name) <= 4
    assert secret not in redact_text(f"{name}={secret}")


@pytest.mark.sampled(4)
@pytest.mark.unmeasured
@pytest.mark.parametrize(
    "unit",
    [
        *(
            "eyJ-",
            "password=",
            "PWD=/",
            "kubeconfig=/a",
            "/kubeconfig: open ",
            "a://",
            "-----BEGIN PRIVATE KEY-----",
            'password="',
            "--token ",
            "bearer ",
            "a.-",
            '\\"',
        ),
        *(
            "password: |\n",
            "Authorization: ",
            "password='\n",
            'password:\\"',
            "x=\\",
            ",password:",
            "eyJaaaaaaaa.",
            " ",
        ),
    ],
)
def test_a_large_hostile_text_is_redacted_in_bounded_time(unit: str) -> None:
    # If any pattern took quadratic time, this would run for hours.
    text = unit * (400_000 // len(unit))

    assert len(redact_text(text)) <= 2 * len(text)
