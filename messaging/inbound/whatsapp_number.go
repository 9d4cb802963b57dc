package inbound

import "strings"

// OtherForm is the other form of a number in international form, "" where there is none.
// WhatsApp writes mobile numbers of some countries in another form than networks do, and so
// than they are on file: Mexico's with a 1 behind 52, Argentina's with a 9 behind 54, some of
// Brazil's without the 9 behind the area.
func OtherForm(number string) string {
	for _, c := range [...]struct {
		country string
		infix   string // what one form has
		at      int    // digits between the country and the infix
		local   int    // digits of the form without the infix, behind the country
	}{{"+52", "1", 0, 10}, {"+54", "9", 0, 10}, {"+55", "9", 2, 10}} {
		rest, ok := strings.CutPrefix(number, c.country)
		switch {
		case !ok:
		case len(rest) == c.local:
			return c.country + rest[:c.at] + c.infix + rest[c.at:]
		case len(rest) == c.local+1 && strings.HasPrefix(rest[c.at:], c.infix):
			return c.country + rest[:c.at] + rest[c.at+1:]
		}
	}
	return ""
}
