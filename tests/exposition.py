"""A strict reader of Prometheus' text format 0.0.4, which was written from the description of the format, not from the tested
code.

It checks that samples are below the only header of their family, that no sample is duplicated, and that histograms are cumulative
and complete. It returns exactly what a scraper would store.
"""

import math
import re
from dataclasses import dataclass, field

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_HEADER = re.compile(rf"# (HELP|TYPE) ({_NAME})(?: (.*))?")
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(,|$)')
_UNESCAPED = {"\\\\": "\\", "\\n": "\n", '\\"': '"'}

Labels = tuple[tuple[str, str], ...]
"""Labels sorted by name."""


@dataclass
class Family:
    """A family of metrics, with its samples by name and labels."""

    name: str
    kind: str = ""
    help: str = ""
    samples: dict[tuple[str, Labels], float] = field(default_factory=dict)

    def value(self, **labels: str) -> float:
        """Return the only sample with exactly these labels. As in Prometheus, labels with an empty value do not count."""
        wanted = {name: value for name, value in labels.items() if value}
        (found,) = [
            number
            for (_, have), number in self.samples.items()
            if {name: value for name, value in have if value} == wanted
        ]
        return found


def parse(text: str) -> dict[str, Family]:
    """Return the families of an exposition by name. Raises AssertionError for anything that the format does not allow."""
    assert text == "" or text.endswith("\n"), "the last line does not end"
    families: dict[str, Family] = {}
    current = Family("")
    for line in text.split("\n")[:-1]:
        assert line, "an empty line"
        if header := _HEADER.fullmatch(line):
            word, name, said = header.groups()
            if name != current.name:
                assert name not in families, f"{name} begins twice"
                current = families[name] = Family(name)
            assert not current.samples, f"a header below samples: {line}"
            if word == "HELP":
                assert not current.help
                current.help = _unescape(said, help_text=True)
            else:
                assert not current.kind
                assert said in {"counter", "gauge", "histogram"}
                current.kind = said
        elif not line.startswith("#"):
            _sample(current, line)
    for family in families.values():
        assert family.kind, f"{family.name} has no type"
        assert family.samples, f"{family.name} has no samples"
        if family.kind == "histogram":
            _check_histogram(family)
    return families


def _sample(family: Family, line: str) -> None:
    found = _SAMPLE.fullmatch(line)
    assert found, f"no sample: {line!r}"
    name, written, number = found.groups()
    suffixes = ("_bucket", "_sum", "_count") if family.kind == "histogram" else ("",)
    assert name in {family.name + suffix for suffix in suffixes}, f"{name} below {family.name}, a {family.kind}"
    key = (name, _labels(written or ""))
    assert key not in family.samples, f"twice: {line!r}"
    value = float(number.replace("Inf", "inf"))
    assert family.kind == "gauge" or value >= 0 or name.endswith("_sum"), line
    family.samples[key] = value


def _labels(text: str) -> Labels:
    labels: dict[str, str] = {}
    at = 0
    while at < len(text):
        found = _LABEL.match(text, at)
        assert found, f"no label: {text[at:]!r}"
        name, value, end = found.groups()
        assert name not in labels, f"label {name} twice: {text!r}"
        assert not end or found.end() < len(text), f"a comma too many: {text!r}"
        labels[name] = _unescape(value)
        at = found.end()
    return tuple(sorted(labels.items()))


def _unescape(text: str, *, help_text: bool = False) -> str:
    known = _UNESCAPED if not help_text else {"\\\\": "\\", "\\n": "\n"}
    return re.sub(r"\\.", lambda match: known[match[0]], text)


def _check_histogram(family: Family) -> None:
    by_series: dict[Labels, list[tuple[float, float]]] = {}
    for (name, labels), value in family.samples.items():
        if name.endswith("_bucket"):
            (bound,) = [text for label, text in labels if label == "le"]
            assert "." not in bound or not bound.endswith(".0"), f"not as Go writes it: {bound}"
            own = tuple(pair for pair in labels if pair[0] != "le")
            by_series.setdefault(own, []).append((float(bound.replace("Inf", "inf")), value))
    for labels, buckets in by_series.items():
        assert buckets == sorted(buckets), f"buckets that do not rise: {buckets}"
        assert [count for _, count in buckets] == sorted(count for _, count in buckets)
        assert buckets[-1] == (math.inf, family.samples[f"{family.name}_count", labels]), f"not counted: {buckets}"
        assert (f"{family.name}_sum", labels) in family.samples
    assert len(family.samples) == sum(len(buckets) + 2 for buckets in by_series.values())
