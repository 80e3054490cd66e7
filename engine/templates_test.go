package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func texts(t *testing.T, answer Answer) []string {
	t.Helper()
	if answer.Code != 0 {
		t.Fatalf("code %d: %s", answer.Code, answer.Errors)
	}
	if answer.Heap == 0 {
		t.Error("the heap is not reported")
	}
	var executed []Executed
	if err := json.Unmarshal(answer.Output, &executed); err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, each := range executed {
		found = append(found, fmt.Sprintf("%d/%d %s", each.Template, each.Input, each.Text))
	}
	return found
}

func TestExecute(t *testing.T) {
	tenant := Template{Field: "a", Object: json.RawMessage(`{"name": "x-<< inputs.tenant >>", "n": "<< inputs.n | int >>"}`)}
	words := Template{Field: "b", Text: "<<- range $w := inputs.words >>\n- << $w | slugify >>\n<<- end >>"}
	both := []map[string]any{
		{"tenant": "team1", "n": 2.0, "words": []any{"A b", ">=1.0.0-rc.0"}},
		{"tenant": "team2", "n": "3", "words": []any{}},
	}
	got := texts(t, Execute(TemplateSet{[]Template{tenant, words}, both}))
	wanted := []string{"0/0 \"n\": 2\nname: x-team1\n", "0/1 \"n\": 3\nname: x-team2\n", "1/0 \n- a-b\n- 1-0-0-rc-0", "1/1 "}
	if !slices.Equal(got, wanted) {
		t.Errorf("got %q", got)
	}
	got = texts(t, Execute(TemplateSet{[]Template{{Field: "a", Text: "{{ helm }}"}}, nil}))
	if !slices.Equal(got, []string{"0/0 {{ helm }}"}) {
		t.Errorf("got %q", got)
	}
	bounded := `<< repeat 2 "ab" >> << repeat 0 "x" >><< indent 1 "a" >><< nindent 2 "b" >> << until 3 >> << until -2 >>` +
		` << untilStep 1 6 2 >> << seq 3 >> << seq 2 0 >> << seq 1 2 5 >>`
	got = texts(t, Execute(TemplateSet{[]Template{{Field: "a", Text: bounded}}, nil}))
	if !slices.Equal(got, []string{"0/0 abab  a\n  b [0 1 2] [0 -1] [1 3 5] 1 2 3 2 1 0 1 3 5"}) {
		t.Errorf("got %q", got)
	}
}

func TestExecuteErrors(t *testing.T) {
	one := []map[string]any{{"a": "1"}, {}}
	for text, wanted := range map[string]string{
		"<< inputs.a >>":                  `f with input 1: template: resourceset:1:3: executing "resourceset" at <inputs>: map has no entry for key "a"`,
		"<< if >>":                        "f: template: resourceset:1: missing value for if",
		`<< env "HOME" >>`:                `f: template: resourceset:1: function "env" not defined`,
		"<< now >>":                       `f: template: resourceset:1: function "now" not defined`,
		"<< ago now >>":                   `f: template: resourceset:1: function "ago" not defined`,
		"<< randInt 0 9 >>":               `f: template: resourceset:1: function "randInt" not defined`,
		"<< indent 9999999999 \"x\" >>":   "f with input 0: the output has more than 16777216 bytes",
		"<< nindent 9000000 \"x\\ny\" >>": "f with input 0: the output has more than 16777216 bytes",
		"<< repeat 9223372036854775807 \"xy\" | len >>": "f with input 0: the output has more than 16777216 bytes",
		"<< until 99999999999 | len >>":                 `f with input 0: template: resourceset:1:3: executing "resourceset" at <until 99999999999>: error calling until: more than 1048576 numbers`,
		"<< untilStep 0 -99999999999 -2 >>":             `f with input 0: template: resourceset:1:3: executing "resourceset" at <untilStep 0 -99999999999 -2>: error calling untilStep: more than 1048576 numbers`,
		"<< seq 99999999999 >>":                         `f with input 0: template: resourceset:1:3: executing "resourceset" at <seq 99999999999>: error calling seq: more than 1048576 numbers`,
		"<< seq 0 2 99999999999 >>":                     `f with input 0: template: resourceset:1:3: executing "resourceset" at <seq 0 2 99999999999>: error calling seq: more than 1048576 numbers`,
		`<< fail "not today" >>`:                        "f with input 0: template: resourceset:1:3: executing \"resourceset\" at <fail \"not today\">: error calling fail: not today",
		"<< repeat 17000000 \"x\" >>":                   "f with input 0: the output has more than 16777216 bytes",
	} {
		answer := Execute(TemplateSet{[]Template{{Field: "f", Text: text}}, one})
		if got := string(answer.Errors); answer.Code != 1 || got != wanted {
			t.Errorf("%s: code %d, %q, not %q", text, answer.Code, got, wanted)
		}
	}
	// The limit is on the whole output, not on that of one input.
	many := make([]map[string]any, 20)
	answer := Execute(TemplateSet{[]Template{{Field: "f", Text: `<< repeat 1000000 "x" >>`}}, many})
	if got := string(answer.Errors); !strings.HasPrefix(got, "f with input 16: the output") {
		t.Errorf("got %q", got)
	}
}
