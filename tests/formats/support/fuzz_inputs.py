"""Inputs for the fuzzer, which are mutations of realistic and hostile examples. ``(corpus, seed, index)`` always gives the same
bytes.

A mutation keeps most of an example, so that inputs pass the first checks. It flips bits, cuts, repeats or splices pieces, and
inserts words of the format. The checksums of tars are corrected most of the time. Half of the tars are gzipped. A tar may
be damaged before it is gzipped, afterwards, or both times.
"""

import gzip
import random
from collections.abc import Callable
from typing import Final

from tests.formats.support.fuzz_schemas import JSON_PATCH_SEEDS, JSON_PATCH_WORDS, SCHEMA_SEEDS, SCHEMA_WORDS
from tests.formats.support.fuzz_small import (
    CEL_SEEDS,
    CEL_WORDS,
    CONSTRAINT_SEEDS,
    CONSTRAINT_WORDS,
    CRON_SEEDS,
    CRON_WORDS,
    DURATION_SEEDS,
    DURATION_WORDS,
    JQ_SEEDS,
    JQ_WORDS,
)
from tests.formats.support.tars import (
    BLOCK,
    END,
    gnu_long,
    gz,
    hard_link,
    header,
    padded,
    pax,
    pax_record,
    tar,
    with_checksum,
)

SECRET: Final = "S3cr3t-Val/ue"
"""A text that the redaction corpus contains; it must not be in the output."""

_LONGEST: Final = 20_000

_MANIFEST: Final = b"""apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web, "tier": 'front', on: yes}
  annotations:
    note: |
      several lines
        of text
    folded: >-
      one
      two
spec:
  replicas: 3
  paused: n
  template: &template
    containers:
    - name: main
      image: registry/web:1.2.3
      env: [{name: A, value: "0777"}, {name: B, value: 1e3}]
      resources: {limits: {cpu: 100m, memory: 0x10}}
  other: {<<: *template, extra: ~}
"""

_YAML_SEEDS: Final = [
    _MANIFEST,
    b"a: 1\n---\n# nothing\n---\n- b: 2.5\n- [c, {d: e}]\n...\n---\n'text'\n",
    b"%YAML 1.1\n%TAG !k! tag:yaml.org,2002:\n---\na: !k!int '5'\nb: !!binary aGk=\nc: !!timestamp 2026-01-01\n",
    b"a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nd: [*c,*c]\n",
    b"a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
    + b"".join(b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 9)),
    b"m0: &m0 {k: v}\n"
    + b"".join(b"m%d: &m%d {<<: [*m%d,*m%d], k%d: v}\n" % (n, n, n - 1, n - 1, n) for n in range(1, 20)),
    b"a: &a [*a]\n",
    b"? [complex, key]\n: value\n? a\n: b\n",
    b"[" * 300 + b"]" * 300,
    b"- " * 300 + b"x\n",
    b"{a: " * 250 + b"1" + b"}" * 250,
    b"a: \"\\x41\\u00e9\\U0001F600\\n\\\n  joined\"\nb: 'it''s'\n",
    b"\xef\xbb\xbfa: \xc3\xa9\n",
    b"y: 1\nn: 2\n1: 3\n1.5: 4\n.5: 5\n0x10: 6\n",
    b"a: !foo b\nc: !<tag:x,2026:y> d\n",
    b"",
]
_YAML_WORDS: Final = [
    *(
        b"&a ",
        b"*a",
        b"*a : ",
        b"<<: ",
        b"<<: *a",
        b"!!int ",
        b"!!float ",
        b"!!str ",
        b"!!binary ",
        b"!!null ",
        b"! ",
        b"!x ",
        b"!!set ",
    ),
    *(
        b"[",
        b"]",
        b"{",
        b"}",
        b"- ",
        b"? ",
        b": ",
        b", ",
        b"\n",
        b"\n  ",
        b"\n- ",
        b"\t",
        b"|\n",
        b">-\n",
        b"|2+\n",
        b"'",
        b'"',
        b"#",
        b" #",
    ),
    *(
        b"---\n",
        b"...\n",
        b"%TAG !a! b\n",
        b"%YAML 1.2\n",
        b"\\u00",
        b"\\ud800",
        b"\\x",
        b"\x00",
        b"\x85",
        b"\xe2\x80\xa8",
        b"\xff",
        b"\xef\xbb\xbf",
    ),
    *(
        b"y",
        b"~",
        b"0777",
        b"0b-1",
        b"1e400",
        b".inf",
        b".5_0",
        b"-0.0",
        b"9" * 30,
        b"0x" + b"f" * 20,
        b"12:30:45",
        b"=",
        b"<<",
        b"%ED%A0%80",
    ),
]

