package inbound

import "strings"

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
	"START": KeywordStart, "UNSTOP": KeywordStart, "SUBSCRIBE": KeywordStart, "OPTIN": KeywordStart, "OPT IN": KeywordStart,
	"HELP": KeywordHelp, "INFO": KeywordHelp, "HILFE": KeywordHelp, "AIDE": KeywordHelp,
}

// KeywordOf is the keyword that a text is, "" for none: the whole text is one, in any
// case, with or without quotes and punctuation.
func KeywordOf(text string) Keyword {
	if len(text) > 64 {
		return ""
	}
	words := strings.FieldsFunc(strings.ToUpper(text), func(r rune) bool { return strings.ContainsRune(" \t\r\n.,;:!?\"'“”„‚‘’()-", r) })
	return keywords[strings.Join(words, " ")]
}
