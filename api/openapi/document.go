package openapi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// groups lists all nouns, in the order in which they are shown.
func groups() []group {
	return []group{
		contactsA(), devicesA(), listsA(), campaignsA(), pushA(), flowsA(), analyticsA(),
		eventsB(),
		eventsC(), emailC(),
		sessionConsole(), usersConsole(), companiesConsole(), keysConsole(),
		segmentsConsole(), profilesConsole(), devicesConsole(), erasuresConsole(), eventsConsole(),
		listsConsole(), templatesConsole(), campaignsConsole(), flowsConsole(), domainsConsole(),
		webhooksConsole(), credentialsConsole(), settingsConsole(), exportsConsole(),
		linksPublic(), inboundPublic(), operationsPublic(),
	}
}

// Document returns the OpenAPI document as JSON.
func Document() ([]byte, error) {
	all := groups()
	components := ordered{}
	seen := map[string]bool{}
	collect := func(s *schema) {
		s.walk(seen, func(s *schema) {
			if s.name != "" {
				components = append(components, member{s.name, s.body()})
			}
		})
	}
	for _, s := range []*schema{failureA, tooManyA, refusalB, failureC, failureConsole} {
		collect(s)
	}
	var paths, tags ordered
	var tagGroups []ordered
	at := map[string]int{}
	for _, s := range surfaces {
		var names []string
		for i := range all {
			g := &all[i]
			if g.surface != s {
				continue
			}
			names = append(names, g.tag)
			tags = append(tags, member{g.tag, g.about})
			for j := range g.ops {
				op := &g.ops[j]
				path := s.prefix + op.path
				if _, known := at[path]; !known {
					at[path] = len(paths)
					paths = append(paths, member{path, ordered{}})
				}
				if op.body != nil && s.seal && op.media == "" {
					op.body.closed = op.body.kind == "object" && !op.body.free
				}
				collect(op.body)
				collect(op.envelope())
				if s == surfaceA {
					collect(op.outcome())
				}
				p := &paths[at[path]]
				p.value = append(p.value.(ordered), member{strings.ToLower(op.method), op.render(g)})
			}
		}
		tagGroups = append(tagGroups, ordered{{"name", s.title}, {"tags", names}, {"x-surface", s.id}, {"description", s.about}})
	}
	titles := map[string]string{}
	for i := range all {
		titles[all[i].tag] = all[i].title
	}
	var tagList []ordered
	for _, t := range tags {
		tagList = append(tagList, ordered{{"name", t.name}, {"description", t.value}, {"x-display-name", titles[t.name]}})
	}
	doc := ordered{
		{"openapi", "3.1.1"},
		{"info", ordered{
			{"title", "Muster"},
			{"version", "v1"},
			{"summary", "Events in, profiles and segments out, messages to people."},
			{"description", intro},
			{"license", ordered{{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}},
		}},
		{"jsonSchemaDialect", "https://json-schema.org/draft/2020-12/schema"},
		{"servers", []ordered{{{"url", "/"}, {"description", "This server"}}}},
		{"tags", tagList},
		{"x-tagGroups", tagGroups},
		{"paths", paths},
		{"components", ordered{{"securitySchemes", securitySchemes}, {"responses", shared}, {"schemas", components}}},
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(doc); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err := json.Compact(&out, b.Bytes())
	return out.Bytes(), err
}

const intro = "All bodies are JSON (`Content-Type: application/json`), all times ISO 8601 in UTC, all ids opaque texts. " +
	"Lists come in pages: `limit` bounds one, `next` of the answer is the `cursor` of the following. A page ends early at about 4 MiB: only `next` says whether there is more. " +
	"A path that is not there is answered 404, a method that a path does not take 405 with the header `Allow`, in the envelope of the surface. " +
	"The extension `x-permission` of an operation names the permission it needs; `none`, `signed-in`, `system-admin` and `app-secret` stand for what is no permission."

var securitySchemes = ordered{
	{"apiKey", ordered{{"type", "http"}, {"scheme", "bearer"}, {"bearerFormat", "svc_live_…"},
		{"description", "An API key, made in the console: `Authorization: Bearer svc_live_…`. It may do what of its permissions its creator may do at the time."}}},
	{"appID", ordered{{"type", "apiKey"}, {"in", "header"}, {"name", "X-App-Id"}, {"description", "The account's App ID, `app_…`."}}},
	{"appSecret", ordered{{"type", "apiKey"}, {"in", "header"}, {"name", "X-App-Secret"}, {"description", "The account's App Secret, `sk_live_…`. For servers only."}}},
	{"session", ordered{{"type", "http"}, {"scheme", "bearer"}, {"bearerFormat", "ses_…"},
		{"description", "The token of a session: `Authorization: Bearer ses_…`. Browsers may keep it in the cookie `muster_session` instead, and then send `X-CSRF-Token`."}}},
}

// render is the operation as the document has it.
func (op *operation) render(g *group) ordered {
	s := g.surface
	permission := op.permission
	if permission == "" {
		permission = s.open
	}
	out := ordered{{"tags", []string{g.tag}}, {"summary", op.summary}, {"operationId", op.id}}
	if op.about != "" {
		out = append(out, member{"description", op.about})
	}
	out = append(out, member{"x-surface", s.id}, member{"x-permission", permission})
	security := []ordered{}
	if s.security != "" && permission != anybody {
		both := ordered{}
		for _, name := range strings.Split(s.security, ",") {
			both = append(both, member{name, []string{}})
		}
		security = append(security, both)
	}
	out = append(out, member{"security", security})
	if parameters := op.parameters(); len(parameters) > 0 {
		out = append(out, member{"parameters", parameters})
	}
	if op.body != nil {
		media := op.media
		if media == "" {
			media = "application/json"
		}
		content := ordered{{"schema", op.body}}
		if media == "application/json" {
			content = append(content, member{"example", op.body.sample()})
		}
		out = append(out, member{"requestBody", ordered{{"required", !op.optional}, {"content", ordered{{media, content}}}}})
	}
	return append(out, member{"responses", s.answers(op)})
}

func (op *operation) parameters() (out []ordered) {
	add := func(in string, p parameter) {
		o := ordered{{"name", p.name}, {"in", in}}
		s := *p.schema
		if s.about != "" {
			o = append(o, member{"description", s.about})
			s.about = ""
		}
		if s.absent != nil {
			s.more = append(slices.Clone(s.more), member{"default", s.absent})
			s.absent = nil
		}
		if p.required {
			o = append(o, member{"required", true})
		}
		out = append(out, append(o, member{"schema", &s}))
	}
	parts := strings.Split(op.path, "/")
	for i, part := range parts {
		if name, is := strings.CutPrefix(part, "{"); is {
			add("path", must(strings.TrimSuffix(name, "}"), pathParameter(parts[i-1], part)))
		}
	}
	for _, p := range op.query {
		add("query", p)
	}
	if op.paged {
		absent, most := op.limit, op.most
		if absent == 0 {
			absent = 100
		}
		if most == 0 {
			most = 1000
		}
		add("query", query("limit", integer(int64(absent), "How many entries a page may have.").between(1, most).def(absent)))
		add("query", query("cursor", text("BBgYAAAAAAAA", "Where the page begins: `next` of the page before. Left out, at the beginning.")))
	}
	for _, p := range op.header {
		add("header", p)
	}
	return out
}