_JSON_SEEDS: Final = [
    b'{"kind":"List","items":[{"a":1,"b":[true,false,null]},{"c":1.5e3,"d":"\\u00e9\\ud83d\\ude00"}]}',
    b"[0,-0,1,-1,0.0,-0.0,1e22,1e-7,9223372036854775808,18446744073709551616,123456789012345678901234567890]",
    b'{"a":{"b":{"c":{"d":{"e":[[[[[]]]]]}}}}}',
    b"[" * 250 + b"]" * 250,
    b'{"a":' * 199 + b"1" + b"}" * 199,
    b'"' + b"[{" * 300 + b'"',
    b'["\\"","\\\\","\\\\\\"[","]"]',
    b"[" + b"[],{}," * 300 + b"1]",
    b' { "a" : "\xc3\xa9" , "a" : 2 } ',
    b"null",
]
_JSON_WORDS: Final = [
    *(
        b"[",
        b"]",
        b"{",
        b"}",
        b",",
        b":",
        b'"',
        b"\\",
        b'\\"',
        b"\\\\",
        b"\\u0000",
        b"\\ud800",
        b"\\udc00",
        b"\\ud83d\\ude00",
        b"\\x",
    ),
    *(
        b"true",
        b"null",
        b"NaN",
        b"Infinity",
        b"-",
        b"-0",
        b"0.1",
        b"1e400",
        b"1e-400",
        b"9" * 30,
        b"00",
        b".5",
        b"1.",
        b" ",
        b"\n",
        b"\x00",
        b"\xff",
    ),
    *(b"\xed\xa0\x80", b"\xef\xbb\xbf", b'"a":', b"[[", b"{}", b"[]"),
]

_REDACTION_SEEDS: Final = [
    b'{"kind":"Secret","data":{"a":"Ym9i"},"stringData":{"b":"S3cr3t-Val/ue"}}',
    b'{"items":[{"kind":"SecretList","items":[{"data":{"x":"S3cr3t-Val/ue"}}]}],"password":{"deep":["S3cr3t-Val/ue"]}}',
    b'{"env":[{"name":"TOKEN","value":"S3cr3t-Val/ue"}],"args":["--password","S3cr3t-Val/ue"],"S3cr3t-Val/ue":"x"}',
    b'{"secret":{"secretName":"x","items":[{"key":"a","path":"b"}]},"imagePullSecrets":[{"name":"r"}]}',
    b"user: x\npassword: S3cr3t-Val/ue\ntoken: |\n  S3cr3t-Val/ue\n  more\nnext: https://u:S3cr3t-Val/ue@host/\n",
    b"Authorization: Bearer S3cr3t-Val/ue --token S3cr3t-Val/ue password='S3cr3t-Val/ue\n",
    b"-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\neyJhbGciOi.eyJzdWIiOi.x",
    b'"{\\"apiKey\\":\\"S3cr3t-Val/ue\\",\\"a\\":[1]}"',
    b"[" * 190 + b'"https://u:p@h"' + b"]" * 190,
]
_REDACTION_WORDS: Final = [
    *(
        b"S3cr3t-Val/ue",
        b"UzNjcjN0LVZhbC91ZQ==",
        b"S3cr3t-Val%2Fue",
        b"***",
        b"*",
        b"password",
        b"token",
        b"=",
        b": ",
        b":",
        b"--",
        b"\n",
        b"  ",
        b"- ",
    ),
    *(
        b'"',
        b"'",
        b"\\",
        b'\\"',
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b"@",
        b"://",
        b"Bearer ",
        b"Authorization: ",
        b"|\n",
        b">\n",
        b"eyJabcdef.",
        b" ",
    ),
    *(
        b"-----BEGIN PRIVATE KEY-----",
        b"-----END PRIVATE KEY-----",
        b'"kind":"Secret",',
        b'"data":',
        b'"value":',
        b"null",
        b"\xff",
        b"\xed\xa0\x80",
    ),
]

