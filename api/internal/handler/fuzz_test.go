package handler

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/musterhq/muster/resolver"
)

// FuzzDecodeStrict: a body is read into the fields of every kind of call, or
// refused with a reason; what is read is JSON.
func FuzzDecodeStrict(f *testing.F) {
	for _, s := range []string{
		`{"name":"x","definition":{"kind":"activity","event":"x"}}`, `{"email":"a@x.io","permissions":["lists:read"],"admin":false,"password":null}`, `{"url":"https://x.example/","events":["a"]}`,
		`{"placeholders":["null"],"identifier_cap":50,"surface_c_per_minute":1e3}`, `{"name":1}`, `{"":""}`, `{} {}`, `[]`, `null`, `"\ud800"`, "{\"name\":\"\xff\"}", `{"Name":"x","NAME":"y"}`, `{"geo":{"a":[1e999]}}`, ``,
		`{"topics":[null],"generate":true}`, `{"api_access":true,"name":"x"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, v := range []any{
			&struct {
				Name        *string         `json:"name"`
				Definition  json.RawMessage `json:"definition"`
				Permissions *[]string       `json:"permissions"`
				Admin       *bool           `json:"admin"`
				Topics      []string        `json:"topics"`
				Generate    bool            `json:"generate"`
			}{}, &resolver.Settings{}, &resolver.CompanyUpdate{}, &map[string]json.RawMessage{},
			&struct {
				Geo        map[string]any `json:"geo"`
				Attributes map[string]any `json:"attributes"`
			}{},
		} {
			err := Decode(body, v)
			var p *Problem
			switch {
			case err == nil && !json.Valid(body):
				t.Errorf("%q is taken", body)
			case err != nil && (!errors.As(err, &p) || p.Status != 400 || p.Message == ""):
				t.Errorf("%q: %v", body, err)
			}
		}
	})
}
