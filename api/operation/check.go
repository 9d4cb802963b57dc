package operation

import (
	"errors"
	"slices"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/internal/jsonform"
)

// noBody is the body of an operation that takes none: an object without fields is as
// good as nothing.
var noBody = shape.Object()

// CheckBody finds a field of a body in JSON that the operation does not take, at any
// depth: the error is a [*jsonform.UnknownError]. Where a field that is left out means
// something else than an empty one, it finds a null that the field does not take, too:
// that error is a [*jsonform.Error]. The text is canonical.
func (op *Operation) CheckBody(text []byte) error {
	body := op.Body
	if body == nil {
		body = noBody
	}
	err := body.Unknown(text)
	var unknown *jsonform.UnknownError
	if errors.As(err, &unknown) {
		unknown.Instead = op.Instead[unknown.Path]
	}
	if err != nil {
		return err
	}
	if name := body.Null(text, func(name string) bool { return op.Method == "PATCH" || slices.Contains(op.NoNull, name) }); name != "" {
		reason := "must be something else than null. Leave it out, and it stays as it is"
		if op.Method != "PATCH" {
			reason = "must be something else than null: the variable that should hold it is empty. Leave it out if you mean that"
		}
		return &jsonform.Error{Path: name, Reason: reason}
	}
	return err
}

// UnknownParameter reports that a query has a parameter that its operation does not take.
type UnknownParameter struct {
	Name string
	// Near is the one that is probably meant, "" for none.
	Near string
}

func (e *UnknownParameter) Error() string {
	if e.Near == "" {
		return e.Name + " is not a parameter of this call; leave it out of the query"
	}
	return e.Name + " is not a parameter of this call. Did you mean " + e.Near + "?"
}

// CheckQuery finds a parameter that the operation does not take. The error is an
// [*UnknownParameter].
func (op *Operation) CheckQuery(query *fasthttp.Args) error {
	for name := range query.All() {
		if !op.takes(string(name)) {
			return &UnknownParameter{string(name), jsonform.Near(string(name), op.queryNames())}
		}
	}
	return nil
}

func (op *Operation) takes(name string) bool {
	for i := range op.Query {
		if op.Query[i].Name == name {
			return true
		}
	}
	return op.Paged && (name == "limit" || name == "cursor")
}

func (op *Operation) queryNames() (out []string) {
	for i := range op.Query {
		out = append(out, op.Query[i].Name)
	}
	if op.Paged {
		out = append(out, "limit", "cursor")
	}
	return out
}

// Page is how many entries a page has where the query does not say, and how many it
// may ask for.
func (op *Operation) Page() (absent, most int) {
	absent, most = op.Limit, op.Most
	if absent == 0 {
		absent = paging.DefaultLimit
	}
	if most == 0 {
		most = paging.MaxLimit
	}
	return absent, most
}
