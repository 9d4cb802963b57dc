package merge

import (
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// hostile texts cover every place a tag may stand in.
var places = []string{
	`<p>{{v}}</p><b>x{{v}}y</b>`,
	`<p title="{{v}}" class='a {{v}} b' data-x="{{v}}">t</p>`,
	`<a href="{{v}}">1</a><a href=" {{v}}{{v}} ">2</a><img src='x{{v}}'>`,
	`<a href="https://e.com/{{v}}/?a={{v}}#{{v}}">1</a><a href="{{v}}&amp;x={{v}}">2</a><a href="mailto:{{v}}">3</a>`,
	`<p style="color:{{v}};background:url({{v}});font:'{{v}}'">x</p><style>p{color:{{v}};background:url("{{v}}")}</style>`,
	`<title>a{{v}}b</title><textarea>{{v}}</textarea><p>z</p>`,
	`<!-- {{v}} --><p>a</p><!--{{v}}--><p>b</p>`,
	`<!--[if mso]><a href="{{v}}" title="{{v}}">{{v}}</a><![endif]--><p>x</p><!--[if !mso]><!--><p>{{v}}</p><!--<![endif]-->`,
	`<script type="application/ld+json">{"a":"{{v}}","b":{{v}}}</script><p>y</p>`,
	`<table><tr><td background="{{v}}">{{v}}</td></tr></table><form action="{{v}}"><input value="{{v}}"></form>`,
	`a < b {{v}} > c & {{v}}; <br/>{{v}}`,
	`<a href='/{{v}}' title=plain data-url="{{v}}">q</a><a HREF="{{v}}?x={{v}}">r</a>`,
}

// skeleton is the document without texts and values: its elements, their
// attributes' names and the scheme of each link.
func skeleton(t *testing.T, doc string) string {
	root, err := html.Parse(strings.NewReader(doc))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		switch n.Type {
		case html.ElementNode:
			b.WriteString("<" + n.Data)
			for _, a := range n.Attr {
				b.WriteString(" " + a.Key)
				switch a.Key {
				case "href", "src", "action", "background":
					checkLink(t, doc, a.Val)
				}
			}
			b.WriteString(">")
		case html.CommentNode:
			b.WriteString("<!>")
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
		if n.Type == html.ElementNode {
			b.WriteString("</>")
		}
	}
	walk(root)
	return b.String()
}

func checkLink(t *testing.T, doc, link string) {
	// As browsers read it: control characters and white space around and in it are nothing.
	link = strings.TrimFunc(link, func(r rune) bool { return r <= ' ' })
	link = strings.NewReplacer("\t", "", "\r", "", "\n", "").Replace(link)
	i := strings.IndexAny(link, ":/?#")
	if i < 0 || link[i] != ':' {
		return
	}
	switch strings.ToLower(link[:i]) {
	case "http", "https", "mailto", "tel", "sms":
	default:
		t.Fatalf("the link %q runs or leaves: %s", link, doc)
	}
	if u, err := url.Parse(link); err == nil && strings.HasPrefix(doc, `<a href="https://e.com/`) && u.Scheme == "https" && u.Host != "" && strings.Contains(link, "/?a=") && u.Host != "e.com" {
		t.Fatalf("the link %q goes elsewhere", link)
	}
}

// FuzzHTML: no value injects markup, an attribute or a link that runs code.
func FuzzHTML(f *testing.F) {
	for _, v := range []string{
		"", "a", "<script>alert(1)</script>", `" onmouseover="x`, "' onx='", "javascript:alert(1)", "JaVa\tScript:x", "\x01javascript:x",
		"-->", "--!>", "->", ">", "]]>", "</style><b>", "</title><b>", "</script><b>", "&#106;avascript:x", "data:text/html,x",
		"//evil", "\\\\evil", "`", "{{v}}", "\x00", "\xff<", "&lt;", "url(x)", "expression(1)", "#106;", "x58;",
	} {
		f.Add(v)
	}
	tpls := make([]*Template, len(places))
	want := make([]string, len(places))
	for i, text := range places {
		tpl, err := Parse(text, HTML)
		if err != nil {
			f.Fatalf("%s: %v", text, err)
		}
		tpls[i] = tpl
	}
	f.Fuzz(func(t *testing.T, v string) {
		if len(v) > 4096 {
			t.Skip()
		}
		for i, tpl := range tpls {
			if want[i] == "" {
				plain, err := tpl.Render(func([]string) (string, bool) { return "plain", true })
				if err != nil {
					t.Fatal(err)
				}
				want[i] = skeleton(t, plain)
			}
			out, err := tpl.Render(func([]string) (string, bool) { return v, true })
			if err != nil {
				t.Fatal(err)
			}
			if got := skeleton(t, out); got != want[i] {
				t.Fatalf("%q changed the structure of %s\n got %s\nwant %s\n out %s", v, places[i], got, want[i], out)
			}
		}
	})
}

// FuzzParse: any text is parsed or refused with a place inside of it; what was
// parsed renders, and in HTML no value changes the author's structure where
// the author wrote no structure that depends on text.
func FuzzParse(f *testing.F) {
	for _, s := range places {
		f.Add(s, byte(HTML))
	}
	for _, s := range []string{"{{a", `{{a|"b`, `{{a|default:"b"}}`, "{{{", "}}{{", `{"a":"{{b}}"}`, "{{a.b.c}}", "{{\"{{\"}}", "<!--[if", "<a href={{"} {
		for m := Text; m <= Target; m++ {
			f.Add(s, byte(m))
		}
	}
	f.Fuzz(func(t *testing.T, text string, mode byte) {
		tpl, err := Parse(text, Mode(mode))
		if err != nil {
			if e, ok := IsSyntax(err); ok && (e.Offset < 0 || e.Offset > len(text) || e.Line < 1 || e.Column < 1 || e.Reason == "") {
				t.Fatalf("%+v", e)
			}
			return
		}
		if out, err := tpl.Render(nil); err != nil && err != ErrTooLarge {
			t.Fatal(err)
		} else if tpl.Static() && out != text {
			t.Fatalf("a text without tags changed: %q", out)
		}
	})
}
