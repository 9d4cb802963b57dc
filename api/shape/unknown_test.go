package shape

import (
	"strings"
	"testing"
)

// TestUnknown: a field that a shape does not have is found at any depth, and nothing
// else is.
func TestUnknown(t *testing.T) {
	name := func() Field { return Opt("name", Text("x", "")) }
	s := Object(
		Opt("list_id", List(Text("x", ""), "")), Opt("user", Named("Person", Object(name(), Opt("geo", FreeObject(nil, ""))))), Opt("variants", List(Object(name()), "")),
		Opt("any", Anything(1, "")), Opt("by", MapOf(Object(name()), "")), Opt("rule", Object(name()).Parsed()),
		Opt("either", OneOf(
			Object(Req("type", Only("A", "a")), Opt("left", Object(name()))), Object(Req("type", Only("B", "b")), Opt("right", Text("x", ""))), Text("x", ""),
		)),
		Opt("both", OneOf(Object(Opt("here", Object(name()))), Object(Opt("there", Text("x", ""))))),
		Opt("open", Object(name()).Open()), Opt("several", OneOf(List(Object(name()), ""), Object(name()))),
	)
	for text, want := range map[string]string{
		`{"list_id":["a"],"user":{"name":"x","geo":{"country":1}},"variants":[{"name":1}],"any":{"a":{"b":1}},"by":{"k":{"name":1}},"rule":{"x":1}}`: "",
		`{"either":"x","both":{"here":{"name":1},"there":1},"open":{"x":1},"several":[{"name":1}]}`:                                                  "",
		`{"either":{"type":"a","left":{"name":1}},"several":{"name":1}}`:                                                                             "",
		`{"list_id":{"x":1},"user":[1],"variants":{"a":1}}`:                                                                                          "", // of another type: its reader reports that
		`{"list_ids":["a"]}`:                "list_ids is not a field of this call. Did you mean list_id?",
		`{"user":{"nam\u0065":1,"nmae":1}}`: "user.nmae is not a field of this call. Did you mean user.name?",
		`{"variants":[{},{"naem":1}]}`:      "variants[1].naem is not a field of this call. Did you mean variants[1].name?",
		`{"by":{"k":{"x":1}}}`:              "by.k.x is not a field of this call; leave it out, or use by.k.name",
		`{"either":{"type":"a","right":1}}`: "either.right is not a field of this call; leave it out, or use either.left or either.type",
		`{"either":{"type":"b","rigth":1}}`: "either.rigth is not a field of this call. Did you mean either.right?",
		`{"either":{"type":"c","x":1}}`:     "either.x is not a field of this call; leave it out, or use either.left, either.right or either.type",
		`{"both":{"here":{"x":1}}}`:         "both.here.x is not a field of this call; leave it out, or use both.here.name",
		`{"several":[{"x":1}]}`:             "several[0].x is not a field of this call; leave it out, or use several[0].name",
		`{"several":{"x":1}}`:               "several.x is not a field of this call; leave it out, or use several.name",
		`{"a.b":1}`:                         "is not a field of this call; leave it out, or use any, both, by, either, list_id, open, rule, several, user or variants",
		`{"":1}`:                            "is not a field of this call; leave it out, or use any, both, by, either, list_id, open, rule, several, user or variants",
	} {
		err := s.Unknown([]byte(text))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.HasSuffix(err.Error(), want)):
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{`[]`, `"x"`, `null`, `1`, `{}`} {
		if err := s.Unknown([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestNull: a null is found where the shape takes none, at the top alone, and in whichever
// choice the object is.
func TestNull(t *testing.T) {
	s := Object(Opt("name", Text("x", "")), Opt("note", Text("x", "").OrNull()), Opt("attributes", Object()), Opt("any", &Schema{}), Opt("other", Text("x", "")))
	for text, want := range map[string]string{
		`{}`: "", `{"name":"x"}`: "", `{"note":null}`: "", `{"other":null}`: "", `{"any":null}`: "", `{"attributes":{"a":null}}`: "", `[null]`: "", `null`: "",
		`{"name":null}`: "name", `{"note":null,"attributes":null}`: "attributes",
	} {
		if got := s.Null([]byte(text), func(name string) bool { return name != "other" }); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
