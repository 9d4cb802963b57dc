package tracking

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// marked shows a rewritten body with ⟦n⟧ for links and ⟦o⟧ for the pixel's URL; the
// pixel's own markup is shortened to ⟦pixel⟧.
func marked(r Rewritten) string {
	s := r.Template(func(s Slot) string {
		if s.Kind == Open {
			return "⟦o⟧"
		}
		return fmt.Sprintf("⟦%d⟧", s.Link)
	})
	return strings.Replace(s, pixelBefore+"⟦o⟧"+pixelAfter, "⟦pixel⟧", 1)
}

func TestRewrite(t *testing.T) {
	for name, c := range map[string]struct {
		body, want string
		links      []string
	}{
		"plain":           {`<p><a href="https://a.example/x">x</a></p>`, `<p><a href="⟦0⟧">x</a></p>⟦pixel⟧`, []string{"https://a.example/x"}},
		"empty":           {``, `⟦pixel⟧`, nil},
		"text":            {`a < b {{first_name}}`, `a < b {{first_name}}⟦pixel⟧`, nil},
		"single quotes":   {`<A CLASS='b' HREF='http://a.example/?q="1"'>`, `<A CLASS='b' HREF='⟦0⟧'>⟦pixel⟧`, []string{`http://a.example/?q="1"`}},
		"unquoted":        {`<a href=http://a.example/x/ id=z>`, `<a href="⟦0⟧" id=z>⟦pixel⟧`, []string{"http://a.example/x/"}},
		"unquoted at end": {`<a href=http://a.example/>x`, `<a href="⟦0⟧">x⟦pixel⟧`, []string{"http://a.example/"}},
		"spaces":          {"<a\n\thref = \" https://a.example/a\n b \" >", "<a\n\thref = \"⟦0⟧\" >⟦pixel⟧", []string{"https://a.example/a b"}},
		"entities":        {`<a href="https://a.example/?a=1&amp;b=2&copy=3&#x26;d">`, `<a href="⟦0⟧">⟦pixel⟧`, []string{"https://a.example/?a=1&b=2&copy=3&d"}},
		"hidden scheme":   {`<a href="&#104;ttps://a.example/">`, `<a href="⟦0⟧">⟦pixel⟧`, []string{"https://a.example/"}},
		"area":            {`<map><area shape=rect href="https://a.example/"/></map>`, `<map><area shape=rect href="⟦0⟧"/></map>⟦pixel⟧`, []string{"https://a.example/"}},
		"same twice":      {`<a href="https://a.example/?a&amp;b"><a href='https://b.example/'><a href='https://a.example/?a&b'>`, `<a href="⟦0⟧"><a href='⟦1⟧'><a href='⟦0⟧'>⟦pixel⟧`, []string{"https://a.example/?a&b", "https://b.example/"}},
		"others": {`<a href="mailto:a@b.example"><a href="tel:+1"><a href="#top"><a href="/x"><a href="//a.example"><a href=""><a href><a><link href="https://a.example"><abbr href="https://a.example"><img src="https://a.example/i.png">`,
			`<a href="mailto:a@b.example"><a href="tel:+1"><a href="#top"><a href="/x"><a href="//a.example"><a href=""><a href><a><link href="https://a.example"><abbr href="https://a.example"><img src="https://a.example/i.png">⟦pixel⟧`, nil},
		"scripts":         {`<a href="javascript:alert(1)"><a href="data:text/html,x"><a href="https:/a.example"><a href="https://">`, `<a href="javascript:alert(1)"><a href="data:text/html,x"><a href="https:/a.example"><a href="https://">⟦pixel⟧`, nil},
		"off":             {`<a data-muster-track="off" href="https://a.example/"><a href="https://a.example/" data-muster-track=OFF><a href="https://a.example/" data-muster-track="on">`, `<a data-muster-track="off" href="https://a.example/"><a href="https://a.example/" data-muster-track=OFF><a href="⟦0⟧" data-muster-track="on">⟦pixel⟧`, []string{"https://a.example/"}},
		"first of two":    {`<a href="mailto:x" href="https://a.example/"><a href="https://a.example/1" HREF="https://a.example/2">`, `<a href="mailto:x" href="https://a.example/"><a href="⟦0⟧" HREF="https://a.example/2">⟦pixel⟧`, []string{"https://a.example/1"}},
		"not an href":     {`<a data-href="https://a.example/" title='href="https://a.example/"' xhref=https://a.example>`, `<a data-href="https://a.example/" title='href="https://a.example/"' xhref=https://a.example>⟦pixel⟧`, nil},
		"slashes":         {`<a/href="https://a.example/"/>`, `<a/href="⟦0⟧"/>⟦pixel⟧`, []string{"https://a.example/"}},
		"no space":        {`<a class="b"href="https://a.example/">`, `<a class="b"href="⟦0⟧">⟦pixel⟧`, []string{"https://a.example/"}},
		"comment":         {`<!-- <a href="https://a.example/"> --><a href="https://b.example/">`, `<!-- <a href="https://a.example/"> --><a href="⟦0⟧">⟦pixel⟧`, []string{"https://b.example/"}},
		"raw text":        {`<style>a[href="https://a.example/"]{}</style><script>'<a href="https://a.example/">'</script><title><a href="https://a.example/"></title><textarea><a href="https://a.example/"></textarea>`, `<style>a[href="https://a.example/"]{}</style><script>'<a href="https://a.example/">'</script><title><a href="https://a.example/"></title><textarea><a href="https://a.example/"></textarea>⟦pixel⟧`, nil},
		"gt in value":     {`<a title="a>b" href="https://a.example/?x>y">x</a>`, `<a title="a>b" href="⟦0⟧">x</a>⟦pixel⟧`, []string{"https://a.example/?x>y"}},
		"body":            {"<html><body>x</body>\n</html>", "<html><body>x⟦pixel⟧</body>\n</html>", nil},
		"BODY and links":  {`<BODY><a href="https://a.example/">x</a></BODY ><a href="https://b.example/">`, `<BODY><a href="⟦0⟧">x</a>⟦pixel⟧</BODY ><a href="⟦1⟧">`, []string{"https://a.example/", "https://b.example/"}},
		"two bodies":      {`</body><p></body>`, `</body><p>⟦pixel⟧</body>`, nil},
		"body in comment": {`<p>x<!-- </body> -->`, `<p>x<!-- </body> -->⟦pixel⟧`, nil},
		"html only":       {`<html>x</html>`, `<html>x⟦pixel⟧</html>`, nil},
		"unfinished tag":  {`x<a href="https://a.example/`, `x<a href="https://a.example/⟦pixel⟧`, nil},
		"conditional": {`<!--[if mso]><v:roundrect xmlns:v="urn:x" href="https://a.example/?a&amp;b" arcsize="5%"><a href="https://b.example/">x</a></v:roundrect></body><![endif]--><!--[if !mso]><!--><a href="https://a.example/?a&amp;b">x</a><!--<![endif]-->`,
			`<!--[if mso]><v:roundrect xmlns:v="urn:x" href="⟦0⟧" arcsize="5%"><a href="⟦1⟧">x</a></v:roundrect></body><![endif]--><!--[if !mso]><!--><a href="⟦0⟧">x</a><!--<![endif]-->⟦pixel⟧`, []string{"https://a.example/?a&b", "https://b.example/"}},
		"downlevel revealed": {`<![if !mso]><a href="https://a.example/">x</a><![endif]>`, `<![if !mso]><a href="⟦0⟧">x</a><![endif]>⟦pixel⟧`, []string{"https://a.example/"}},
		"broken conditional": {`<!--[if mso><![endif]--><!--[if mso]><a href="https://a.example/"> --><!--[if x]><![endif]-->`, `<!--[if mso><![endif]--><!--[if mso]><a href="https://a.example/"> --><!--[if x]><![endif]-->⟦pixel⟧`, nil},
		"shape outside":      {`<v:rect href="https://a.example/">`, `<v:rect href="https://a.example/">⟦pixel⟧`, nil},
		"merge tag in URL":   {`<a href="https://a.example/?n={{ first_name | default:"you > me" }}&amp;e={{email}}">{{ x }}</a>`, `<a href="⟦0⟧">{{ x }}</a>⟦pixel⟧`, []string{`https://a.example/?n={{ first_name | default:"you > me" }}&e={{email}}`}},
		"unquoted with tag":  {`<a href=https://a.example/{{ first name }} id=x>`, `<a href="⟦0⟧" id=x>⟦pixel⟧`, []string{"https://a.example/{{ first name }}"}},
		"tag is host":        {`<a href="https://{{host}}/"><a href="https://a.{{x}}.example/"><a href="{{unsubscribe_url}}"><a href="https://a.example{{path}}"><a href="https://a.example&#123;&#123;x}}/">`, `<a href="https://{{host}}/"><a href="https://a.{{x}}.example/"><a href="{{unsubscribe_url}}"><a href="https://a.example{{path}}"><a href="https://a.example&#123;&#123;x}}/">⟦pixel⟧`, nil},
		"user info":          {`<a href="https://a.example@b.example/">`, `<a href="https://a.example@b.example/">⟦pixel⟧`, nil},
		"tag in tag":         {`<a {{attrs "x>"}}href="https://a.example/" {{y}}>`, `<a {{attrs "x>"}}href="⟦0⟧" {{y}}>⟦pixel⟧`, []string{"https://a.example/"}},
		"markup in tag":      {`{{ default "<a href='https://a.example/'>" }}<a href="https://b.example/">`, `{{ default "<a href='https://a.example/'>" }}<a href="⟦0⟧">⟦pixel⟧`, []string{"https://b.example/"}},
		"unclosed tag":       {`{{ x <a href="https://a.example/{{y}}">`, `{{ x <a href="⟦0⟧">⟦pixel⟧`, []string{"https://a.example/{{y}}"}},
		"three braces":       {`<a href="https://a.example/{{{y}}}">`, `<a href="⟦0⟧">⟦pixel⟧`, []string{"https://a.example/{{{y}}}"}},
		"bytes":              {"\xff\x00<a href=\"https://a.example/\xfe\">\r\n\x01</a>", "\xff\x00<a href=\"⟦0⟧\">\r\n\x01</a>⟦pixel⟧", []string{"https://a.example/\xfe"}},
	} {
		r, links, err := Rewrite(c.body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := marked(r); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
		if !slices.Equal(links, c.links) {
			t.Errorf("%s: links %q, want %q", name, links, c.links)
		}
		checkT2(t, c.body, r, links)
	}
}

// checkT2 puts the original bytes back into the slots.
func checkT2(t *testing.T, body string, r Rewritten, links []string) {
	t.Helper()
	back := string(r.Append(nil, func(dst []byte, s Slot) []byte {
		return append(dst, "⟦"+body[s.from:s.to]+"⟧"...)
	}))
	back = strings.Replace(back, pixelBefore+"⟦⟧"+pixelAfter, "", 1)
	for i := range r.Slots() {
		s := r.Slot(i)
		if s.Kind == Open {
			continue
		}
		old := body[s.from:s.to]
		if s.from > 0 && (body[s.from-1] == '"' || body[s.from-1] == '\'') {
			back = strings.Replace(back, "⟦"+old+"⟧", old, 1)
		} else {
			back = strings.Replace(back, "\"⟦"+old+"⟧\"", old, 1)
		}
		if int(s.Link) >= len(links) || !fixedHost(links[s.Link]) {
			t.Errorf("slot %d leads to no link", i)
		}
	}
	if back != body {
		t.Errorf("put back:\n%q\nwas\n%q", back, body)
	}
}

func TestRewriteBounds(t *testing.T) {
	if _, _, err := Rewrite(strings.Repeat("x", MaxHTMLBytes+1)); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "html") {
		t.Error(err)
	}
	var many strings.Builder
	for i := range MaxLinks {
		fmt.Fprintf(&many, `<a href="https://a.example/%d">`, i)
	}
	if _, links, err := Rewrite(many.String() + many.String()); err != nil || len(links) != MaxLinks {
		t.Error(len(links), err)
	}
	if _, _, err := Rewrite(many.String() + `<a href="https://a.example/x">`); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	long := `<a href="https://a.example/` + strings.Repeat("x", MaxLinkBytes) + `">`
	if r, links, err := Rewrite(long); err != nil || len(links) != 0 || !strings.HasPrefix(marked(r), long) {
		t.Error(len(links), err)
	}
}

