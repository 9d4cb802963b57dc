// Package target checks what the address of a request says, for all surfaces: no id
// and no value of a query is anything but text.
package target

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/valyala/fasthttp"
)

// Reason is the fault of the fields that [Check] names.
const Reason = "valid UTF-8 without control characters"

// Check answers the field of a request's address that is not [Reason]: the name of a
// value of the query, "query" when the name itself is not, or "path". It is "" when
// there is none.
func Check(rc *fasthttp.RequestCtx) (field string) {
	if !isText(rc.Path()) {
		return "path"
	}
	for name, value := range rc.QueryArgs().All() {
		switch {
		case !isText(name):
			return "query"
		case !isText(value):
			return string(name)
		}
	}
	return ""
}

func isText(b []byte) bool {
	return utf8.Valid(b) && strings.IndexFunc(string(b), unicode.IsControl) < 0
}
