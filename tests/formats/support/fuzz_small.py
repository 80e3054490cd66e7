"""Examples and words for the fuzzer: version constraints, durations, schedules, and messages of jq and rule workers."""

from typing import Final

from wharfinger.formats.frames import framed

CONSTRAINT_SEEDS: Final = [
    *(
        b">=1.2.3, <2 || ^3.1",
        b"1.2 - 2.3 || ~0.1",
        b"1.2.x",
        b"*",
        b"",
        b"!=4.1-alpha+b",
        b"v1.2.3-rc.1",
        b"~>1 =>2 =<3",
    ),
    *(b">=1.1    < 2    != 1.2.3", b"1.0.0 - 2.0.0 <=1.9", b"18446744073709551615", b"^0.0.3||^0.2,>0", b"0.0 - X.1.2"),
]
CONSTRAINT_WORDS: Final = [
    *(b">=", b"<", b"!=", b"~", b"~>", b"^", b"=", b"||", b"|", b",", b" ", b" - ", b"-", b".", b"x", b"X", b"*", b"v"),
    *(
        b"0",
        b"01",
        b"1.2.3",
        b"-rc.1",
        b"-01",
        b"+b",
        b"9" * 30,
        b"\t",
        b"\n",
        b"\xff",
        b"\xc2\xa0",
        b"\xd9\xa1",
        b"1, " * 40,
    ),
]
DURATION_SEEDS: Final = [
    *(
        b"1h2m3.5s",
        b"300ms",
        b"0",
        b"-1.5h",
        b"+5m",
        b"12\xc2\xb5s",
        b"9223372036854775807ns",
        b"0.3333333333333333333h",
    ),
    *(b".5s5.s", b"1h0m0.000001s", b"-9223372036854775808ns", b"3d", b""),
]
DURATION_WORDS: Final = [
    *(b"h", b"m", b"s", b"ms", b"us", b"ns", b"\xc2\xb5s", b"\xce\xbcs", b"d", b".", b"-", b"+", b"0", b"1", b"9" * 25),
    *(b"e3", b" ", b"\xd9\xa1", b"\xff", b"0" * 100),
]
CRON_SEEDS: Final = [
    *(
        b"*/5 * * * *",
        b"0 30 4 1,15 * 5",
        b"0 0 13 * 5",
        b"TZ=Europe/Berlin 30 2 * * *",
        b"@every 1h30m",
        b"@daily",
        b"@hourly",
    ),
    *(
        b"0 0 ? jan-mar mon-fri",
        b"1-30/7 5/3 * * 7",
        b"0 0 29 2 */7",
        b"CRON_TZ=UTC @weekly",
        b"0 0 31 2 *",
        b"* * * * * * *",
    ),
]
CRON_WORDS: Final = [
    *(
        b"*",
        b"?",
        b"/",
        b"-",
        b",",
        b" ",
        b"0",
        b"7",
        b"31",
        b"60",
        b"feb",
        b"SUN",
        b"L",
        b"W",
        b"#2",
        b"H",
        b"R",
        b"*/2",
        b"1-5/2",
    ),
    *(
        b"@every ",
        b"@yearly",
        b"TZ=",
        b"CRON_TZ=Asia/Tokyo ",
        b"TZ=../x ",
        b"TZ=\x00 ",
        b"5m",
        b"\t",
        b"\n",
        b"\xff",
        b"\xd9\xa1",
    ),
]
JQ_SEEDS: Final = [
    b"".join(map(framed, payloads))
    for payloads in [
        [b'{"results":[]}', b'{"results":[1,2.0,1E+17,{"a":[null,"\\u0000"]}]}'],
        [b'{"error":"bad","kind":"run"}', b'{"error":"no","kind":"compile"}'],
        [b'{"text":{"a":[1]}}', b'{"program":".a","input":{"a":1},"whole":true}', b'{"text":null}'],
        [b'{"program":".","input":[1, 2.50]}', b'{"program":"\\ud83d\\ude00"}', b'{"results":[]}'],
        [b""],
        [],
    ]
]
JQ_WORDS: Final = [
    *(
        b"\x00\x00\x00\x10",
        b"\x00\x00\x00\x00",
        b"\x00",
        b"\xff",
        b'{"results":[',
        b"]}",
        b'"kind":"size"',
        b'"error":"x",',
    ),
    *(
        b'"program":',
        b'"input":',
        b'"whole":true,',
        b'{"text":',
        b"1e999",
        b"[" * 250,
        b"NaN",
        b"\\ud800",
        b"0.0",
        b"-0.0",
        b"9" * 30,
    ),
]

CEL_SEEDS: Final = [
    b'{"rules":{"rules":[{"at":"a","rule":"self > 1"}]},"self":{"a":1},"old":null}\n{"rules":{}}\n',
    b'{"rules":[],"self":[1,2.0,"\\u0000",{"a":null}],"other":1}\n',
    b'{"at":"properties.a"}\n{"findings":[{"kind":"failed","path":["a",0],"at":"b","message":"c","static":"","reason":""}]}\n',
    b'{"findings":[{"kind":"error"},{"kind":"warning","path":[]}]}',
    b'{"findings":[]}\n',
]
CEL_WORDS: Final = [
    *(
        b'"rules":',
        b'"self":',
        b'"old":',
        b'"findings":[',
        b'"at":',
        b'"kind":"failed",',
        b'"kind":',
        b'"path":[true],',
    ),
    *(b"\n", b"{}", b"[]", b"null", b"1e999", b"[" * 250, b"NaN", b"\\ud800", b"9" * 30, b"{", b"}", b'"', b","),
]
