package whatsapp

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/messaging/merge"
)

// Bounds of a template.
const (
	// MaxValueBytes bounds the value of a placeholder, a header or a button.
	MaxValueBytes = 1024
	// MaxParameters bounds the placeholders of a body.
	MaxParameters = 20
	// MaxButtons bounds the buttons: WhatsApp shows no more.
	MaxButtons = 10
	// MaxNameBytes bounds the name of a placeholder.
	MaxNameBytes = 100
	// MaxFilenameBytes bounds the name of a document.
	MaxFilenameBytes = 240
)

// What a header is.
const (
	HeaderText     = "text"
	HeaderImage    = "image"
	HeaderVideo    = "video"
	HeaderDocument = "document"
	HeaderLocation = "location"
)

// HeaderTypes are what a header may be.
var HeaderTypes = []string{HeaderText, HeaderImage, HeaderVideo, HeaderDocument, HeaderLocation}

// What a button does.
const (
	// ButtonURL opens a page: the template has the beginning of its address, the value is the
	// end.
	ButtonURL = "url"
	// ButtonQuickReply answers with the value, which people do not see.
	ButtonQuickReply = "quick_reply"
	// ButtonCopyCode copies the value, a coupon code.
	ButtonCopyCode = "copy_code"
)

// ButtonTypes are what buttons with a value may be.
var ButtonTypes = []string{ButtonURL, ButtonQuickReply, ButtonCopyCode}

// Template is a message that WhatsApp has approved, with the values of its placeholders, which
// may hold merge tags. It may be sent at any time, while a text may be sent only within a day of
// what the person wrote last.
type Template struct {
	Name       string   `json:"name"`                 // or Twilio's content SID
	Language   string   `json:"language"`             // such as en_US; "" with Twilio
	Parameters []string `json:"parameters,omitempty"` // the values of the body's placeholders, in order
	// Header is the value of the header's placeholder, or the https URL of its picture, video or
	// document; "" for none.
	Header string `json:"header,omitempty"`
	// Named are the values of the body's placeholders by name, for a template whose placeholders
	// have names, in place of Parameters.
	Named map[string]string `json:"named_parameters,omitempty"`
	// HeaderType is one of [HeaderTypes]; "" is a picture where Header is an https URL, and
	// otherwise a text.
	HeaderType string `json:"header_type,omitempty"`
	// HeaderName is the name of the header's placeholder, where placeholders have names.
	HeaderName string `json:"header_name,omitempty"`
	// HeaderFilename is what a document is called.
	HeaderFilename string `json:"header_filename,omitempty"`
	// Location is the place that a header of the type [HeaderLocation] shows, nil for others.
	Location *Location `json:"header_location,omitempty"`
	Buttons  []Button  `json:"buttons,omitempty"` // those that have a value
}

// Location is a place on a map. Its values may hold merge tags.
type Location struct {
	Latitude  string `json:"latitude"`  // degrees, such as 52.52
	Longitude string `json:"longitude"` // degrees, such as 13.405
	Name      string `json:"name"`      // "" for none
	Address   string `json:"address"`   // "" for none
}

// Button is a button of a template with the value that it takes.
type Button struct {
	Type string `json:"type"` // one of [ButtonTypes]
	// Index is the place among all buttons of the template, from 0 on.
	Index int `json:"index"`
	// Value is the end of the page's address, what a quick reply answers with, or the code that is
	// copied.
	Value string `json:"value"`
}

// IsZero reports whether nothing of the template is given.
func (t *Template) IsZero() bool {
	return t.Name == "" && t.Language == "" && len(t.Parameters) == 0 && t.Header == "" && !t.HasOptions()
}

// HasOptions reports whether a template has more than a name, a language, parameters in order
// and a header: what the first version of templates had.
func (t *Template) HasOptions() bool {
	return len(t.Named) > 0 || t.HeaderType != "" || t.HeaderName != "" || t.HeaderFilename != "" || t.Location != nil || len(t.Buttons) > 0
}

// Names are the names of the named parameters, sorted.
func (t *Template) Names() []string { return slices.Sorted(maps.Keys(t.Named)) }

// Media reports whether the header is a picture, a video or a document, and which.
func (t *Template) Media() (kind string, is bool) {
	kind = cmp.Or(t.HeaderType, HeaderText)
	if t.HeaderType == "" && strings.HasPrefix(t.Header, "https://") {
		kind = HeaderImage
	}
	return kind, kind != HeaderText && kind != HeaderLocation
}