// FuzzRewrite checks T2, and that a body's links are, as a parser of its own sees
// them, those of the table.
func FuzzRewrite(f *testing.F) {
	for _, s := range []string{
		`<p><a href="https://a.example/?a=1&amp;b=2">x</a></body>`, `<a href=http://a.example/x/ id=z>`, `<!--[if mso]><v:rect href='https://a.example'/><![endif]-->`,
		`<a {{x}} href="https://a.example/{{ a "b>" }}">`, "<A\nHREF = 'http://a.example/&copy=1' href=x>", `<script><a href="https://a.example"></script><style>`, `<a =href="https://a.example/" b=/ href=c>`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if strings.Contains(body, "⟦") || strings.Contains(body, pixelBefore) {
			return
		}
		r, links, err := Rewrite(body)
		if err != nil {
			return
		}
		checkT2(t, body, r, links)
		if strings.Contains(body, "{{") || strings.Contains(body, "\x01") || strings.Contains(strings.ToLower(body), "<!--[if") {
			return // the parser below knows neither
		}
		var got, want []string
		for i := range r.Slots() {
			if s := r.Slot(i); s.Kind == Click {
				got = append(got, links[s.Link])
			}
		}
		z := html.NewTokenizer(strings.NewReader(body))
		for z.Next() != html.ErrorToken {
			tok := z.Token()
			if tok.Type != html.StartTagToken && tok.Type != html.SelfClosingTagToken || tok.Data != "a" && tok.Data != "area" {
				continue
			}
			off, href, seen := false, "", map[string]bool{}
			for _, a := range tok.Attr {
				if !seen[a.Key] && a.Key == "href" {
					href = a.Val
				}
				if !seen[a.Key] && a.Key == "data-muster-track" {
					off = strings.EqualFold(strings.TrimSpace(a.Val), "off")
				}
				seen[a.Key] = true
			}
			href = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(href)
			href = strings.TrimFunc(href, func(r rune) bool { return r <= ' ' })
			if strings.Contains(href, "\uFFFD") || strings.Contains(body, "\x00") {
				return // bytes that are no text: kept by us, replaced by the parser
			}
			if !off && fixedHost(href) && len(href) <= MaxLinkBytes {
				want = append(want, href)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("links %q, a parser sees %q in %q", got, want, body)
		}
	})
}

