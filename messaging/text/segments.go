package text

import "strings"

// Encoding is how an SMS carries its text.
type Encoding string

const (
	// GSM7 has 160 characters in one SMS, 153 in each of several.
	GSM7 Encoding = "GSM-7"
	// UCS2 has 70 and 67.
	UCS2 Encoding = "UCS-2"
)

// The basic alphabet of 3GPP TS 23.038 and what is reached by its escape, which
// counts twice.
const (
	gsmBasic = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?" +
		"¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	gsmExtended = "\f^{}\\[~]|€"
)

// Count is the parts and characters of a text.
type Count struct {
	Encoding Encoding
	// Units are septets or UTF-16 code units; a segment holds PerSegment of them.
	Units, PerSegment int
	// Segments is the number of SMS, 0 for an empty text.
	Segments int
}

// Segments counts the SMS that body needs. One character outside of GSM-7 makes
// all of it UCS-2. Characters of two units are not split between segments.
func Segments(body string) Count {
	c := Count{Encoding: GSM7, PerSegment: 160}
	split := 153
	for _, r := range body {
		if !strings.ContainsRune(gsmBasic, r) && !strings.ContainsRune(gsmExtended, r) {
			c.Encoding, c.PerSegment, split = UCS2, 70, 67
			break
		}
	}
	width := func(r rune) int {
		if c.Encoding == GSM7 && strings.ContainsRune(gsmExtended, r) || c.Encoding == UCS2 && r > 0xffff {
			return 2
		}
		return 1
	}
	for _, r := range body {
		c.Units += width(r)
	}
	switch {
	case c.Units == 0:
		return c
	case c.Units <= c.PerSegment:
		c.Segments = 1
		return c
	}
	c.PerSegment = split
	used := 0
	c.Segments = 1
	for _, r := range body {
		w := width(r)
		if used+w > split {
			c.Segments++
			used = 0
		}
		used += w
	}
	return c
}