// Map is a copy with each value replaced by what f makes of it. f gets the name of the field,
// the value, and where the value goes, and is called in a fixed order.
func (t *Template) Map(f func(field, value string, mode merge.Mode) (string, error)) (*Template, error) {
	out := *t
	out.Parameters, out.Buttons, out.Named = slices.Clone(t.Parameters), slices.Clone(t.Buttons), maps.Clone(t.Named)
	var err error
	set := func(dst *string, mode merge.Mode, field string) {
		if err == nil {
			*dst, err = f(field, *dst, mode)
		}
	}
	for i := range out.Parameters {
		set(&out.Parameters[i], merge.Text, "parameters["+strconv.Itoa(i)+"]")
	}
	for _, name := range t.Names() {
		value := out.Named[name]
		set(&value, merge.Text, "named_parameters."+name)
		out.Named[name] = value
	}
	mode := merge.Text
	if _, is := t.Media(); is && t.HeaderType != "" {
		mode = merge.URL
	}
	set(&out.Header, mode, "header")
	set(&out.HeaderFilename, merge.Header, "header_filename")
	if t.Location != nil {
		at := *t.Location
		out.Location = &at
		for _, f := range at.values() {
			set(f.value, merge.Text, f.field)
		}
	}
	for i := range out.Buttons {
		mode := merge.Text
		if out.Buttons[i].Type == ButtonURL {
			mode = merge.URL
		}
		set(&out.Buttons[i].Value, mode, "buttons["+strconv.Itoa(i)+"].value")
	}
	return &out, err
}

// locationValue is a value of a location by its field.
type locationValue struct {
	field string
	value *string
}

func (l *Location) values() []locationValue {
	return []locationValue{{"header_location.latitude", &l.Latitude}, {"header_location.longitude", &l.Longitude}, {"header_location.name", &l.Name}, {"header_location.address", &l.Address}}
}

// String is the template with its values, one in each line, for people who look at what is
// sent.
func (t *Template) String() string {
	out := "template " + t.Name
	if t.Language != "" {
		out += " (" + t.Language + ")"
	}
	line := func(label, value string) {
		if value != "" {
			out += "\n" + label + value
		}
	}
	line("", t.Header)
	line("", t.HeaderFilename)
	if l := t.Location; l != nil {
		line("", l.Latitude+", "+l.Longitude)
		line("", l.Name)
		line("", l.Address)
	}
	for _, p := range t.Parameters {
		line("", p)
	}
	for _, name := range t.Names() {
		line(name+": ", t.Named[name])
	}
	for _, b := range t.Buttons {
		line("button "+strconv.Itoa(b.Index)+": ", b.Value)
	}
	return out
}

// Fault is what is wrong with a template, by the name of its field. Its text begins with
// "should".
type Fault struct{ Field, Text string }

func (f *Fault) Error() string { return f.Field + " " + f.Text }

// Faultf is a fault of a field.
func Faultf(field, format string, args ...any) *Fault {
	return &Fault{field, fmt.Sprintf(format, args...)}
}

// CheckOptions says what is wrong with what the template has beside its name, its language, its
// parameters in order and its header; nil for nothing. Values may have merge tags.
func (t *Template) CheckOptions() *Fault {
	if f := t.checkNamed(); f != nil {
		return f
	}
	if f := t.checkHeader(); f != nil {
		return f
	}
	if f := t.checkLocation(); f != nil {
		return f
	}
	return t.checkButtons()
}

func (t *Template) checkNamed() *Fault {
	switch {
	case len(t.Named) > MaxParameters:
		return Faultf("named_parameters", "should have at most %d entries", MaxParameters)
	case len(t.Named) > 0 && len(t.Parameters) > 0:
		return Faultf("named_parameters", "should be left out beside parameters: the placeholders of a template have either names or numbers")
	}
	for _, name := range t.Names() {
		if !isName(name) {
			return Faultf("named_parameters", "should have names of 1 to %d letters, digits and _, as the template has them; %q is none", MaxNameBytes, name)
		}
		if !fits(t.Named[name]) {
			return Faultf("named_parameters."+name, "should have 1 to %d bytes; WhatsApp takes no empty values", MaxValueBytes)
		}
	}
	return nil
}

