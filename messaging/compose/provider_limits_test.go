package compose

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/messaging/text"
	"github.com/musterhq/muster/messaging/whatsapp"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/view"
)

// TestProviderLimits: texts and templates that a provider would refuse are found before they are
// sent. Merge tags add nothing to the length of a text, and count as valid values in a template.
func TestProviderLimits(t *testing.T) {
	t.Parallel()
	sms := provider{channel: "sms", set: true}
	long := strings.Repeat("ä", 1600)
	link := " https://shop.example/" + strings.Repeat("x", 300)
	for _, c := range []struct {
		p       provider
		text    string
		tracked bool
		fits    bool
	}{
		{sms, long, false, true},
		{sms, long + "b", false, false},
		{sms, long + "{{first_name}}", false, true},
		{sms, long + "{{first_name}}b", false, false},
		{sms, long[:2*1500] + link, false, false},
		{sms, long[:2*1500] + link, true, true}, // the counted link is another one
		// Links that Muster makes count as long as they are: https://muster.test/t/ and 58 characters.
		{sms, long[:2*(1600-81)] + " https://x.io", true, true},
		{sms, long[:2*(1600-80)] + " https://x.io", true, false},
		{sms, long[:2*(1600-80)] + "{{unsubscribe_url}}", false, true},
		{sms, long[:2*(1600-79)] + "{{unsubscribe_url}}", false, false},
		{sms, long[:2*(1600-90)] + "{{preferences_url}}", false, true},
		{sms, long[:2*(1600-89)] + "{{preferences_url}}", false, false},
		{provider{channel: "sms"}, long + "b", false, true},
		{provider{channel: "im", set: true, config: text.Config{MaxBody: 20}}, strings.Repeat("x", 21), false, false},
		{sms, long + "b{{", false, true}, // no text at all: said elsewhere
	} {
		content := campaigns.Content{Text: c.text}
		if c.tracked {
			var err error
			if content, err = TakeTextLinks(content); err != nil {
				t.Fatal(err)
			}
		}
		if reason := c.p.checkText(content, Links{Base: "https://muster.test"}); (reason == "") != c.fits {
			t.Errorf("%d bytes, tracked %v: %q", len(c.text), c.tracked, reason)
		}
	}
	cloud := provider{channel: "whatsapp", set: true, config: text.Config{Templates: text.CloudTemplates}}
	twilio := provider{channel: "whatsapp", set: true, config: text.Config{Templates: text.TwilioContent}}
	for _, c := range []struct {
		p    provider
		t    whatsapp.Template
		want string // the field
	}{
		{cloud, whatsapp.Template{Name: "sale"}, "language"},
		{twilio, whatsapp.Template{Name: "sale"}, "template"},
		{twilio, whatsapp.Template{Name: "HX0123"}, ""},
		{provider{}, whatsapp.Template{Name: "sale"}, ""},
		{provider{}, whatsapp.Template{Name: "HX0123"}, ""},
		{provider{set: true}, whatsapp.Template{Name: "sale", Language: "en"}, "template"},
		{cloud, whatsapp.Template{Name: "sale", Language: "en", Parameters: []string{"{{first_name}}", "a\nb"}}, "parameters[1]"},
		{cloud, whatsapp.Template{Name: "sale", Language: "en", Parameters: []string{"a     b"}}, "parameters[0]"},
		{cloud, whatsapp.Template{Name: "sale", Language: "en", Parameters: []string{"{{     first_name | default: \"a\\nb\"     }}    {{last_name}}"}}, ""},
		{cloud, whatsapp.Template{Name: "sale", Language: "en", Header: "{{attributes.film}}", HeaderType: whatsapp.HeaderVideo}, ""},
		{cloud, whatsapp.Template{Name: "sale", Language: "en", Header: "https://x.example/{{first_name}}"}, ""},
		{cloud, whatsapp.Template{Name: "sale", Language: "en", HeaderType: whatsapp.HeaderLocation, Location: &whatsapp.Location{Latitude: "{{attributes.lat}}", Longitude: "-{{attributes.lon}}.5", Name: "{{attributes.shop}}"}}, ""},
		{cloud, whatsapp.Template{Name: "sale", Language: "en", HeaderType: whatsapp.HeaderLocation, Location: &whatsapp.Location{Latitude: "x{{attributes.lat}}", Longitude: "1"}}, "header_location.latitude"},
		{cloud, whatsapp.Template{Name: "sale", Language: "en", Buttons: []whatsapp.Button{{Type: whatsapp.ButtonURL, Value: "a/{{first_name}}\t"}}}, "buttons[0].value"},
	} {
		f := c.p.checkTemplate(&c.t)
		if f == nil && c.want != "" || f != nil && f.Field != c.want {
			t.Errorf("%+v: %v, want %q", c.t, f, c.want)
		}
	}
}

// TestMadeLinksAreAsLongAsTheirs: a text is checked with links of the length that they have when
// it goes out, of a campaign and of a flow.
func TestMadeLinksAreAsLongAsTheirs(t *testing.T) {
	t.Parallel()
	content, err := TakeTextLinks(campaigns.Content{Text: "a https://x.io/{{attributes.none}}sale https://bücher.example https://x.io/ü|y b {{unsubscribe_url}} {{preferences_url}} https://x.io/" + strings.Repeat("x", 1100)})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Compile(content)
	if err != nil {
		t.Fatal(err)
	}
	send := messages.ID{1, 2, 3}
	for _, l := range []Links{{Base: "https://muster.test", Account: 7}, {Base: "https://muster.test", Account: 7, Flow: "flow_0123", Step: "welcome"}} {
		values := c.Values(l, new(view.Profile), send)
		if l.Flow != "" {
			values = c.WithClicks(l, send, values)
		}
		sent, err := c.TextTemplate.Render(values)
		if err != nil {
			t.Fatal(err)
		}
		n := len(c.TextTemplate.Literal())
		c.TextTemplate.Paths(func(path []string) { n += len(c.madeLink(l, path)) })
		if n != len(sent) {
			t.Errorf("flow %q: %d characters are counted, and %d go out", l.Flow, n, len(sent))
		}
	}
}

// Messages of an omnichannel step are named by their place.
func TestEachMessageNamesThePlace(t *testing.T) {
	t.Parallel()
	def, err := flows.Parse(json.RawMessage(`{"steps":[{"id":"a","type":"sms","text":"x"},{"id":"b","type":"wait","seconds":1},{"id":"c","type":"omnichannel","channels":[{"channel":"push","title":"x"},{"channel":"sms","text":"y"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	eachMessage(def, func(s *flows.Step, m *flows.Message, path string) { got = append(got, s.ID+" "+path+" "+m.Channel) })
	if want := "a steps[0] sms, c steps[2].channels[0] push, c steps[2].channels[1] sms"; strings.Join(got, ", ") != want {
		t.Error(got)
	}
}