_TAR_SEEDS: Final = [
    tar(
        ("chart", None),
        ("chart/Chart.yaml", b"name: x\n"),
        ("chart/a", b"a" * 700),
        ("chart/link", "a"),
        hard_link("chart/h", "chart/a"),
    ),
    tar(("a/b/c", b"x"), ("l", "a/b"), ("d" * 90 + "/" + "n" * 120, b"long"), ("e/\u00e9", "../l")),
    tar(("d" * 90 + "/" + "n" * 120, b"long"), ("link", "t" * 150), ("t" * 150, b"x"), dialect=1),
    tar(("p/q/x", "d/../.."), ("p/q/d", "../..")),
    tar(("a", "b"), ("b", "a")),
    tar(("up", ".."), ("up/evil", b"x")),
    tar(("../evil", b"x"), ("/abs", b"x")),
    pax(pax_record("path", "renamed") + pax_record("size", "5")) + header(size=0) + padded(b"hello") + END,
    pax(pax_record("comment", "0123"), flag=b"g")
    + gnu_long(b"deep/" * 30 + b"x")
    + header(size=3)
    + padded(b"abc")
    + END,
    pax(pax_record("GNU.sparse.major", "1")) + header() + END,
    header(flag=b"x", size=10**9) + END,
    header(flag=b"S", size=b"\x80" + b"\0" * 7 + b"\xff" * 4) + END,
    header(b"bomb", size=200_000) + b"\0" * 200_192 + END,
    header(b"dev", flag=b"3") + header(b"fifo", flag=b"6") + END,
    b"".join(header(b"f%d" % n) for n in range(70)) + END,
    END,
    b"",
]
_LAYER_SEEDS: Final = [
    tar(("a", None), ("a/b", b"1"), ("a/c/d", b"2"), ("l", "a/b"), ("e", b"3"), hard_link("h", "e")),
    tar(("a/.wh.b", b""), ("a/c/.wh..wh..opq", b""), ("a/c/new", b"n"), (".wh.l", b"")),
    tar((".wh..wh..opq", b""), ("e", None), ("e/f", b"x"), ("a", "e")),
    tar(("a", b"file"), ("l", None), ("l/x", b"x"), hard_link("e", "a"), ("h", "l/x")),
    tar(("/a/c", b"x"), ("./e/../e", b""), (".wh.a", b""), ("a/b/c/d", b"deep")),
    tar(("l", "../.."), ("l/evil", b"x"), (".wh...", b""), ("a/.wh.", b"")),
    tar((".wh.a/b", b""), ("a/.wh.b", b"full"), (".wh.c", None)),
    _TAR_SEEDS[0],
    _TAR_SEEDS[3],
]
_LAYER_WORDS: Final = [
    *(b".wh.", b".wh..wh..opq\0", b"a/.wh.b\0", b".wh.a\0", b"/", b"../", b"a/", b"a\0", b"e\0", b"l\0", b"h\0", b"\0"),
    *(b"0", b"1", b"2", b"5", b"ustar\x0000", b"00000001000\0", b"00000000000\0"),
]
LAYER_MARK: Final = b"\xff<next layer>\xff"
_TAR_WORDS: Final = [
    *(
        b"..",
        b"../",
        b"/",
        b"/etc/passwd\0",
        b"\0",
        b"a/../b\0",
        b"a..b\0",
        b"./",
        b"ustar\x0000",
        b"ustar  \0",
        b"\xff",
        b"\x80",
        b"\n",
    ),
    *(
        b"0",
        b"1",
        b"2",
        b"3",
        b"5",
        b"6",
        b"S",
        b"x",
        b"g",
        b"L",
        b"K",
        b"00000001000\0",
        b"77777777777\0",
        b"\x80" + b"\0" * 10 + b"\x05",
    ),
    *(b"12 path=../x\n", b"13 linkpath=/\n", b"999999 path=", b"9 size=9\n", b"GNU.sparse.size"),
]


def _mutate(dice: random.Random, data: bytes, seeds: list[bytes], words: list[bytes]) -> bytes:
    out = bytearray(data)
    for _ in range(dice.choice((0, 1, 1, 2, 2, 3, 5, 8))):
        at = dice.randrange(len(out) + 1)
        end = min(len(out), at + dice.choice((1, 2, 4, 16, 64, 600)))
        match dice.randrange(9):
            case 0 if out:
                out[at % len(out)] ^= 1 << dice.randrange(8)
            case 1 if out:
                out[at % len(out)] = dice.randrange(256)
            case 2:
                del out[at:end]
            case 3:
                out[at:at] = out[at:end] * dice.choice((1, 2, 10, 100))
            case 4:
                other = dice.choice(seeds)
                start = dice.randrange(len(other) + 1)
                out[at:at] = other[start : start + dice.choice((4, 32, 512, 4096))]
            case 5:
                del out[at:]
            case 6:
                out[at:at] = dice.choice(words) * dice.choice((1, 1, 1, 3, 50, 500))
            case 7:
                word = dice.choice(words)
                out[at : at + len(word)] = word
            case _:
                out[at:at] = dice.choice(words)
        del out[_LONGEST:]
    return bytes(out)


