package text

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/messaging/outcome"
)

// Format is how the request's body is written.
type Format string

const (
	// JSON sends Config.Body.
	JSON Format = "json"
	// Form sends Config.Form, URL-encoded.
	Form Format = "form"
)

// Config describes a provider's API.
type Config struct {
	// URL is the provider's endpoint, https unless Options.AllowPrivate.
	URL string `json:"url"`
	// Method is POST (the default) or PUT.
	Method string `json:"method,omitempty"`
	// Username and Password are sent with HTTP basic authentication, Token as a
	// bearer token. At most one of both ways.
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	Token    string `json:"token,omitempty"`
	// Headers are further headers, for example an API key.
	Headers []Field `json:"headers,omitempty"`

	Format Format  `json:"format"`
	Body   string  `json:"body,omitempty"`
	Form   []Field `json:"form,omitempty"`

	// From is the sender's number or name where a message names none.
	From string `json:"from,omitempty"`
	// AnyAddress permits recipients that are no phone numbers.
	AnyAddress bool `json:"any_address,omitempty"`
	// Templates says how the provider takes WhatsApp templates: CloudTemplates or
	// TwilioContent; "" takes none.
	Templates string `json:"templates,omitempty"`
	// MaxBody bounds a text in characters. Default 1600.
	MaxBody int `json:"max_body,omitempty"`

	// IDPath, CodePath and ErrorPath say where in the JSON of the answer the
	// message's id, the error's code and its text stand: names and array
	// indices joined by dots, for example messages.0.id.
	IDPath    string `json:"id_path,omitempty"`
	CodePath  string `json:"code_path,omitempty"`
	ErrorPath string `json:"error_path,omitempty"`
	// Codes maps error codes to accepted, permanent, hard (permanent, and the
	// address is dead), opted_out (permanent, the recipient wants nothing more),
	// temporary or refused.
	Codes map[string]string `json:"codes,omitempty"`
}

// Field is a name with a value that may contain merge tags.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Longest is how many characters a text may have.
func (c *Config) Longest() int { return cmp.Or(c.MaxBody, defaultMaxBody) }

// defaultMaxBody is what Twilio takes.
const defaultMaxBody = 1600

// ParseConfig reads a Config from JSON. It is checked by New.
func ParseConfig(raw []byte) (Config, error) {
	var c Config
	if len(raw) > 64<<10 {
		return c, fmt.Errorf("text: the provider's configuration has %d bytes, at most 65536 are allowed", len(raw))
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, fmt.Errorf("text: the provider's configuration is not what is expected: %s", jsonform.Explain(err))
	}
	return c, nil
}

// rule is the meaning of a provider's code.
type rule struct {
	class          outcome.Class
	hard, optedOut bool
}

// compiled is a Config checked and parsed.
type compiled struct {
	Config
	url     *merge.Template
	body    *merge.Template
	form    []field
	headers []field
	rules   map[string]rule

	id, code, text []string
}

type field struct {
	name  string
	value *merge.Template
}

