package whatsapp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/messaging/merge"
)

// What campaigns stored before templates had more than this reads and writes the same.
func TestStoredFormOfFirstTemplates(t *testing.T) {
	t.Parallel()
	for _, stored := range []string{
		`{"name":"sale","language":"en_US"}`,
		`{"name":"sale","language":"","parameters":["{{first_name}}","a"],"header":"https://x.example/a.png"}`,
	} {
		var x Template
		if err := json.Unmarshal([]byte(stored), &x); err != nil || x.HasOptions() {
			t.Fatalf("%+v, %v", x, err)
		}
		if b, err := json.Marshal(&x); err != nil || string(b) != stored {
			t.Errorf("%s, %v", b, err)
		}
	}
}

// Each value is visited once, by its field and where it goes, and the original stays.
func TestMap(t *testing.T) {
	t.Parallel()
	x := &Template{
		Name: "n", Parameters: []string{"a", "b"}, Named: map[string]string{"y": "d", "x": "c"}, Header: "h", HeaderType: HeaderDocument, HeaderFilename: "f",
		Buttons: []Button{{Type: ButtonURL, Value: "u"}, {Type: ButtonQuickReply, Index: 3, Value: "q"}},
	}
	before := x.String()
	var seen []string
	out, err := x.Map(func(field, value string, mode merge.Mode) (string, error) {
		seen = append(seen, fmt.Sprint(field, "=", value, "/", mode))
		return strings.ToUpper(value), nil
	})
	want := fmt.Sprintf("parameters[0]=a/%[1]d parameters[1]=b/%[1]d named_parameters.x=c/%[1]d named_parameters.y=d/%[1]d header=h/%[2]d header_filename=f/%[3]d buttons[0].value=u/%[2]d buttons[1].value=q/%[1]d", merge.Text, merge.URL, merge.Header)
	if got := strings.Join(seen, " "); err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
	if got := out.String(); got != "template n\nH\nF\nA\nB\nx: C\ny: D\nbutton 0: U\nbutton 3: Q" || x.String() != before {
		t.Errorf("%q, %q", got, x.String())
	}
}

