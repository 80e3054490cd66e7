package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	texttemplate "text/template"

	"github.com/go-task/slim-sprig/v3"
	"github.com/gosimple/slug"
	"sigs.k8s.io/yaml"
)

// The largest output of one request, in bytes. A template may repeat its inputs without end.
const maxTemplates = 16 << 20

// TemplateSet is the templates of one ResourceSet of the Flux Operator.
type TemplateSet struct {
	// Templates are executed in their order, each for all inputs.
	Templates []Template `json:"templates"`
	// Inputs are the values that the function `inputs` returns. Without any, each template is executed once.
	Inputs []map[string]any `json:"inputs"`
}

// Template is an object or a text with actions between << and >>.
type Template struct {
	// Field names the template in errors.
	Field string `json:"field"`
	// Object is a template with the structure of a manifest; Text is a template of YAML documents, which may be several.
	Object json.RawMessage `json:"object"`
	Text   string          `json:"text"`
}

// Executed is the text that a template has made of one input. Template and Input are positions in the request.
type Executed struct {
	Template int    `json:"template"`
	Input    int    `json:"input"`
	Text     string `json:"text"`
}

// The length of the longest list of numbers that one function makes.
const maxNumbers = 1 << 20

var errTooMany = fmt.Errorf("more than %d numbers", maxNumbers)
var errTooLarge = fmt.Errorf("the output has more than %d bytes", maxTemplates)

func init() {
	// A slug has at most the length of a label's value, and no word in it is cut.
	slug.MaxLength = 63
	slug.EnableSmartTruncate = true
}

// Execute executes the templates of a ResourceSet; its output is a list of Executed in JSON. The functions are those of the Flux
// Operator: slim-sprig's without clock, environment and chance, and toYaml, mustToYaml, slugify and inputs. The same set makes
// the same output at any time, so `ago` and `randInt`, which the operator has, are left out.
func Execute(request TemplateSet) (answer Answer) {
	defer func() {
		if found := recover(); found != nil {
			answer = Answer{Errors: fmt.Appendf(nil, "panic: %v", found), Code: 1}
		}
		answer.Heap = heap()
	}()
	executed, err := execute(request)
	if err != nil {
		return Answer{Errors: []byte(err.Error()), Code: 1}
	}
	output, err := json.Marshal(executed)
	if err != nil {
		return Answer{Errors: []byte(err.Error()), Code: 1}
	}
	return Answer{Output: output}
}

func execute(request TemplateSet) ([]Executed, error) {
	output := bounded{left: maxTemplates}
	executed := []Executed{}
	inputs := request.Inputs
	if len(inputs) == 0 {
		inputs = []map[string]any{nil}
	}
	for number, each := range request.Templates {
		var current map[string]any
		parsed, err := parsed(each, func() any { return current })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", each.Field, err)
		}
		for position, input := range inputs {
			current = input
			output.text.Reset()
			if err := parsed.Execute(&output, nil); err != nil {
				if errors.Is(err, errTooLarge) {
					err = errTooLarge
				}
				if len(request.Inputs) > 0 {
					return nil, fmt.Errorf("%s with input %d: %w", each.Field, position, err)
				}
				return nil, fmt.Errorf("%s: %w", each.Field, err)
			}
			executed = append(executed, Executed{number, position, output.text.String()})
		}
	}
	return executed, nil
}

func parsed(each Template, inputs func() any) (*texttemplate.Template, error) {
	text := each.Text
	if len(each.Object) > 0 {
		converted, err := yaml.JSONToYAML(each.Object)
		if err != nil {
			return nil, err
		}
		text = string(converted)
	}
	return texttemplate.New("resourceset").
		Delims("<<", ">>").
		Funcs(functions()).
		Funcs(texttemplate.FuncMap{"slugify": slug.Make, "toYaml": toYaml, "mustToYaml": mustToYaml, "inputs": inputs}).
		Option("missingkey=error").
		Parse(text)
}

// functions returns slim-sprig's functions without those that depend on clock, environment or chance, and with limits on those
// whose result may be much larger than their arguments.
func functions() texttemplate.FuncMap {
	found := sprig.HermeticTxtFuncMap()
	for _, name := range []string{"ago", "randInt"} {
		delete(found, name)
	}
	indent := found["indent"].(func(int, string) string)
	untilStep := found["untilStep"].(func(int, int, int) []int)
	seq := found["seq"].(func(...int) string)
	found["repeat"] = func(count int, text string) (string, error) {
		if err := fits(count, len(text)); err != nil {
			return "", err
		}
		return strings.Repeat(text, count), nil
	}
	found["indent"] = func(spaces int, text string) (string, error) {
		if err := fits(spaces, 1+strings.Count(text, "\n")); err != nil {
			return "", err
		}
		return indent(spaces, text), nil
	}
	found["nindent"] = func(spaces int, text string) (string, error) {
		if err := fits(spaces, 1+strings.Count(text, "\n")); err != nil {
			return "", err
		}
		return "\n" + indent(spaces, text), nil
	}
	numbers := func(start, stop, step int) ([]int, error) {
		if err := hasFew(start, stop, step); err != nil {
			return nil, err
		}
		return untilStep(start, stop, step), nil
	}
	found["untilStep"] = numbers
	found["until"] = func(count int) ([]int, error) {
		if count < 0 {
			return numbers(0, count, -1)
		}
		return numbers(0, count, 1)
	}
	found["seq"] = func(params ...int) (string, error) {
		var err error
		switch len(params) {
		case 1:
			err = hasFew(1, params[0], 1)
		case 2:
			err = hasFew(params[0], params[1], 1)
		case 3:
			err = hasFew(params[0], params[2], params[1])
		}
		if err != nil {
			return "", err
		}
		return seq(params...), nil
	}
	return found
}

// fits refuses a text of count times size bytes that is larger than the whole output may be.
func fits(count, size int) error {
	if size > 0 && count > maxTemplates/size {
		return errTooLarge
	}
	return nil
}

// hasFew refuses a list from start to stop with too many numbers. It counts with floating point, which does not overflow.
func hasFew(start, stop, step int) error {
	if step != 0 && math.Abs((float64(stop)-float64(start))/float64(step)) > maxNumbers {
		return errTooMany
	}
	return nil
}

func toYaml(value any) string {
	text, err := mustToYaml(value)
	if err != nil {
		return ""
	}
	return text
}

func mustToYaml(value any) (string, error) {
	text, err := yaml.Marshal(value)
	return string(text), err
}

// bounded is a text that cannot grow beyond what is left for the whole request.
type bounded struct {
	text bytes.Buffer
	left int
}

func (b *bounded) Write(text []byte) (int, error) {
	if len(text) > b.left {
		return 0, errTooLarge
	}
	b.left -= len(text)
	return b.text.Write(text)
}