def _of(seeds: list[bytes], words: list[bytes]) -> Callable[[random.Random], bytes]:
    return lambda dice: _mutate(dice, dice.choice(seeds), seeds, words)


def _tar(dice: random.Random) -> bytes:
    data = dice.choice(_TAR_SEEDS)
    if dice.random() < 0.5:
        data = _shuffle_blocks(dice, data)
    if dice.random() < 0.7:
        data = _mutate(dice, data, _TAR_SEEDS, _TAR_WORDS)
    if dice.random() < 0.7:
        data = _repair(data)
    if dice.random() < 0.5:
        cut = dice.randrange(len(data) + 1) if dice.random() < 0.2 else len(data)
        data = gzip.compress(data[:cut], 1, mtime=0) + (gz(data[cut:]) if cut < len(data) else b"")
        if dice.random() < 0.4:
            data = _mutate(
                dice, data, [gz(b"x" * 1000), gz(b""), b"\0" * 100], [b"\x1f\x8b\x08\0", b"\0" * 20, b"\xff\xff"]
            )
    return data


def _layers(dice: random.Random) -> bytes:
    """Return up to four tars with whiteouts. The first one is mostly undamaged, so that it has entries to hide and replace."""
    layers = [dice.choice(_LAYER_SEEDS)] if dice.random() < 0.8 else []
    for _ in range(dice.randrange(1, 4)):
        data = dice.choice(_LAYER_SEEDS)
        if dice.random() < 0.6:
            data = _shuffle_blocks(dice, data)
        if dice.random() < 0.4:
            data = _mutate(dice, data, _LAYER_SEEDS, _LAYER_WORDS)
        layers.append(_repair(data) if dice.random() < 0.9 else data)
    return LAYER_MARK.join(gz(layer) if dice.random() < 0.3 else layer for layer in layers)


def _shuffle_blocks(dice: random.Random, data: bytes) -> bytes:
    blocks = [data[at : at + BLOCK] for at in range(0, min(len(data), 40 * BLOCK), BLOCK)]
    for _ in range(dice.randrange(4)):
        if len(blocks) > 1:
            one, other = dice.randrange(len(blocks)), dice.randrange(len(blocks))
            blocks.insert(one, blocks.pop(other) if dice.random() < 0.5 else blocks[other])
    return b"".join(blocks) + (END if dice.random() < 0.5 else b"")


def _repair(data: bytes) -> bytes:
    """Correct the checksum of every block that looks like a header, so that the reader does not refuse it by its checksum."""
    blocks = [data[at : at + BLOCK] for at in range(0, len(data), BLOCK)]
    return b"".join(
        with_checksum(block) if len(block) == BLOCK and block[257:262] == b"ustar" else block for block in blocks
    )


_CORPORA: Final[dict[str, Callable[[random.Random], bytes]]] = {
    "yaml": _of(_YAML_SEEDS, _YAML_WORDS),
    "json": _of(_JSON_SEEDS, _JSON_WORDS),
    "redaction": _of(_REDACTION_SEEDS, _REDACTION_WORDS),
    "tar": _tar,
    "layers": _layers,
    "constraint": _of(CONSTRAINT_SEEDS, CONSTRAINT_WORDS),
    "duration": _of(DURATION_SEEDS, DURATION_WORDS),
    "cron": _of(CRON_SEEDS, CRON_WORDS),
    "jq": _of(JQ_SEEDS, JQ_WORDS),
    "cel": _of(CEL_SEEDS, CEL_WORDS),
    "schema": _of(SCHEMA_SEEDS, SCHEMA_WORDS),
    "json-patch": _of(JSON_PATCH_SEEDS, JSON_PATCH_WORDS),
    "object-patches": lambda rng: rng.randbytes(8),
}


def make_input(corpus: str, seed: int, index: int) -> bytes:
    """Return the input with this number."""
    return _CORPORA[corpus](random.Random(f"{corpus} {seed} {index}"))  # noqa: S311 - repeatable on purpose
