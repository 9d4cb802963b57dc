package flows

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/messaging/webhook"
	"github.com/musterhq/muster/segment"
)

func (v *validator) update(u *Update) {
	set := v.at("set")
	if len(u.Set) == 0 {
		v.fault(set, "must have at least one field")
	}
	fields := map[string]bool{}
	for _, a := range u.Set {
		fields[a.Field] = true
	}
	for _, a := range u.Set {
		path := jsonform.Join(set, a.Field)
		switch {
		case a.Field == segment.FieldFirstName || a.Field == segment.FieldLastName:
			if k := rawjson.KindOf(a.Value); k != rawjson.String && k != rawjson.Null {
				v.fault(path, "must be a string or null, not "+jsonform.KindName(a.Value))
			}
		case !free(a.Field):
			v.fault(path, "must not be set: a step sets first_name, last_name and what begins with attributes. or geo.")
		default:
			for i := range a.Field {
				if above := a.Field[:i]; a.Field[i] == '.' && fields[above] {
					v.fault(path, "must not be set together with "+above)
				}
			}
		}
		reported := false
		eachString(a.Value, func(text string) {
			if !reported {
				reported = v.tags(path, text, merge.Text) == nil
			}
		})
	}
}

// eachString calls visit for the strings of a value, keys apart.
func eachString(raw []byte, visit func(text string)) {
	switch rawjson.KindOf(raw) {
	case rawjson.String:
		if text, ok := rawjson.Unquote(nil, raw); ok {
			visit(string(text))
		}
	case rawjson.Array:
		rawjson.EachElement(raw, func(value []byte) bool { eachString(value, visit); return true })
	case rawjson.Object:
		rawjson.Each(raw, func(_, value []byte) bool { eachString(value, visit); return true })
	}
}

func (v *validator) webhook(x *Webhook) {
	if v.need("url", x.URL) {
		v.target(x.URL)
	}
	if err := webhook.CheckMethod(x.Method); err != nil {
		v.fault(v.at("method"), strings.TrimPrefix(err.Error(), "method "))
	}
	v.headers(x.Headers)
	mode := x.BodyMode()
	if t := v.tags(v.at("body"), x.Body, mode); t != nil && mode == merge.JSON && x.Body != "" {
		if text, err := t.Render(sample); err != nil || !json.Valid([]byte(text)) {
			v.fault(v.at("body"), "must be valid JSON, as its headers and its beginning say")
		}
	}
}

// sample fills in all merge tags.
func sample([]string) (string, bool) { return "x", true }

// hostWritten reports whether a URL has no merge tag before its path.
func hostWritten(text string) bool {
	before, _, tagged := strings.Cut(text, "{{")
	_, host, ok := strings.Cut(before, "://")
	return !tagged || ok && strings.ContainsAny(host, "/?#")
}

// target checks a URL. The author alone decides where a request goes, not the
// source of a value: scheme and host are written out.
func (v *validator) target(text string) {
	path := v.at("url")
	if !hostWritten(text) {
		v.fault(path, "must have its host written out, without merge tags")
		return
	}
	t := v.tags(path, text, merge.Target)
	if t == nil {
		return
	}
	filled, err := t.Render(sample)
	if err == nil {
		// Whether private addresses are allowed is the server's to say, when it calls.
		err = webhook.Guard{AllowPrivate: true}.CheckURL(filled)
	}
	if err != nil {
		v.fault(path, strings.TrimPrefix(err.Error(), "url "))
	}
}

func (v *validator) headers(headers []Header) {
	path := v.at("headers")
	first := map[string]string{}
	size := 0
	for _, h := range headers {
		at := jsonform.Join(path, h.Name)
		size += len(h.Name) + len(h.Value)
		if err := webhook.CheckHeaders(map[string]string{h.Name: h.Value}); err != nil {
			// The path names the header.
			name := fmt.Sprintf("%.60q ", h.Name)
			reason := strings.TrimPrefix(err.Error(), "headers: ")
			v.fault(at, strings.TrimPrefix(strings.TrimPrefix(reason, "the value of "), name))
		}
		key := http.CanonicalHeaderKey(h.Name)
		if other, twice := first[key]; twice {
			v.fault(at, fmt.Sprintf("must not be given together with %q, which is the same header", other))
		}
		first[key] = h.Name
		v.tags(at, h.Value, merge.Header)
	}
	if size > webhook.MaxHeaderBytes {
		v.fault(path, fmt.Sprintf("must have at most %d bytes, they have %d", webhook.MaxHeaderBytes, size))
	}
}

// BodyMode is what the body is, and so how values are escaped in it: what the
// header Content-Type says; without one, JSON if it begins like an object or an
// array, else text.
func (w *Webhook) BodyMode() merge.Mode {
	for _, h := range w.Headers {
		if !strings.EqualFold(h.Name, "Content-Type") {
			continue
		}
		typ, _, err := mime.ParseMediaType(h.Value)
		switch {
		case err != nil:
		case typ == "application/json" || strings.HasSuffix(typ, "+json"):
			return merge.JSON
		case typ == "text/html" || strings.HasSuffix(typ, "xml"):
			return merge.HTML
		}
		return merge.Text
	}
	body := strings.TrimLeft(w.Body, " \t\r\n")
	if w.isJSON || strings.HasPrefix(body, "[") || strings.HasPrefix(body, "{") && !strings.HasPrefix(body, "{{") {
		return merge.JSON
	}
	return merge.Text
}
