package text

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/messaging/whatsapp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type provider struct {
	*httptest.Server
	last   *http.Request
	body   string
	status int
	answer string
}

func newProvider(t *testing.T) *provider {
	p := &provider{status: 201, answer: `{"sid":"SM1","status":"queued"}`}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		p.last, p.body = r, string(b)
		w.Header().Set("Retry-After", "11")
		w.WriteHeader(p.status)
		io.WriteString(w, p.answer)
	}))
	t.Cleanup(p.Close)
	return p
}

// sender points a preset at the test's provider.
func (p *provider) sender(t *testing.T, c Config) *Sender {
	t.Helper()
	u, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	c.URL = p.URL + u.Path
	s, err := New(c, Options{AllowPrivate: true, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func twilio(t *testing.T, from string, whatsapp bool) Config {
	t.Helper()
	c, err := Twilio("AC0123", "tok", from, "", whatsapp)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const evil = "Hi \"Ada\" & Bob\nTo=+1&Body=x {{from}} \\ \u2028 ü"

func TestTwilio(t *testing.T) {
	p := newProvider(t)
	r := p.sender(t, twilio(t, "+15550001111", false)).Send(t.Context(), &Message{To: "+491701234567", Body: evil, ID: "snd_1"})
	if !r.OK() || r.ProviderID != "SM1" {
		t.Fatalf("%+v", r)
	}
	form, err := url.ParseQuery(p.body)
	if err != nil || len(form) != 3 || form.Get("To") != "+491701234567" || form.Get("From") != "+15550001111" || form.Get("Body") != evil {
		t.Errorf("%v, %v", form, err)
	}
	if user, pass, _ := p.last.BasicAuth(); user != "AC0123" || pass != "tok" || p.last.URL.Path != "/2010-04-01/Accounts/AC0123/Messages.json" {
		t.Errorf("%s %s %s", user, pass, p.last.URL.Path)
	}
	p.sender(t, twilio(t, "+15550001111", true)).Send(t.Context(), &Message{To: "+491701234567", Body: "x", MediaURL: "https://example.com/a.png"})
	if form, _ = url.ParseQuery(p.body); form.Get("To") != "whatsapp:+491701234567" || form.Get("From") != "whatsapp:+15550001111" || form.Get("MediaUrl") == "" {
		t.Errorf("%v", form)
	}
	// The parameter is that of the sender that is used: a message's own, or the provider's.
	const service = "MG0123456789abcdef0123456789abcdef"
	for _, c := range []struct {
		provider, own string
		whatsapp      bool
		name, value   string
	}{
		{service, "", false, "MessagingServiceSid", service},
		{service, "Shop", false, "From", "Shop"},
		{service, "MGM Resorts", false, "From", "MGM Resorts"},
		{"+15550001111", service, false, "MessagingServiceSid", service},
		{"+15550001111", "Shop", false, "From", "Shop"},
		{service, "", true, "MessagingServiceSid", service},
		{service, "+15550002222", true, "From", "whatsapp:+15550002222"},
		{"+15550001111", service, true, "MessagingServiceSid", service},
		{"whatsapp:+15550001111", "", true, "From", "whatsapp:+15550001111"},
		{service, "whatsapp:+15550002222", true, "From", "whatsapp:+15550002222"},
	} {
		p.sender(t, twilio(t, c.provider, c.whatsapp)).Send(t.Context(), &Message{To: "+491701234567", From: c.own, Body: "x"})
		if form, _ = url.ParseQuery(p.body); form.Get(c.name) != c.value || form.Has("From") == form.Has("MessagingServiceSid") {
			t.Errorf("%+v: %v", c, form)
		}
	}
}

func TestAnswers(t *testing.T) {
	p := newProvider(t)
	s := p.sender(t, twilio(t, "+15550001111", false))
	for _, c := range []struct {
		status int
		answer string
		class  outcome.Class
		hard   bool
		code   string
	}{
		{400, `{"code":21211,"message":"says the provider"}`, outcome.Permanent, true, "21211"},
		{400, `{"code":21610,"message":"says the provider"}`, outcome.Permanent, false, "21610"},
		{400, `{"code":21606,"message":"says the provider"}`, outcome.Refused, false, "21606"},
		{400, `{"code":99999,"message":"says the provider"}`, outcome.Permanent, false, "99999"},
		{401, `{"code":20003,"message":"says the provider"}`, outcome.Refused, false, "20003"},
		{403, `says the provider`, outcome.Refused, false, "403"},
		{404, `says the provider`, outcome.Refused, false, "404"},
		{302, `says the provider`, outcome.Refused, false, "302"},
		{429, `{"code":20429,"message":"says the provider"}`, outcome.Temporary, false, "20429"},
		{500, `says the provider`, outcome.Temporary, false, "500"},
		{503, `{"message":"says the provider"}`, outcome.Temporary, false, "503"},
		{200, `{"code":30001,"message":"says the provider"}`, outcome.Permanent, false, "30001"},
		{200, `{"code":0,"message":"says the provider"}`, outcome.Accepted, false, "0"},
		{200, `{"code":null,"message":"says the provider"}`, outcome.Accepted, false, "200"},
	} {
		p.status, p.answer = c.status, c.answer
		r := s.Send(t.Context(), &Message{To: "+491701234567", Body: "x"})
		if r.Class != c.class || r.Hard != c.hard || r.Code != c.code || r.Text != "says the provider" || (r.RetryAfter == 11*time.Second) != (c.class == outcome.Temporary) || r.OptedOut != (c.code == "21610") {
			t.Errorf("%d %s: %+v", c.status, c.answer, r)
		}
	}
}

func TestWhatsAppCloudBodyIsJSONWhateverTheText(t *testing.T) {
	p := newProvider(t)
	c, err := WhatsAppCloud("v21.0", "1234", "tok", "")
	if err != nil {
		t.Fatal(err)
	}
	p.status, p.answer = 200, `{"messages":[{"id":"wamid.1"}]}`
	s := p.sender(t, c)
	for _, body := range []string{evil, `"},"to":"+1`, "\\", "1", "true"} {
		r := s.Send(t.Context(), &Message{To: "+491701234567", Body: body})
		if !r.OK() || r.ProviderID != "wamid.1" {
			t.Fatalf("%+v", r)
		}
		var got struct {
			To   string
			Text struct{ Body string }
		}
		if err := json.Unmarshal([]byte(p.body), &got); err != nil || got.Text.Body != body || got.To != "+491701234567" {
			t.Errorf("%q: %s, %v", body, p.body, err)
		}
	}
	if p.last.Header.Get("Authorization") != "Bearer tok" || p.last.URL.Path != "/v21.0/1234/messages" {
		t.Errorf("%v", p.last.Header)
	}
	p.status, p.answer = 400, `{"error":{"code":131026,"message":"Message undeliverable"}}`
	if r := s.Send(t.Context(), &Message{To: "+491701234567", Body: "x"}); r.Class != outcome.Permanent || r.Code != "131026" {
		t.Errorf("%+v", r)
	}
	for _, code := range []string{"131037", "133010"} { // the account's display name, its number
		p.answer = `{"error":{"code":` + code + `,"message":"says Meta"}}`
		if r := s.Send(t.Context(), &Message{To: "+491701234567", Body: "x"}); r.Class != outcome.Refused || r.Code != code {
			t.Errorf("%+v", r)
		}
	}
}

func TestGenericProvider(t *testing.T) {
	p := newProvider(t)
	c, err := ParseConfig([]byte(`{"url":"https://im.example.com/v1/{{vars.room}}/send?key={{id}}","method":"PUT","format":"json","any_address":true,
		"headers":[{"name":"X-Api-Key","value":"k"},{"name":"Idempotency-Key","value":"{{id}}"}],
		"body":"{\"to\":\"{{to}}\",\"text\":\"{{body}}\",\"n\":{{vars.n}},\"from\":\"{{from}}\"}","from":"Muster","id_path":"result.ids.1"}`))
	if err != nil {
		t.Fatal(err)
	}
	c.URL = strings.Replace(c.URL, "https://im.example.com", p.URL, 1)
	s, err := New(c, Options{AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p.status, p.answer = 200, `{"result":{"ids":["a",17]}}`
	r := s.Send(t.Context(), &Message{To: "@ada", Body: "x", ID: "snd 1\r\nX-Evil: y", Vars: map[string]string{"room": "a b", "n": "5"}})
	if !r.OK() || r.ProviderID != "17" {
		t.Fatalf("%+v", r)
	}
	if p.last.Method != "PUT" || p.last.URL.EscapedPath() != "/v1/a%20b/send" || p.last.URL.Query().Get("key") != "snd 1\r\nX-Evil: y" ||
		p.last.Header.Get("X-Api-Key") != "k" || p.last.Header.Get("X-Evil") != "" || p.last.Header.Get("Idempotency-Key") != "snd 1  X-Evil: y" {
		t.Errorf("%s %v", p.last.URL, p.last.Header)
	}
	if p.body != `{"to":"@ada","text":"x","n": 5 ,"from":"Muster"}` {
		t.Error(p.body)
	}
}

func TestLostAnswerIsAmbiguousAndUnreachableTemporary(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c, err := ln.Accept(); err == nil {
			if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				io.Copy(io.Discard, req.Body)
			}
			c.Close()
		}
	}()
	c := twilio(t, "+15550001111", false)
	c.URL = "http://" + ln.Addr().String() + "/x"
	s, err := New(c, Options{AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m := &Message{To: "+491701234567", Body: "x"}
	if r := s.Send(t.Context(), m); r.Class != outcome.Ambiguous {
		t.Errorf("%+v", r)
	}
	<-done
	ln.Close()
	if r := s.Send(t.Context(), m); r.Class != outcome.Temporary {
		t.Errorf("%+v", r)
	}
	c.URL = "https://localhost:1/x"
	guarded, err := New(c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer guarded.Close()
	if r := guarded.Send(t.Context(), m); r.Class != outcome.Refused || r.Code != "private_address" {
		t.Errorf("%+v", r)
	}
}

func TestCheckNamesTheField(t *testing.T) {
	s, err := New(twilio(t, "+15550001111", false), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for word, m := range map[string]*Message{
		"body is empty":     {To: "+491701234567"},
		"UTF-8":             {To: "+491701234567", Body: "\xff"},
		"at most 1600":      {To: "+491701234567", Body: strings.Repeat("ä", 1601)},
		"media_url":         {To: "+491701234567", Body: "x", MediaURL: "http://x"},
		"international":     {To: "0170123456", Body: "x"},
		"phone number":      {To: "+49170 1234567", Body: "x"},
		"for example":       {To: "+1234567890123456", Body: "x"},
		"to must be":        {To: "+0491701234567", Body: "x"},
		"from, id or vars ": {To: "+491701234567", Body: "x", ID: strings.Repeat("x", 257)},
	} {
		err := s.Check(m)
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", word, err)
		}
		if r := s.Send(t.Context(), m); r.Class != outcome.Permanent || r.Hard != (r.Code == "invalid_recipient") {
			t.Errorf("%s: %+v", word, r)
		}
	}
}

func TestConfigNamesTheField(t *testing.T) {
	for word, change := range map[string]func(*Config){
		"url must":        func(c *Config) { c.URL = "http://example.com" },
		"without a passw": func(c *Config) { c.URL = "https://u:p@example.com/" },
		"behind the host": func(c *Config) { c.URL = "https://{{to}}.example.com/" },
		"url: ":           func(c *Config) { c.URL = "https://example.com/{{to" },
		"method":          func(c *Config) { c.Method = "GET" },
		"either":          func(c *Config) { c.Token = "x" },
		"control":         func(c *Config) { c.Password = "a\r\nb" },
		"format json":     func(c *Config) { c.Format = JSON },
		"format form":     func(c *Config) { c.Form = nil },
		"format \"xml\"":  func(c *Config) { c.Format = "xml" },
		"form: A":         func(c *Config) { c.Form = []Field{{"A", "{{"}} },
		"header name":     func(c *Config) { c.Headers = []Field{{"A b", "x"}} },
		"set by":          func(c *Config) { c.Headers = []Field{{"host", "x"}} },
		"max_body":        func(c *Config) { c.MaxBody = -1 },
		"code 5":          func(c *Config) { c.Codes = map[string]string{"5": "ambiguous"} },
	} {
		c := twilio(t, "+15550001111", false)
		change(&c)
		if _, err := New(c, Options{}); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", word, err)
		}
	}
	for _, err := range []error{
		second(Twilio("", "t", "f", "", false)), second(Twilio("../x", "t", "f", "", false)), second(Twilio("AC1", "", "f", "", false)),
		second(Twilio("AC1", "t", "", "", false)), second(Twilio("AC1", "t", "+0123456789", "", false)), second(Twilio("AC1", "t", "a name of some length", "", false)), second(Twilio("AC1", "t", "+4930&Body=x", "", false)),
		second(WhatsAppCloud("v1", "x/y", "t", "")), second(WhatsAppCloud("../", "1", "t", "")), second(ParseConfig([]byte("["))),
	} {
		if err == nil {
			t.Error("a wrong setting was taken")
		}
	}
}

// TestTwilioSenders: each kind of sender that Twilio has is taken.
func TestTwilioSenders(t *testing.T) {
	for _, from := range []string{"+15005550006", "whatsapp:+15005550006", "80808", "Shop 24", "MG" + strings.Repeat("0", 32)} {
		twilio(t, from, true)
	}
}

func second(_ Config, err error) error { return err }

func TestSegments(t *testing.T) {
	r := strings.Repeat
	for _, c := range []struct {
		body     string
		encoding Encoding
		units, n int
	}{
		{"", GSM7, 0, 0},
		{"hello", GSM7, 5, 1},
		{r("a", 160), GSM7, 160, 1},
		{r("a", 161), GSM7, 161, 2},
		{r("a", 306), GSM7, 306, 2},
		{r("a", 307), GSM7, 307, 3},
		{"€[]{}\\^~|", GSM7, 18, 1},
		{r("€", 80), GSM7, 160, 1},
		{r("€", 81), GSM7, 162, 2},
		{r("a", 152) + "€" + r("a", 152), GSM7, 306, 3}, // € does not fit behind 152
		{"Grüße, ÄÖÑ Ç è ò", GSM7, 16, 1},
		{"ç", UCS2, 1, 1}, // only the capital is in the alphabet
		{"`", UCS2, 1, 1},
		{"\t", UCS2, 1, 1},
		{r("я", 70), UCS2, 70, 1},
		{r("я", 71), UCS2, 71, 2},
		{r("😀", 35), UCS2, 70, 1},
		{r("😀", 67), UCS2, 134, 3}, // 33 to a segment, none is split
	} {
		got := Segments(c.body)
		if got.Encoding != c.encoding || got.Units != c.units || got.Segments != c.n {
			t.Errorf("%.20q: %+v, want %s %d %d", c.body, got, c.encoding, c.units, c.n)
		}
	}
	if n := len([]rune(gsmBasic)); n != 127 { // and the escape
		t.Errorf("the alphabet has %d characters", n)
	}
}

// Templates have the forms that Meta and Twilio give them.
func TestTemplatesAsProvidersTakeThem(t *testing.T) {
	t.Parallel()
	all := &whatsapp.Template{
		Name: "invoice", Language: "de", Named: map[string]string{"name": "Ada", "code": "A \"1\""},
		HeaderType: whatsapp.HeaderDocument, Header: "https://x.example/1", HeaderFilename: "1.pdf",
		Buttons: []whatsapp.Button{{Type: whatsapp.ButtonURL, Index: 2, Value: "orders/1"}, {Type: whatsapp.ButtonQuickReply, Value: "yes"}},
	}
	for _, c := range []struct {
		t    *whatsapp.Template
		want string // the components
	}{
		{&whatsapp.Template{}, `null`},
		{&whatsapp.Template{Parameters: []string{"Ada", "2"}, Header: "Sale"}, `[{"parameters":[{"text":"Sale","type":"text"}],"type":"header"},{"parameters":[{"text":"Ada","type":"text"},{"text":"2","type":"text"}],"type":"body"}]`},
		{&whatsapp.Template{Header: "https://x.example/a.png"}, `[{"parameters":[{"image":{"link":"https://x.example/a.png"},"type":"image"}],"type":"header"}]`},
		{&whatsapp.Template{Header: "https://x.example", HeaderType: whatsapp.HeaderText}, `[{"parameters":[{"text":"https://x.example","type":"text"}],"type":"header"}]`},
		{&whatsapp.Template{Header: "https://x.example/a.mp4", HeaderType: whatsapp.HeaderVideo}, `[{"parameters":[{"type":"video","video":{"link":"https://x.example/a.mp4"}}],"type":"header"}]`},
		{&whatsapp.Template{Header: "Sale", HeaderName: "what", Named: map[string]string{"name": "Ada"}}, `[{"parameters":[{"parameter_name":"what","text":"Sale","type":"text"}],"type":"header"},{"parameters":[{"parameter_name":"name","text":"Ada","type":"text"}],"type":"body"}]`},
		{&whatsapp.Template{HeaderType: whatsapp.HeaderLocation, Location: &whatsapp.Location{Latitude: "52.5", Longitude: "13.4", Name: "Shop", Address: "A 1"}},
			`[{"parameters":[{"location":{"address":"A 1","latitude":"52.5","longitude":"13.4","name":"Shop"},"type":"location"}],"type":"header"}]`},
		{&whatsapp.Template{HeaderType: whatsapp.HeaderLocation, Location: &whatsapp.Location{Latitude: "1", Longitude: "2"}}, `[{"parameters":[{"location":{"latitude":"1","longitude":"2"},"type":"location"}],"type":"header"}]`},
		{&whatsapp.Template{Buttons: []whatsapp.Button{{Type: whatsapp.ButtonCopyCode, Index: 1, Value: "SALE25"}}}, `[{"index":"1","parameters":[{"coupon_code":"SALE25","type":"coupon_code"}],"sub_type":"copy_code","type":"button"}]`},
		{all, `[{"parameters":[{"document":{"filename":"1.pdf","link":"https://x.example/1"},"type":"document"}],"type":"header"},` +
			`{"parameters":[{"parameter_name":"code","text":"A \"1\"","type":"text"},{"parameter_name":"name","text":"Ada","type":"text"}],"type":"body"},` +
			`{"index":"2","parameters":[{"text":"orders/1","type":"text"}],"sub_type":"url","type":"button"},{"index":"0","parameters":[{"payload":"yes","type":"payload"}],"sub_type":"quick_reply","type":"button"}]`},
	} {
		var got struct {
			Template struct{ Components any }
		}
		if err := json.Unmarshal((&Message{Template: c.t}).cloudBody(), &got); err != nil {
			t.Fatal(err)
		}
		if b, _ := json.Marshal(got.Template.Components); string(b) != c.want {
			t.Errorf("%+v:\n%s\n%s", c.t, b, c.want)
		}
	}
	for _, c := range []struct {
		t    *whatsapp.Template
		want string
	}{
		{&whatsapp.Template{}, ``},
		{&whatsapp.Template{Parameters: []string{"Ada"}, Header: "Sale"}, `{"1":"Sale","2":"Ada"}`},
		{&whatsapp.Template{Named: map[string]string{"name": "Ada"}, Header: "Sale", HeaderName: "what"}, `{"name":"Ada","what":"Sale"}`},
	} {
		form := url.Values{"Body": {"b"}}
		(&Message{Template: c.t}).contentForm(form)
		if form.Get("ContentVariables") != c.want || form.Has("Body") {
			t.Errorf("%+v: %v", c.t, form)
		}
	}
}

// What a provider refuses of a template is found before it is called, by the field.
func TestCheckTemplate(t *testing.T) {
	t.Parallel()
	base := whatsapp.Template{Name: "HX0123", Language: "en"}
	with := func(change func(*whatsapp.Template)) *whatsapp.Template {
		c := base
		change(&c)
		return &c
	}
	button := []whatsapp.Button{{Type: whatsapp.ButtonURL, Value: "x"}}
	place := &whatsapp.Location{Latitude: "52.5", Longitude: "13.4"}
	for _, c := range []struct {
		templates, want string
		t               *whatsapp.Template
	}{
		{CloudTemplates, "", &base},
		{TwilioContent, "", with(func(t *whatsapp.Template) { t.Language = "" })},
		{"", "template", &base},
		{CloudTemplates, "", with(func(t *whatsapp.Template) { t.Name = "sale" })},
		{TwilioContent, "template", with(func(t *whatsapp.Template) { t.Name = "sale" })},
		{CloudTemplates, "template", with(func(t *whatsapp.Template) { t.Name = "" })},
		{CloudTemplates, "language", with(func(t *whatsapp.Template) { t.Language = "" })},
		{CloudTemplates, "parameters[1]", with(func(t *whatsapp.Template) { t.Parameters = []string{"a", " "} })},
		{CloudTemplates, "parameters[0]", with(func(t *whatsapp.Template) { t.Parameters = []string{"a\nb"} })},
		{CloudTemplates, "parameters[0]", with(func(t *whatsapp.Template) { t.Parameters = []string{"a\tb"} })},
		{CloudTemplates, "parameters[0]", with(func(t *whatsapp.Template) { t.Parameters = []string{"a     b"} })}, // 5 spaces
		{CloudTemplates, "", with(func(t *whatsapp.Template) { t.Parameters = []string{"a    b"} })},               // 4 are taken
		{CloudTemplates, "parameters[0]", with(func(t *whatsapp.Template) { t.Parameters = []string{strings.Repeat("x", 1025)} })},
		{CloudTemplates, "named_parameters.name", with(func(t *whatsapp.Template) { t.Named = map[string]string{"name": "a\nb"} })},
		{CloudTemplates, "header", with(func(t *whatsapp.Template) { t.Header = "a\nb" })},
		{CloudTemplates, "header", with(func(t *whatsapp.Template) { t.Header, t.HeaderType = "{{x}}", whatsapp.HeaderVideo })},
		{CloudTemplates, "header_name", with(func(t *whatsapp.Template) { t.Header, t.Named = "a", map[string]string{"name": "a"} })},
		{CloudTemplates, "", with(func(t *whatsapp.Template) {
			t.Header, t.Named = "https://x.example/a.png", map[string]string{"name": "a"}
		})},
		{CloudTemplates, "", with(func(t *whatsapp.Template) { t.Buttons = button })},
		{TwilioContent, "buttons", with(func(t *whatsapp.Template) { t.Buttons = button })},
		{TwilioContent, "header_name", with(func(t *whatsapp.Template) {
			t.Header, t.Named = "https://x.example/a.png", map[string]string{"name": "a"}
		})},
		{TwilioContent, "", with(func(t *whatsapp.Template) {
			t.Header, t.HeaderName, t.Named = "https://x.example/a.png", "file", map[string]string{"name": "a"}
		})},
		{TwilioContent, "header_name", with(func(t *whatsapp.Template) { t.Header, t.HeaderName = "a", "file" })},
		{CloudTemplates, "header_name", with(func(t *whatsapp.Template) {
			t.Header, t.HeaderName, t.Named = "https://x.example/a.png", "file", map[string]string{"name": "a"}
		})},
		{CloudTemplates, "", with(func(t *whatsapp.Template) { t.Header, t.HeaderName = "a", "what" })},
		{CloudTemplates, "", with(func(t *whatsapp.Template) { t.HeaderType, t.Location = whatsapp.HeaderLocation, place })},
		{CloudTemplates, "header_location.name", with(func(t *whatsapp.Template) {
			t.HeaderType, t.Location = whatsapp.HeaderLocation, &whatsapp.Location{Latitude: "1", Longitude: "2", Name: "a\nb"}
		})},
		{TwilioContent, "header_location", with(func(t *whatsapp.Template) { t.HeaderType, t.Location = whatsapp.HeaderLocation, place })},
		{TwilioContent, "header_filename", with(func(t *whatsapp.Template) {
			t.Header, t.HeaderType, t.HeaderFilename = "https://x.example/a.pdf", whatsapp.HeaderDocument, "a.pdf"
		})},
	} {
		f := CheckTemplate(c.templates, c.t)
		if got := fmt.Sprint(f); f == nil && c.want != "" || f != nil && f.Field != c.want {
			t.Errorf("%s %+v: %s, want %q", c.templates, c.t, got, c.want)
		}
	}
}