func TestCheckOptions(t *testing.T) {
	t.Parallel()
	button := func(b ...Button) Template { return Template{Buttons: b} }
	many := map[string]string{}
	for i := range MaxParameters + 1 {
		many[fmt.Sprint("p", i)] = "x"
	}
	for _, c := range []struct {
		want string // what the fault begins with
		t    Template
	}{
		{"", Template{}},
		{"", Template{Named: map[string]string{"first_name": "{{first_name}}"}, Header: "{{attributes.film}}", HeaderType: HeaderVideo, Buttons: []Button{{ButtonURL, 0, "a"}, {ButtonQuickReply, 9, "b"}}}},
		{"named_parameters should have at most 20", Template{Named: many}},
		{"named_parameters should be left out", Template{Named: map[string]string{"a": "x"}, Parameters: []string{"x"}}},
		{"named_parameters should have names", Template{Named: map[string]string{"first name": "x"}}},
		{"named_parameters should have names", Template{Named: map[string]string{"": "x"}}},
		{"named_parameters.a should have 1 to 1024", Template{Named: map[string]string{"a": " "}}},
		{"named_parameters.a should have 1 to 1024", Template{Named: map[string]string{"a": strings.Repeat("x", 1025)}}},
		{"header_type should be", Template{Header: "x", HeaderType: "audio"}},
		{"header should be given", Template{HeaderType: HeaderText}},
		{"header should be given", Template{HeaderName: "x"}},
		{"", Template{HeaderType: HeaderLocation, Location: &Location{Latitude: "-90", Longitude: "180.0"}}},
		{"", Template{HeaderType: HeaderLocation, Location: &Location{Latitude: "{{attributes.lat}}", Longitude: "1{{attributes.lon}}", Name: "x", Address: "y"}}},
		{"header_location should be given", Template{HeaderType: HeaderLocation}},
		{"header_location should be left out", Template{Location: &Location{Latitude: "1", Longitude: "1"}}},
		{"header should be left out", Template{Header: "x", HeaderType: HeaderLocation, Location: &Location{Latitude: "1", Longitude: "1"}}},
		{"header_location.latitude should be degrees from -90 to 90", Template{HeaderType: HeaderLocation, Location: &Location{Latitude: "90.1", Longitude: "1"}}},
		{"header_location.latitude should be degrees", Template{HeaderType: HeaderLocation, Location: &Location{Longitude: "1"}}},
		{"header_location.longitude should be degrees from -180 to 180", Template{HeaderType: HeaderLocation, Location: &Location{Latitude: "1", Longitude: "0x1p4"}}},
		{"header_location.address should have at most 1024", Template{HeaderType: HeaderLocation, Location: &Location{Latitude: "1", Longitude: "1", Address: strings.Repeat("x", 1025)}}},
		{"", button(Button{ButtonCopyCode, 0, "SALE"})},
		{"header should be the https URL of the video", Template{Header: "http://x.example/", HeaderType: HeaderVideo}},
		{"header_name should have", Template{Header: "x", HeaderName: "a b"}},
		{"header_filename should be left out", Template{Header: "https://x.example/", HeaderFilename: "a"}},
		{"header_filename should have at most", Template{Header: "https://x.example/", HeaderType: HeaderDocument, HeaderFilename: strings.Repeat("x", 241)}},
		{"buttons should have at most 10", button(make([]Button, 11)...)},
		{"buttons[0].type", button(Button{"", 0, "x"})},
		{"buttons[0].index", button(Button{ButtonURL, 10, "x"})},
		{"buttons[0].index", button(Button{ButtonURL, -1, "x"})},
		{"buttons[1].index", button(Button{ButtonURL, 1, "x"}, Button{ButtonURL, 1, "y"})},
		{"buttons[0].value", button(Button{ButtonURL, 0, " "})},
		{"buttons[0].value", button(Button{ButtonURL, 0, strings.Repeat("x", 1025)})},
	} {
		f := c.t.CheckOptions()
		if f == nil && c.want != "" || f != nil && (c.want == "" || !strings.HasPrefix(f.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.t, f, c.want)
		}
	}
}

// TestHeaderHostIsWritten: where the file of a header comes from is the author's to say.
func TestHeaderHostIsWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, header string
		fits         bool
	}{
		{"", "https://{{attributes.x}}/a.png", false},
		{"", "https://x{{attributes.x}}.io/a.png", false},
		{HeaderVideo, "https://x.io{{attributes.x}}", false},
		{"", "https://x.io/{{attributes.x}}", true},
		{"", "https://x.io?{{attributes.x}}", true},
		{HeaderImage, "{{attributes.picture}}", true},
		{HeaderText, "https://{{attributes.x}}/a.png", true},
		{"", "Hello {{first_name}}", true},
	} {
		if f := (&Template{Name: "t", Header: c.header, HeaderType: c.kind}).CheckHost(); (f == nil) != c.fits {
			t.Errorf("%s %s: %v", c.kind, c.header, f)
		}
	}
}

// The values of a place and a code are filled in and shown as others are.
func TestMapLocation(t *testing.T) {
	t.Parallel()
	x := &Template{Name: "n", HeaderType: HeaderLocation, Location: &Location{"a", "b", "c", "d"}, Buttons: []Button{{Type: ButtonCopyCode, Value: "e"}}}
	out, err := x.Map(func(field, value string, mode merge.Mode) (string, error) {
		if mode != merge.Text && value != "" {
			t.Errorf("%s goes into %d", field, mode)
		}
		return strings.ToUpper(value), nil
	})
	if err != nil || out.String() != "template n\nA, B\nC\nD\nbutton 0: E" || x.Location.Latitude != "a" {
		t.Errorf("%q, %v; before %+v", out, err, x.Location)
	}
}
