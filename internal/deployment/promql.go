package deployment

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Selector is a metric that an expression reads, and the labels its matchers name.
type Selector struct {
	Metric string
	Labels []string
}

// functions are those that our expressions call. Others are refused: it may be a
// misspelling.
var functions = []string{
	"absent", "changes", "clamp_min", "deriv", "histogram_quantile", "increase", "max_over_time", "min_over_time", "predict_linear", "rate", "time", "vector",
}

var aggregations = []string{"sum", "min", "max", "avg", "count", "topk"}

// listed come before a list of labels.
var listed = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}

var operators = []string{"and", "or", "unless", "offset", "bool"}

// ranged are the functions that need a range.
var ranged = []string{"changes", "deriv", "increase", "max_over_time", "min_over_time", "predict_linear", "rate"}

// Scan returns the selectors of a PromQL expression.
func Scan(expr string) ([]Selector, error) {
	tokens, err := split(expr)
	if err != nil {
		return nil, err
	}
	var (
		out   []Selector
		open  []string // closing brackets that are expected
		calls []string // the function of each open parenthesis, or ""
	)
	at := func(i int) string {
		if i < len(tokens) {
			return tokens[i]
		}
		return ""
	}
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		switch {
		case t == "(":
			name := ""
			if i > 0 && slices.Contains(functions, tokens[i-1]) {
				name = tokens[i-1]
			}
			open, calls = append(open, ")"), append(calls, name)
		case t == "[":
			if i+2 >= len(tokens) || tokens[i+2] != "]" {
				return nil, fmt.Errorf("a range is not closed")
			}
			if len(calls) == 0 || !slices.Contains(ranged, calls[len(calls)-1]) {
				return nil, fmt.Errorf("range [%s] is not the argument of a function that takes one", tokens[i+1])
			}
			calls[len(calls)-1] = "" // has its range
			i += 2
		case t == ")":
			if len(open) == 0 {
				return nil, fmt.Errorf("a parenthesis too many is closed")
			}
			if name := calls[len(calls)-1]; slices.Contains(ranged, name) {
				return nil, fmt.Errorf("%s has no range", name)
			}
			open, calls = open[:len(open)-1], calls[:len(calls)-1]
		case slices.Contains(listed, t):
			end := slices.Index(tokens[i:], ")")
			if at(i+1) != "(" || end < 0 {
				return nil, fmt.Errorf("%s must be followed by labels", t)
			}
			i += end
		case !isName(t):
		case slices.Contains(operators, t):
		case slices.Contains(aggregations, t):
			if n := at(i + 1); n != "(" && n != "by" && n != "without" {
				return nil, fmt.Errorf("%s is not called", t)
			}
		case slices.Contains(functions, t):
			if at(i+1) != "(" {
				return nil, fmt.Errorf("%s is not called", t)
			}
		case at(i+1) == "(":
			return nil, fmt.Errorf("unknown function %s", t)
		default:
			s := Selector{Metric: t}
			if at(i+1) == "{" {
				end := slices.Index(tokens[i:], "}")
				if end < 0 {
					return nil, fmt.Errorf("matchers of %s are not closed", t)
				}
				if s.Labels, err = matchers(tokens[i+2 : i+end]); err != nil {
					return nil, fmt.Errorf("%s: %w", t, err)
				}
				i += end
			}
			out = append(out, s)
		}
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("a parenthesis is not closed")
	}
	return out, nil
}

// matchers reads label, operator, value, comma.
func matchers(tokens []string) (labels []string, err error) {
	for len(tokens) > 0 {
		if len(tokens) < 3 || !isName(tokens[0]) || !slices.Contains([]string{"=", "!=", "=~", "!~"}, tokens[1]) || tokens[2][0] != '"' {
			return nil, fmt.Errorf("a matcher must be label=\"value\", have %s", strings.Join(tokens, " "))
		}
		labels, tokens = append(labels, tokens[0]), tokens[3:]
		if len(tokens) > 0 {
			if tokens[0] != "," {
				return nil, fmt.Errorf("matchers must have commas between them")
			}
			tokens = tokens[1:]
		}
	}
	return labels, nil
}

func isName(t string) bool { return t != "" && (unicode.IsLetter(rune(t[0])) || t[0] == '_') }

// split cuts an expression into names, numbers and durations, strings with their
// quotes, and signs.
func split(expr string) (tokens []string, err error) {
	for i := 0; i < len(expr); {
		c, rest := expr[i], expr[i:]
		n := 1
		switch {
		case c == ' ' || c == '\n' || c == '\t':
			i++
			continue
		case c == '"':
			if n = strings.IndexByte(rest[1:], '"') + 2; n < 2 {
				return nil, fmt.Errorf("a string is not closed")
			}
		case isWord(c):
			for n < len(rest) && (isWord(rest[n]) || rest[n] == '.' || rest[n] == ':') {
				n++
			}
		case len(rest) > 1 && slices.Contains([]string{"==", "!=", ">=", "<=", "=~", "!~"}, rest[:2]):
			n = 2
		case !strings.ContainsRune("()[]{},+-*/%^<>=", rune(c)):
			return nil, fmt.Errorf("unexpected %q", c)
		}
		tokens = append(tokens, rest[:n])
		i += n
	}
	return tokens, nil
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
