package operation

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/api/shape"
)

// Document returns the OpenAPI document of the operations as JSON. Groups are shown
// by surface, in the order given; those of one tag are one.
func Document(all []Group) ([]byte, error) {
	components := shape.Pairs()
	seen := map[string]bool{}
	collect := func(s *shape.Schema) {
		s.Walk(seen, func(s *shape.Schema) {
			if s.Component() != "" {
				components = append(components, shape.Pair(s.Component(), s.Body()))
			}
		})
	}
	for _, s := range []*shape.Schema{failureA, tooManyA, refusalB, failureC, FailureConsole} {
		collect(s)
	}
	var paths, tags shape.Ordered
	var tagGroups []shape.Ordered
	at := map[string]int{}
	for _, s := range surfaces {
		var names []string
		for i := range all {
			g := &all[i]
			if g.Surface != s {
				continue
			}
			if !slices.Contains(names, g.Tag) {
				names = append(names, g.Tag)
				tags = append(tags, shape.Pair(g.Tag, g.About))
			}
			for j := range g.Operations {
				op := &g.Operations[j]
				path := s.Prefix + op.Path
				if _, known := at[path]; !known {
					at[path] = len(paths)
					paths = append(paths, shape.Pair(path, shape.Pairs()))
				}
				if op.Body != nil && s.strict && op.Media == "" {
					op.Body.Seal()
				}
				collect(op.Body)
				collect(op.envelope())
				if s == SurfaceA && op.Other == nil {
					collect(op.outcome())
				}
				if s == SurfaceConsole && op.FailData {
					collect(op.failedConsole())
				}
				p := &paths[at[path]]
				p.Value = append(p.Value.(shape.Ordered), shape.Pair(strings.ToLower(op.Method), op.render(g)))
			}
		}
		tagGroups = append(tagGroups, shape.Pairs("name", s.Title, "tags", names, "x-surface", s.ID, "description", s.About))
	}
	titles := map[string]string{}
	for i := range all {
		titles[all[i].Tag] = all[i].Title
	}
	var tagList []shape.Ordered
	for _, t := range tags {
		tagList = append(tagList, shape.Pairs("name", t.Name, "description", t.Value, "x-display-name", titles[t.Name]))
	}
	doc := shape.Pairs(
		"openapi", "3.1.1",
		"info", shape.Pairs(
			"title", "Muster",
			"version", "v1",
			"summary", "Events in, profiles and segments out, messages to people.",
			"description", intro,
			"license", shape.Pairs("name", "Apache-2.0", "identifier", "Apache-2.0"),
		),
		"jsonSchemaDialect", "https://json-schema.org/draft/2020-12/schema",
		"servers", []shape.Ordered{shape.Pairs("url", "/", "description", "This server")},
		"tags", tagList,
		"x-tagGroups", tagGroups,
		"paths", paths,
		"components", shape.Pairs("securitySchemes", securitySchemes, "responses", shared, "schemas", components),
	)
	return doc.MarshalJSON()
}

const intro = "All bodies are JSON (`Content-Type: application/json`), all times ISO 8601 in UTC, all ids opaque texts. " +
	"Lists are paginated. Pass the `next` value of one page as `cursor` to get the following page; `limit` sets the page size. A page ends early at about 4 MiB: only `next` says whether there is more. " +
	"A path that is not there is answered 404, a method that a path does not take 405 with the header `Allow`, in the form of the chapter; calls by API key under `/api/v1` answer both as they do other failures, with HTTP 200. " +
	"The extension `x-permission` of an operation names the permission it needs. Some calls need no permission: `none` is open to anybody, `signed-in` to every signed-in person, `system-admin` to administrators of the system, `app-secret` to who sends the App Secret, `any-key` to every API key."

var securitySchemes = shape.Pairs(
	"apiKey", shape.Pairs("type", "http", "scheme", "bearer", "bearerFormat", "svc_live_…",
		"description", "An API key, made in the console: `Authorization: Bearer svc_live_…`. It may do what of its permissions its creator may do at the time."),
	"appID", shape.Pairs("type", "apiKey", "in", "header", "name", "X-App-Id", "description", "The account's App ID, `app_…`."),
	"appSecret", shape.Pairs("type", "apiKey", "in", "header", "name", "X-App-Secret", "description", "The account's App Secret, `sk_live_…`. For servers only."),
	"session", shape.Pairs("type", "http", "scheme", "bearer", "bearerFormat", "ses_…",
		"description", "The token of a session: `Authorization: Bearer ses_…`. Browsers may keep it in the cookie `muster_session` instead, and then send `X-CSRF-Token`."),
)

// render is the operation as the document has it.
func (op *Operation) render(g *Group) shape.Ordered {
	s := g.Surface
	permission := op.Permission
	if permission == "" {
		permission = s.open
	}
	out := shape.Pairs("tags", []string{g.Tag}, "summary", op.Summary, "operationId", op.ID)
	if op.About != "" {
		out = append(out, shape.Pair("description", op.About))
	}
	out = append(out, shape.Pair("x-surface", s.ID), shape.Pair("x-permission", permission))
	security := []shape.Ordered{}
	if s.security != "" && permission != Anybody {
		both := shape.Pairs()
		for _, name := range strings.Split(s.security, ",") {
			both = append(both, shape.Pair(name, []string{}))
		}
		security = append(security, both)
	}
	out = append(out, shape.Pair("security", security))
	if parameters := op.parameters(); len(parameters) > 0 {
		out = append(out, shape.Pair("parameters", parameters))
	}
	if op.Body != nil {
		media := op.Media
		if media == "" {
			media = "application/json"
		}
		content := shape.Pairs("schema", op.Body)
		if media == "application/json" {
			content = append(content, shape.Pair("example", op.Body.Sample()))
		}
		out = append(out, shape.Pair("requestBody", shape.Pairs("required", !op.Optional, "content", shape.Pairs(media, content))))
	}
	return append(out, shape.Pair("responses", s.answers(op)))
}

func (op *Operation) parameters() (out []shape.Ordered) {
	add := func(in string, p Parameter) {
		o := shape.Pairs("name", p.Name, "in", in)
		about, s := p.Schema.Split()
		if about != "" {
			o = append(o, shape.Pair("description", about))
		}
		if p.Required {
			o = append(o, shape.Pair("required", true))
		}
		out = append(out, append(o, shape.Pair("schema", s)))
	}
	parts := strings.Split(op.Path, "/")
	for i, part := range parts {
		if name, is := strings.CutPrefix(part, "{"); is {
			add("path", Must(strings.TrimSuffix(name, "}"), pathParameter(parts[i-1], part)))
		}
	}
	for _, p := range op.Query {
		add("query", p)
	}
	if op.Paged {
		absent, most := op.Page()
		add("query", Query("limit", shape.Integer(int64(absent), "How many entries a page may have.").Between(1, most).Default(absent)))
		add("query", Query("cursor", shape.Text("BBgYAAAAAAAA", "Where the page begins: `next` of the page before. Left out, at the beginning.")))
	}
	for _, p := range op.Header {
		add("header", p)
	}
	return out
}
