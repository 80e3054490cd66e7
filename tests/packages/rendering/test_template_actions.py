"""The actions in templates: which functions they call, and which fields they read. The tests in test_chart_use.py use whole
charts.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.packages.rendering import template_actions
from wharfinger.packages.rendering.template_actions import TemplateUse


def read(text: str) -> TemplateUse:
    use = TemplateUse()
    use.read(text)
    return use


@pytest.mark.parametrize(
    ("text", "functions"),
    [
        ("lookup", set()),
        ("{{ lookup }}", {"lookup"}),
        ("{{- lookup -}} tpl", {"lookup"}),
        ("{{/* lookup */}}{{- /* tpl }} */ -}}{{ print }}", {"print"}),
        ('{{ "lookup }} \\" " | quote }} tpl', {"quote"}),
        ("{{ `lookup }}` | quote }} tpl", {"quote"}),
        ("{{ '}' | quote }}", {"quote"}),
        ("{{ $lookup.tpl }}{{ .lookup }}{{ (.a).lookup }}", set()),
        ("{{ if lookup", {"if", "lookup"}),
        ("{{\n  print\n}}", {"print"}),
    ],
)
def test_functions_in_actions_are_found(text: str, functions: set[str]) -> None:
    assert read(text).functions == functions


def test_all_fields_of_a_chain_are_found() -> None:
    use = read("{{ .Values.a.b }}{{ $x.c }}{{ (.d).e }}")
    assert use.words == {"Values", "a", "b", "c", "d", "e"}
    assert use.ends == {"b", "c", "d", "e"}


def test_literals_are_read_as_go_reads_them() -> None:
    assert read(r'{{ print "a\"b\n" `c\n` }}').literals == {'a"b\n', r"c\n"}


def test_printed_literals_do_not_compose_a_template() -> None:
    assert not read('{{ "{{" }}{{`{{ a }}`}}{{- "}}{{" -}}').builds
    assert read('{{ printf "{{ %s }}" .a }}').builds
    assert read("{{ $a := `{{` }}").builds
    assert read("{{ `{{` `a` }}").builds


def test_too_many_tokens_are_reported_as_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_actions, "MAX_TOKENS", 10)
    assert not read("{{ a b }}").overflowed
    assert read("{{ a b }}" * 10).overflowed


@given(st.text(alphabet="{}-/*\"`'\\ .$al\n", max_size=60))
def test_any_text_is_read_in_bounded_time(text: str) -> None:
    use = read(text)
    use.read_part(text)
    assert use.tokens <= 2 * len(text)