func TestT3Location(t *testing.T) {
	for _, c := range []struct{ link, rendered, want string }{
		{"https://a.example/x?a=1&b=2#c", "https://a.example/x?a=1&b=2#c", "https://a.example/x?a=1&b=2#c"},
		{"https://a.example", "https://a.example", "https://a.example/"},
		{"HTTPS://a.example:8443?x", "HTTPS://a.example:8443?x", "https://a.example:8443/?x"},
		{"https://a.example/{{n}}", "https://a.example/José Ñ\"<", "https://a.example/Jos%C3%A9%20%C3%91%22%3C"},
		{"https://a.example/?n={{n}}", "https://a.example/?n=a\r\nSet-Cookie: x=y", "https://a.example/?n=a%0D%0ASet-Cookie:%20x=y"},
		{"https://a.example/?n={{n}}", "https://a.example/?n=100%", "https://a.example/?n=100%"},
		{"https://bücher.example:81/", "https://bücher.example:81/", "https://xn--bcher-kva.example:81/"},
		{`https://a.example\x`, `https://a.example\x`, "https://a.example/x"},
		{"https://a.example/{{n}}", "https://b.example/", ""},
		{"https://a.example/{{n}}", "http://a.example/", ""},
		{"https://a.example/{{n}}", "https://a.example@b.example/", ""},
		{"https://a.example/{{n}}", "https://a.example.b.example/", ""},
		{"https://a.example/{{n}}", "", ""},
		{"https://{{n}}/", "https://{{n}}/", ""},
		{"{{n}}", "https://b.example/", ""},
		{"javascript:alert(1)", "javascript:alert(1)", ""},
		{"//a.example/", "//a.example/", ""},
		{"https://a.example/{{n}}", "https://a.example/" + strings.Repeat("x", 3*MaxLinkBytes), ""},
	} {
		got, err := Location(c.link, c.rendered)
		if got != c.want || (err == nil) != (c.want != "") || err != nil && !errors.Is(err, ErrLink) {
			t.Errorf("%q with %.80q: %q, %v", c.link, c.rendered, got, err)
		}
	}
}

// FuzzT3Location: a value in the path or query moves neither scheme nor host, and
// breaks no header.
func FuzzT3Location(f *testing.F) {
	f.Add("a", "b")
	f.Add("\r\n", "@b.example/")
	f.Fuzz(func(t *testing.T, path, query string) {
		got, err := Location("https://a.example/{{p}}?{{q}}", "https://a.example/"+path+"?"+query)
		if err != nil {
			return
		}
		if !strings.HasPrefix(got, "https://a.example/") || strings.ContainsFunc(got, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			t.Fatalf("%q", got)
		}
	})
}