func (c Config) compile(allowPrivate bool) (*compiled, error) {
	p := &compiled{Config: c, rules: map[string]rule{}}
	u, err := url.Parse(untagged(c.URL))
	if err != nil || u.Host == "" || u.User != nil || len(c.URL) > 2048 || u.Scheme != "https" && (u.Scheme != "http" || !allowPrivate) {
		return nil, errors.New("text: url must be an absolute https URL without a password in it")
	}
	if i := strings.Index(c.URL, "{{"); i >= 0 && !strings.Contains(strings.SplitN(c.URL[:i], "://", 2)[1], "/") {
		return nil, errors.New("text: url may have merge tags only behind the host, so that a message cannot choose it")
	}
	if p.url, err = merge.Parse(c.URL, merge.Target); err != nil {
		return nil, fmt.Errorf("text: url: %w", err)
	}
	switch p.Method {
	case "":
		p.Method = http.MethodPost
	case http.MethodPost, http.MethodPut:
	default:
		return nil, fmt.Errorf("text: method %q is not allowed; use POST or PUT", c.Method)
	}
	if (c.Username != "" || c.Password != "") && c.Token != "" {
		return nil, errors.New("text: give either username and password or token")
	}
	for _, s := range []struct{ name, value string }{{"username", c.Username}, {"password", c.Password}, {"token", c.Token}} {
		if len(s.value) > 4096 || strings.ContainsFunc(s.value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return nil, fmt.Errorf("text: %s has control characters or more than 4096 bytes", s.name)
		}
	}
	switch c.Format {
	case JSON:
		if c.Body == "" || len(c.Form) > 0 {
			return nil, errors.New("text: format json needs body, and no form")
		}
		if p.body, err = merge.Parse(c.Body, merge.JSON); err != nil {
			return nil, fmt.Errorf("text: body: %w", err)
		}
	case Form:
		if len(c.Form) == 0 || c.Body != "" {
			return nil, errors.New("text: format form needs form, and no body")
		}
		if p.form, err = fields("form", c.Form, merge.Text); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("text: format %q is unknown; use json or form", c.Format)
	}
	if p.headers, err = fields("headers", c.Headers, merge.Header); err != nil {
		return nil, err
	}
	for _, h := range c.Headers {
		if strings.Trim(h.Name, "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_") != "" {
			return nil, fmt.Errorf("text: header name %q may hold letters, digits, - and _ only", h.Name)
		}
		switch http.CanonicalHeaderKey(h.Name) {
		case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Content-Type":
			return nil, fmt.Errorf("text: header %s is set by the sender; leave it out", h.Name)
		}
	}
	if c.Templates != "" && (c.Templates != CloudTemplates || c.Format != JSON) && (c.Templates != TwilioContent || c.Format != Form) {
		return nil, fmt.Errorf("text: templates must be %s with format json, or %s with format form", CloudTemplates, TwilioContent)
	}
	p.MaxBody = c.Longest()
	if p.MaxBody < 1 || p.MaxBody > 65536 {
		return nil, fmt.Errorf("text: max_body %d is out of range 1 to 65536", c.MaxBody)
	}
	if len(c.Codes) > 1000 {
		return nil, fmt.Errorf("text: %d codes are given, at most 1000 are allowed", len(c.Codes))
	}
	for code, name := range c.Codes {
		switch name {
		case "hard":
			p.rules[code] = rule{class: outcome.Permanent, hard: true}
			continue
		case "opted_out":
			p.rules[code] = rule{class: outcome.Permanent, optedOut: true}
			continue
		}
		var class outcome.Class
		if class.UnmarshalText([]byte(name)) != nil || class == outcome.Ambiguous || class == outcome.Retired {
			return nil, fmt.Errorf("text: code %s: %q is unknown; use accepted, permanent, hard, opted_out, temporary or refused", code, name)
		}
		p.rules[code] = rule{class: class}
	}
	p.id, p.code, p.text = path(c.IDPath), path(c.CodePath), path(c.ErrorPath)
	return p, nil
}

// untagged is the URL with tags as plain letters, for url.Parse.
func untagged(s string) string {
	return strings.NewReplacer("{{", "x", "}}", "x", " ", "", "|", "", `"`, "").Replace(s)
}

func fields(what string, list []Field, mode merge.Mode) ([]field, error) {
	if len(list) > 100 {
		return nil, fmt.Errorf("text: %s: %d are given, at most 100 are allowed", what, len(list))
	}
	var out []field
	for _, f := range list {
		if f.Name == "" || len(f.Name) > 128 || len(f.Value) > 8192 {
			return nil, fmt.Errorf("text: %s: a name is empty or longer than 128 bytes, or its value longer than 8192", what)
		}
		t, err := merge.Parse(f.Value, mode)
		if err != nil {
			return nil, fmt.Errorf("text: %s: %s: %w", what, f.Name, err)
		}
		out = append(out, field{f.Name, t})
	}
	return out, nil
}

func path(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ".")
}
