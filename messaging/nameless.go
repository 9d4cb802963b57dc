package messaging

import (
	"encoding/json"
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/view"
	"github.com/musterhq/muster/segment"
)

// recipient stands in an error for whatever named the person.
const recipient = "(recipient)"

// nameless takes what names a recipient out of a text of a provider or relay, which often
// repeats what it was sent: identifiers and addresses of devices, wherever they stand, the part
// of an e-mail before its @, and names. Errors of campaigns are shown to all who may see the
// campaign, and outlive the person.
func nameless(text string, p *view.Profile) string {
	if text == "" || p == nil {
		return text
	}
	var anywhere, words []string
	for _, id := range p.Identities {
		switch id.Kind {
		case resolver.IdentityEmail:
			local, _, _ := strings.Cut(id.Value, "@")
			anywhere, words = append(anywhere, id.Value, url.QueryEscape(id.Value)), append(words, local)
		case resolver.IdentityPhone:
			anywhere = append(anywhere, id.Value, strings.TrimPrefix(id.Value, "+"))
		default:
			words = append(words, id.Value)
		}
	}
	for _, d := range p.Devices {
		anywhere = append(anywhere, addressesOf(d)...)
	}
	words = append(words, strings.Fields(p.FirstName)...)
	words = append(words, strings.Fields(p.LastName)...)
	for _, x := range anywhere {
		if len(x) > 2 {
			text = anyCase(x).ReplaceAllLiteralString(text, recipient)
		}
	}
	for _, x := range words {
		if len(x) > 2 {
			text = withoutWord(text, x)
		}
	}
	return text
}

// minDeviceToken is the length, in bytes, from which the last part of a push service's URL is
// taken for what tells devices apart. Tokens of the services in use are far longer.
const minDeviceToken = 12

// addressesOf is how an answer may name a device: by its token, or by the URL of its push
// service or what follows the host in it.
func addressesOf(d view.Device) []string {
	if d.Kind != segment.DeviceWebPush {
		return []string{d.Address}
	}
	var subscription struct{ Endpoint string }
	if json.Unmarshal([]byte(d.Address), &subscription) != nil {
		return nil
	}
	endpoint, err := url.Parse(subscription.Endpoint)
	if err != nil {
		return []string{subscription.Endpoint}
	}
	names := []string{subscription.Endpoint, endpoint.RequestURI()}
	if token := path.Base(endpoint.Path); len(token) >= minDeviceToken { // else it is a word of the service's
		names = append(names, token)
	}
	return names
}

// withoutWord puts [recipient] in the place of a word, whatever its letter case.
func withoutWord(text, word string) string {
	inWord := func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }
	var out strings.Builder
	last := 0
	for _, at := range anyCase(word).FindAllStringIndex(text, -1) {
		before, _ := utf8.DecodeLastRuneInString(text[:at[0]])
		after, _ := utf8.DecodeRuneInString(text[at[1]:])
		if inWord(before) || inWord(after) {
			continue
		}
		out.WriteString(text[last:at[0]] + recipient)
		last = at[1]
	}
	return out.String() + text[last:]
}

func anyCase(text string) *regexp.Regexp { return regexp.MustCompile(`(?i)` + regexp.QuoteMeta(text)) }
