package jsonform

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestExplain(t *testing.T) {
	type form struct {
		Name  string            `json:"name"`
		On    bool              `json:"on"`
		Count int               `json:"count"`
		In    struct{ A []int } `json:"in"`
	}
	for text, want := range map[string]string{
		`{"name":5}`:          "name must be a string, not number",
		`{"on":"x"}`:          "on must be a boolean, not string",
		`{"count":1.5}`:       "count must be a number, not number 1.5",
		`{"in":[]}`:           "in must be an object, not array",
		`{"in":{"A":{}}}`:     "in.A must be an array, not object",
		`[]`:                  "it must be an object, not array",
		`{"name":`:            "it is not valid JSON at byte 8: unexpected end of JSON input",
		`{"name":"a\u0000}`:   "it is not valid JSON at byte 17: unexpected end of JSON input",
		`{"name":"a" "on":1}`: "it is not valid JSON at byte 13: invalid character '\"' after object key:value pair",
	} {
		var x form
		if err := json.Unmarshal([]byte(text), &x); err == nil || Explain(err) != want {
			t.Errorf("%s: %s", text, Explain(err))
		}
	}
	if got := Explain(errors.New("full disk")); got != "full disk" {
		t.Error(got)
	}
}
