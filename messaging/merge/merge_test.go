package merge

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/clip"
)

func values(m map[string]string) Lookup {
	return func(path []string) (string, bool) {
		v, ok := m[strings.Join(path, ".")]
		return v, ok
	}
}

func render(t *testing.T, mode Mode, text string, m map[string]string) string {
	t.Helper()
	tpl, err := Parse(text, mode)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	got, err := tpl.Render(values(m))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return got
}

func TestGrammar(t *testing.T) {
	m := map[string]string{
		"first_name": "Ada", "attributes.plan": "pro", "geo.city": "Köln", "items.0.sku": "A-1", "blank": "  ", "straße": "x",
	}
	for text, want := range map[string]string{
		"":                                 "",
		"no tags { } }} {":                 "no tags { } }} {",
		"Hi {{first_name}}!":               "Hi Ada!",
		"{{  first_name  }}":               "Ada",
		"{{\u00a0first_name\u00a0}}":       "Ada",
		"{{attributes.plan}}/{{geo.city}}": "pro/Köln",
		"{{items.0.sku}}":                  "A-1",
		"{{straße}}":                       "x",
		"[{{missing}}]":                    "[]",
		`{{missing | default: "friend"}}`:  "friend",
		`{{missing|default:'fri"end'}}`:    `fri"end`,
		`{{missing | default: friend of}}`: "friend of",
		"{{missing|friend}}":               "friend",
		"{{missing | Default Corp}}":       "Default Corp",
		`{{missing | "a\"b\\c\n"}}`:        `a"b\c\n`,
		`{{missing | "}} {{"}}`:            "}} {{",
		`{{blank | default: "friend"}}`:    "friend",
		`{{first_name | default: "f"}}`:    "Ada",
		`{{missing | default: ""}}`:        "",
		`{{"{{"}}x{{'}}'}}`:                "{{x}}",
		"{{a}}{{first_name}}{{b}}":         "Ada",
	} {
		if got := render(t, Text, text, m); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestSyntaxErrorsNamePlaceAndRemedy(t *testing.T) {
	for _, c := range []struct {
		mode         Mode
		text         string
		line, column int
		remedy       string
	}{
		{Text, "{{first_name", 1, 1, "write }}"},
		{Text, "ab\nÄö {{first name}}", 2, 4, "not a name"},
		{Text, "{{}}", 1, 1, "empty"},
		{Text, "{{ }}", 1, 1, "empty"},
		{Text, "{{{a}}}", 1, 1, "two braces"},
		{Text, "{{a {{b}}", 1, 1, "not closed"},
		{Text, "{{a|}}", 1, 1, "default value"},
		{Text, "{{a|default:}}", 1, 1, "default needs a value"},
		{Text, "{{a|default}}", 1, 1, "default needs a value"},
		{Text, `{{a|"b}}`, 1, 1, "quote"},
		{Text, `{{a|"b" c}}`, 1, 1, "closing }}"},
		{Text, `{{a|b|c}}`, 1, 1, "quotes"},
		{Text, "{{a..b}}", 1, 1, "not a name"},
		{Text, "{{1a}}", 1, 1, "not a name"},
		{Text, "{{#if x}}", 1, 1, "not a name"},
		{Text, "{{\xff}}", 1, 1, "not a name"},
		{Text, "{{" + strings.Repeat("a", 300) + "}}", 1, 1, "at most 256"},
		{HTML, "<p>{{<b>a</b>}}", 1, 4, "without formatting"},
		{HTML, "<a href={{x}}>", 1, 9, "in quotes"},
		{HTML, "<a href=x{{x}}>", 1, 10, "in quotes"},
		{HTML, "<{{x}}>", 1, 2, "&lt;"},
		{HTML, "</{{x}}>", 1, 3, "&lt;"},
		{HTML, "<!{{x}}>", 1, 3, "&lt;"},
		{HTML, "<!-{{x}}>", 1, 4, "&lt;"},
		{HTML, "<a {{x}}>", 1, 4, "quoted attribute"},
		{HTML, "<a b{{x}}='y'>", 1, 5, "quoted attribute"},
		{HTML, "<a b {{x}}='y'>", 1, 6, "quoted attribute"},
		{HTML, `<a onclick="f('{{x}}')">`, 1, 16, "runs"},
		{HTML, `<a href="javascript:f('{{x}}')">`, 1, 24, "https"},
		{HTML, `<a href="JAVA&#115;cript&colon;f('{{x}}')">`, 1, 35, "https"},
		{HTML, `<a href="{{x}}://y">`, 1, 15, "https://"},
		{HTML, `<script>var a = "{{x}}"</script>`, 1, 18, "ld+json"},
		{HTML, `<script src="{{x}}"></script>`, 1, 14, "runs"},
		{HTML, `<base href="{{x}}">`, 1, 13, "runs"},
		{HTML, `<meta http-equiv=refresh content="0;url={{x}}">`, 1, 41, "meta"},
		{HTML, `<title></tit{{x}}le>`, 1, 13, "&lt;"},
		{HTML, `<xmp>{{x}}</xmp>`, 1, 6, "ordinary text"},
		{HTML, `<iframe srcdoc="{{x}}">`, 1, 17, "runs"},
		{JSON, `{"a":"\{{x}}"}`, 1, 8, "backslash"},
		{URL, `javascript:{{x}}`, 1, 12, "https"},
	} {
		_, err := Parse(c.text, c.mode)
		e, ok := IsSyntax(err)
		if !ok {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if e.Line != c.line || e.Column != c.column || !strings.Contains(e.Error(), c.remedy) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
	if _, err := Parse("x", 0); err == nil {
		t.Error("mode 0 was taken")
	}
}

func TestHTMLContexts(t *testing.T) {
	m := map[string]string{
		"x": `<b>"&'` + "`", "js": " java\nscript:alert(1)", "url": "https://e.com/a b?c=d&e='f'", "mail": "a+b@c.de?bcc=x&y", "rel": "/p/q",
		"css": `red;} x:url("y")/*`, "scheme": "javascript", "colon": "x:alert(1)", "dash": "-->",
	}
	for text, want := range map[string]string{
		"<p>{{x}}":                        "<p>&lt;b&gt;&#34;&amp;&#39;&#96;",
		`5 < 6 {{x}}`:                     "5 < 6 &lt;b&gt;&#34;&amp;&#39;&#96;",
		`<p title="{{x}}">`:               `<p title="&lt;b&gt;&#34;&amp;&#39;&#96;">`,
		`<p title='a{{x}}'>`:              `<p title='a&lt;b&gt;&#34;&amp;&#39;&#96;'>`,
		`<a href="{{js}}">`:               `<a href="#">`,
		`<a href=" {{js}}">`:              `<a href=" #">`,
		`<A HREF = "{{js}}">`:             `<A HREF = "#">`,
		`<a href="{{url}}">`:              `<a href="https://e.com/a%20b?c=d&amp;e=%27f%27">`,
		`<a href="{{rel}}">`:              `<a href="/p/q">`,
		`<a href="{{scheme}}{{colon}}">`:  `<a href="javascriptx%3Aalert%281%29">`,
		`<a href="java{{colon}}">`:        `<a href="javax%3Aalert%281%29">`,
		`<a href="{{missing}}{{colon}}">`: `<a href="x%3Aalert%281%29">`,
		`<a href="https://e.com/{{rel}}?e={{mail}}#{{x}}">`:              `<a href="https://e.com//p/q?e=a%2Bb%40c.de%3Fbcc%3Dx%26y#%3Cb%3E%22%26%27%60">`,
		`<a href="{{url}}&amp;m={{mail}}">`:                              `<a href="https://e.com/a%20b?c=d&amp;e=%27f%27&amp;m=a%2Bb%40c.de%3Fbcc%3Dx%26y">`,
		`<a href="mailto:{{mail}}">`:                                     `<a href="mailto:a+b@c.de%3Fbcc%3Dx%26y">`,
		`<img src="{{url}}" alt="{{x}}">`:                                `<img src="https://e.com/a%20b?c=d&amp;e=%27f%27" alt="&lt;b&gt;&#34;&amp;&#39;&#96;">`,
		`<p style="color:{{css}}">`:                                      `<p style="color:red xurly">`,
		`<p style="background:url('{{url}}')">`:                          `<p style="background:url('https://e.com/a%20b?c=d&amp;e=%27f%27')">`,
		`<p style="background:url({{js}})">`:                             `<p style="background:url(#)">`,
		`<style>a{color:{{css}}}</style>{{x}}`:                           `<style>a{color:red xurly}</style>&lt;b&gt;&#34;&amp;&#39;&#96;`,
		`<title>a < b {{x}}</title>`:                                     `<title>a < b &lt;b&gt;&#34;&amp;&#39;&#96;</title>`,
		`<!-- {{dash}} -->{{x}}`:                                         `<!--   &gt; -->&lt;b&gt;&#34;&amp;&#39;&#96;`,
		`<!--[if mso]><a href="{{js}}">{{x}}</a><![endif]-->{{x}}`:       `<!--[if mso]><a href="#">&lt;b&gt;&#34;&amp;&#39;&#96;</a><![endif]-->&lt;b&gt;&#34;&amp;&#39;&#96;`,
		`<!--[if !mso]><!--><a href="{{js}}"><!--<![endif]-->`:           `<!--[if !mso]><!--><a href="#"><!--<![endif]-->`,
		`<script type="application/ld+json">{"a":"{{x}}"}</script>{{x}}`: `<script type="application/ld+json">{"a":"\u003Cb\u003E\"\u0026'` + "`" + `"}</script>&lt;b&gt;&#34;&amp;&#39;&#96;`,
		`{{missing | default: &quot;<&quot;}}`:                           ``, // markup inside of a tag, see below
		`{{missing | default: &quot;&lt;b&quot;}}`:                       `&lt;b`,
		`<br/>{{x}}<hr / >{{rel}}`:                                       `<br/>&lt;b&gt;&#34;&amp;&#39;&#96;<hr / >/p/q`,
	} {
		if strings.Contains(text, ";<&") {
			if _, err := Parse(text, HTML); err == nil {
				t.Errorf("%s was taken", text)
			}
			continue
		}
		if got := render(t, HTML, text, m); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestOtherModes(t *testing.T) {
	m := map[string]string{"x": "a\"b\\\r\n\x00<\u2028", "n": "-12.5e3", "t": "true", "o": `{"a":1}`, "js": "javascript:x", "u": "https://e.com/?a=b c", "bad": "\xff\xfe"}
	for _, c := range []struct {
		mode       Mode
		text, want string
	}{
		{Header, "Hi {{x}}!", "Hi a\"b\\   <!"},
		{Header, "{{bad}}", "\ufffd\ufffd"},
		{Text, "{{x}}", "a\"b\\\r\n<\u2028"},
		{JSON, `{"k":"{{x}}"}`, `{"k":"a\"b\\\r\n\u0000\u003C\u2028"}`},
		{JSON, `{"k":{{n}},"l":{{t}},"m":{{o}},"e":{{missing}}}`, `{"k": -12.5e3 ,"l": true ,"m":"{\"a\":1}","e":null}`},
		{JSON, `{"k":"\\{{n}}"}`, `{"k":"\\-12.5e3"}`},
		{JSON, `{"k":"{{q | default: \"a b\"}}"}`, `{"k":"a b"}`},
		{URL, "{{u}}", "https://e.com/?a=b%20c"},
		{URL, "{{js}}", "#"},
		{URL, "https://e.com/?q={{u}}&r={{n}}", "https://e.com/?q=https%3A%2F%2Fe.com%2F%3Fa%3Db%20c&r=-12.5e3"},
		{Target, "https://e.com/p/{{u}}/d?q={{u}}", "https://e.com/p/https%3A%2F%2Fe.com%2F%3Fa%3Db%20c/d?q=https%3A%2F%2Fe.com%2F%3Fa%3Db%20c"},
	} {
		if got := render(t, c.mode, c.text, m); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.text, got, c.want)
		}
	}
}

func TestBounds(t *testing.T) {
	if _, err := Parse(strings.Repeat("x", MaxTemplate+1), Text); err == nil {
		t.Error("a too long text was taken")
	}
	if _, err := Parse(strings.Repeat("{{a}}", MaxTags+1), Text); err == nil {
		t.Error("too many tags were taken")
	}
	tpl, err := Parse(strings.Repeat("{{a}}", 200), Text)
	if err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("é", MaxValue)
	got, err := tpl.AppendTo([]byte("kept"), func([]string) (string, bool) { return big, true })
	if !errors.Is(err, ErrTooLarge) || string(got) != "kept" {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	one, _ := Parse("{{a}}", Text)
	if got, err := one.Render(func([]string) (string, bool) { return "x" + big, true }); err != nil || len(got) != MaxValue-1 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestPathsAndNilLookup(t *testing.T) {
	tpl, err := Parse(`{{a.b}} {{"lit"}} {{c|d}}`, Text)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	tpl.Paths(func(p []string) { got = append(got, strings.Join(p, ".")) })
	if strings.Join(got, " ") != "a.b c" || tpl.Static() {
		t.Errorf("%v", got)
	}
	if s, err := tpl.Render(nil); err != nil || s != " lit d" {
		t.Errorf("%q, %v", s, err)
	}
}

func TestAppendToDoesNotAllocate(t *testing.T) {
	tpl, err := Parse(`<p>Hi {{first_name}}, <a href="https://e.com/?e={{email}}">x</a>`, HTML)
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 0, 4096)
	look := func(path []string) (string, bool) { return "Ada & <Bob>", true }
	if n := testing.AllocsPerRun(100, func() {
		dst, _ = tpl.AppendTo(dst[:0], look)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAppendTo(b *testing.B) {
	tpl, err := Parse(strings.Repeat(`<p style="color:#333">Hi {{first_name | default: "friend"}}, <a href="https://e.com/?e={{email}}">see</a></p>`, 20), HTML)
	if err != nil {
		b.Fatal(err)
	}
	dst := make([]byte, 0, 1<<16)
	look := func(path []string) (string, bool) { return "Ada & Bob", true }
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = tpl.AppendTo(dst[:0], look)
	}
	b.SetBytes(int64(len(dst)))
}

// FuzzJSON: no value leaves its string or its place, and what is read back is
// the value.
func FuzzJSON(f *testing.F) {
	for _, v := range []string{"", "a", `"`, `\`, `"},{"x":"`, "1", "true", "\u2028", "\x00", "1e999", "{}", "\xff", " 1 "} {
		f.Add(v)
	}
	tpl, err := Parse(`{"s":"a{{v}}b","v":{{v}},"l":["{{v}}",{{v}}]}`, JSON)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, v string) {
		out, err := tpl.Render(func([]string) (string, bool) { return v, true })
		if err != nil {
			t.Skip()
		}
		var got struct {
			S string
			V any
			L []any
		}
		d := json.NewDecoder(strings.NewReader(out))
		d.UseNumber()
		d.DisallowUnknownFields()
		if err := d.Decode(&got); err != nil {
			t.Fatalf("%q gives %s: %v", v, out, err)
		}
		if len(got.L) != 2 || !strings.HasPrefix(got.S, "a") || !strings.HasSuffix(got.S, "b") {
			t.Fatalf("%q gives %s", v, out)
		}
		switch got.V.(type) {
		case nil, bool, json.Number, string:
		default:
			t.Fatalf("%q became a %T", v, got.V)
		}
		if valid := []rune(clip.Text(v, MaxValue)); strings.TrimSpace(v) != "" && got.S != "a"+string(valid)+"b" {
			t.Fatalf("%q read back as %q", v, got.S)
		}
	})
}

func TestCheckFindsTagsThatNeverHaveAValue(t *testing.T) {
	known := Profile("unsubscribe_url")
	for text, want := range map[string]string{
		`{{first_name}} {{ attributes.plan }} {{geo.country}} {{unsubscribe_url}} {{"{{"}}`: "",
		`{{frist_name}}`:                  "{{frist_name}} is not a merge tag of this text. Did you mean {{first_name}}?",
		`{{FirstName}}`:                   "{{FirstName}} is not a merge tag of this text. Did you mean {{first_name}}?",
		`{{atributes.plan}}`:              "{{atributes.plan}} is not a merge tag of this text. Did you mean {{attributes.plan}}?",
		`{{frist_name | default: "you"}}`: "",
		`{{frist_name|you}}`:              "",
		`{{frist_name | default: ""}}`:    "",
		`{{attributes}}`:                  "{{attributes}} is not a merge tag of this text; write first_name,",
		`{{contact.first_name}}`:          "{{contact.first_name}} is not a merge tag of this text; write first_name,",
		`{{order}}`:                       `or give it a default: {{order | default: "…"}}`,
	} {
		tpl, err := Parse(text, Text)
		if err != nil {
			t.Fatal(err)
		}
		err = tpl.Check(known)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
