package operation

import (
	"time"

	"github.com/musterhq/muster/api/shape"
)

// Operation is a method of a path: all that registers, authorises, limits and
// documents it. What answers it stands beside it, in the package that does.
type Operation struct {
	Method string
	// Path is behind the surface's prefix; a part in braces takes any text.
	Path string
	// Permission is what the caller must hold: a permission, or one of the words
	// below.
	Permission string
	ID         string // operationId, unique
	Summary    string
	About      string
	// Timeout bounds the call; 0 is the surface's own.
	Timeout time.Duration
	Query   []Parameter
	Header  []Parameter
	// Body is the shape of the request's; nil is none.
	Body *shape.Schema
	BodyRules
	// Raw reports that the handler reads query and body itself: they are not JSON, or not
	// in one form.
	Raw bool
	// Data is what the envelope carries, or the answer itself on surfaces without
	// one; nil is nothing.
	Data  *shape.Schema
	Paged bool // a page of a list: limit, cursor and next
	// Limit is the default of limit and Most its bound; 0 is 100 and 1000.
	Limit, Most int
	// Fails are examples of what a failure says.
	Fails []string
	// FailData: a failure may have the call's data as well.
	FailData bool
	// Also are further statuses that it may answer.
	Also []int
	// Other are its answers, where they are in none of the surface's forms.
	Other shape.Ordered
}

// BodyRules say more of an operation's body than its shape does.
type BodyRules struct {
	Optional bool   // the body may be left out
	Media    string // "" is application/json
	// Instead are fields that callers send and Body does not have, each with what to do:
	// to leave it out would do something that the caller does not mean.
	Instead map[string]string
	// NoNull are the fields of Body for which null is refused, as PATCH refuses it for
	// all that take none: a caller that sends it has an empty variable, and means
	// something else than to leave the field out.
	NoNull []string
}

// What stands in place of a permission.
const (
	Anybody     = "none"
	SignedIn    = "signed-in"
	SystemAdmin = "system-admin"
	AppSecret   = "app-secret"
	WriteKey    = "write-key"
	AnyKey      = "any-key"
)

// Group is the operations of a noun.
type Group struct {
	Surface    *Surface
	Tag        string // unique among all surfaces
	Title      string
	About      string
	Operations []Operation
}

// Parameter is one of the query or a header.
type Parameter struct {
	Name     string
	Schema   *shape.Schema
	Required bool
}

// Query is a parameter that may be left out.
func Query(name string, s *shape.Schema) Parameter { return Parameter{name, s, false} }

// Must is a parameter that must be given.
func Must(name string, s *shape.Schema) Parameter { return Parameter{name, s, true} }

// PageQuery is the query of lists whose cursor is in the data.
func PageQuery() []Parameter {
	return []Parameter{
		Query("limit", shape.Integer(100, "How many entries a page may have.").Between(1, 1000).Default(100)),
		Query("cursor", shape.Text("BhgAAAA", "Where the page begins: `next` of the page before.")),
	}
}
