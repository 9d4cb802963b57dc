package inbound

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Keyword is a word by which people say what they want to get.
type Keyword string

// The keywords.
const (
	KeywordStop  Keyword = "stop"
	KeywordStart Keyword = "start"
	KeywordHelp  Keyword = "help"
)

// keywords are the words that mobile networks ask senders to understand. "Yes" is none: it
// is an answer to many questions.
var keywords = map[string]Keyword{
	"STOP": KeywordStop, "STOPALL": KeywordStop, "STOP ALL": KeywordStop, "UNSUBSCRIBE": KeywordStop, "CANCEL": KeywordStop, "END": KeywordStop,
	"QUIT": KeywordStop, "REVOKE": KeywordStop, "OPTOUT": KeywordStop, "OPT OUT": KeywordStop, "STOPP": KeywordStop, "ARRET": KeywordStop, "ARRÊT": KeywordStop,
	"STOP PROMOTIONS": KeywordStop, // the button that WhatsApp puts below advertising
	"START":           KeywordStart, "UNSTOP": KeywordStart, "SUBSCRIBE": KeywordStart, "OPTIN": KeywordStart, "OPT IN": KeywordStart,
	"HELP": KeywordHelp, "INFO": KeywordHelp, "HILFE": KeywordHelp, "AIDE": KeywordHelp,
}

// ofEmoji reports whether a mark is part of an emoji and not of a word: a variation selector, or
// the frame of a key.
func ofEmoji(r rune) bool { return unicode.Is(unicode.Variation_Selector, r) || r == '\u20e3' }

// KeywordOf is the keyword that a text is, "" for none: the whole text is one, in any
// case, with or without quotes, punctuation and other signs around it.
func KeywordOf(text string) Keyword {
	if len(text) > 64 {
		return ""
	}
	words := strings.FieldsFunc(strings.ToUpper(norm.NFC.String(text)), func(r rune) bool { return !unicode.In(r, unicode.L, unicode.M, unicode.N) || ofEmoji(r) })
	return keywords[strings.Join(words, " ")]
}