func (t *Template) checkHeader() *Fault {
	kind, media := t.Media()
	switch {
	case t.HeaderType != "" && !slices.Contains(HeaderTypes, t.HeaderType):
		return Faultf("header_type", "should be text, image, video, document or location; left out, the header is an image where it begins with https://, and else a text")
	case kind == HeaderLocation && (t.Header != "" || t.HeaderName != ""):
		return Faultf("header", "should be left out, as header_name, where header_type is location: the place stands in header_location")
	case t.Header == "" && kind != HeaderLocation && t.HeaderType+t.HeaderName+t.HeaderFilename != "":
		return Faultf("header", "should be given beside header_type, header_name and header_filename: the text, or the https URL of the file")
	case t.HeaderType != "" && media && !strings.HasPrefix(t.Header, "https://") && !strings.HasPrefix(t.Header, "{{"):
		return Faultf("header", "should be the https URL of the %s", kind)
	case t.HeaderName != "" && !isName(t.HeaderName):
		return Faultf("header_name", "should have 1 to %d letters, digits and _, as the template has it", MaxNameBytes)
	case t.HeaderFilename != "" && kind != HeaderDocument:
		return Faultf("header_filename", "should be left out where header_type is not document")
	case len(t.HeaderFilename) > MaxFilenameBytes:
		return Faultf("header_filename", "should have at most %d bytes", MaxFilenameBytes)
	}
	return nil
}

// degrees is how a latitude and a longitude are written.
var degrees = regexp.MustCompile(`^-?[0-9]{1,3}(\.[0-9]{1,20})?$`)

func (t *Template) checkLocation() *Fault {
	switch l := t.Location; {
	case l == nil && t.HeaderType == HeaderLocation:
		return Faultf("header_location", "should be given where header_type is location: a latitude and a longitude, and a name and an address if it has them")
	case l == nil:
		return nil
	case t.HeaderType != HeaderLocation:
		return Faultf("header_location", "should be left out where header_type is not location; give that type to show the place")
	}
	for i, f := range t.Location.values() {
		n, err := strconv.ParseFloat(*f.value, 64)
		switch most := [...]float64{90, 180, 0, 0}[i]; {
		case len(*f.value) > MaxValueBytes:
			return Faultf(f.field, "should have at most %d bytes", MaxValueBytes)
		case most == 0 || strings.Contains(*f.value, "{{"):
		case err != nil || !degrees.MatchString(*f.value) || n < -most || n > most:
			return Faultf(f.field, "should be degrees from -%g to %g, such as 52.52", most, most)
		}
	}
	return nil
}

// CheckHost says what is wrong with the host of the header's file; nil for nothing. The author
// alone decides where a file comes from, not the source of a value: a merge tag stands behind the
// host, or for the whole address.
func (t *Template) CheckHost() *Fault {
	before, _, tagged := strings.Cut(t.Header, "{{")
	_, host, begun := strings.Cut(before, "://")
	if kind, media := t.Media(); media && tagged && begun && !strings.ContainsAny(host, "/?#") {
		return Faultf("header", "should have the host of the %s written out, without merge tags; they may stand behind it, or one for the whole address", kind)
	}
	return nil
}

func (t *Template) checkButtons() *Fault {
	if len(t.Buttons) > MaxButtons {
		return Faultf("buttons", "should have at most %d entries", MaxButtons)
	}
	codes := 0
	for i, b := range t.Buttons {
		if b.Type == ButtonCopyCode {
			codes++
		}
		field := "buttons[" + strconv.Itoa(i) + "]."
		same := func(x Button) bool { return x.Index == b.Index }
		switch {
		case !slices.Contains(ButtonTypes, b.Type):
			return Faultf(field+"type", "should be url, quick_reply or copy_code; other buttons take no value")
		case b.Index < 0 || b.Index >= MaxButtons:
			return Faultf(field+"index", "should be from 0 to %d: the place among the template's buttons", MaxButtons-1)
		case slices.IndexFunc(t.Buttons, same) < i:
			return Faultf(field+"index", "should name each button once; %d stands there twice", b.Index)
		case codes > 1:
			return Faultf(field+"type", "should be copy_code once at most: a template has one such button")
		case !fits(b.Value):
			return Faultf(field+"value", "should have 1 to %d bytes: the end of the page's address, what a quick reply answers with, or the code to copy", MaxValueBytes)
		}
	}
	return nil
}

func fits(value string) bool { return strings.TrimSpace(value) != "" && len(value) <= MaxValueBytes }

// isName reports whether a placeholder may have the name.
func isName(name string) bool {
	return name != "" && len(name) <= MaxNameBytes && strings.Trim(name, "0123456789_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
}
