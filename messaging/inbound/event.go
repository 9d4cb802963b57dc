package inbound

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Type says what happened to a message.
type Type string

// The types of events; the words are those of the generic webhook.
const (
	Bounce      Type = "bounce"      // refused or returned; Hard says whether for good
	Complaint   Type = "complaint"   // called spam by the recipient
	Delivery    Type = "delivery"    // taken by the receiving server
	Open        Type = "open"        // opened, as the provider saw it
	Click       Type = "click"       // a link was followed, as the provider saw it
	Unsubscribe Type = "unsubscribe" // the recipient wants no more
	Failure     Type = "failure"     // a text was not delivered; Hard says that the number gets none
	Reply       Type = "reply"       // a person wrote a text, or said whether to get any
)

// The channels of texts.
const (
	ChannelSMS      = "sms"
	ChannelWhatsApp = "whatsapp"
	ChannelIM       = "im"
)

// Event is one fact about one message to one recipient.
type Event struct {
	// ID is the same whenever the same fact is reported again, and unique within an
	// account and kind of source: at most 200 bytes.
	ID   string
	Type Type

	// Which message it is about: any of the three, the first that is set is the surest.
	SendID    string // our own id of the message
	MessageID string // its Message-ID, without angle brackets
	Recipient string // the address it was sent to, as told

	// Channel is that of a text; "" for e-mail. Phone is the number that a text went to, in
	// international form.
	Channel string
	Phone   string

	// From and To are the numbers of a reply, in international form, and Text what it says,
	// at most 4 KiB. Keyword is what the provider takes it for, "" where that is left to us;
	// Answered says that the provider has answered it. A Preference is none of the person's
	// words but a setting, with its Keyword.
	From, To   string
	Text       string
	Keyword    Keyword
	Answered   bool
	Preference bool

	// Token is a token of an unsubscribe mail's subject, not verified here.
	Token string

	// Hard reports that a bounce is for good: the address should get no more mail.
	Hard bool
	// Status is the enhanced status code of a bounce (RFC 3463), if any.
	Status string
	// Reason is what the other side said: one line, at most 500 bytes.
	Reason string

	Visit

	// At is when it happened, as the other side says; zero when it does not say.
	At time.Time
}

// Visit is how a message was opened, or a link in it followed.
type Visit struct {
	// URL of a click; UserAgent and IP of an open or click, if told.
	URL       string
	UserAgent string
	IP        string
	// Machine reports that the provider takes an open or click for a machine's.
	Machine bool
}

// Bounds of input and output.
const (
	// MaxBytes bounds a mail or webhook.
	MaxBytes = 1 << 20
	// MaxEvents bounds the events of one mail or webhook.
	MaxEvents = 5000

	maxText    = 4 << 10
	maxReason  = 500
	maxAddress = 320
	maxID      = 200
	maxURL     = 8 << 10
)

// What a caller distinguishes.
var (
	// ErrTooLarge: more than MaxBytes or MaxEvents. Sending it again is of no use.
	ErrTooLarge = errors.New("too large")
	// ErrMalformed: not what the reader expects. Sending it again is of no use.
	ErrMalformed = errors.New("malformed")
	// ErrNotRecognised: a mail that is none of the kinds known here.
	ErrNotRecognised = errors.New("neither a bounce, nor a complaint, nor an unsubscribe mail")
	// ErrUnauthorised: a webhook that is not authenticated.
	ErrUnauthorised = errors.New("not authenticated")
	// ErrUnavailable: a webhook that could not be judged now. The sender should try again.
	ErrUnavailable = errors.New("cannot be checked at the moment")
)

// contentID makes an ID from what identifies a fact, for those that bring none.
func contentID(source string, parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(strconv.Itoa(len(p))))
		h.Write([]byte{':'})
		h.Write([]byte(p))
	}
	return source + ":" + hex.EncodeToString(h.Sum(nil)[:16])
}

// providerID uses the provider's id as it is when it is short and printable.
func providerID(source string, parts ...string) string {
	id := source + ":" + strings.Join(parts, ":")
	if len(id) > maxID || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return contentID(source, parts...)
	}
	return id
}

// line makes one line of at most n bytes of valid UTF-8.
func line(text string, n int) string {
	// Fields reads all of it, so cut generously first.
	if len(text) > 8*n {
		text = text[:8*n]
	}
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool { return r <= ' ' || r == 0x7f || r == 0xa0 }), " ")
	if len(text) > n {
		text = strings.ToValidUTF8(text[:n], "")
	}
	return text
}

// messageID takes the angle brackets off; what is no Message-ID becomes empty.
func messageID(text string) string {
	text = strings.TrimSpace(text)
	if i := strings.IndexByte(text, '<'); i >= 0 {
		text = text[i+1:]
		j := strings.IndexByte(text, '>')
		if j < 0 {
			return ""
		}
		text = text[:j]
	}
	return identifier(text)
}

// identifier passes an id that can stand for a message and drops anything else.
func identifier(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > 256 || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return ""
	}
	return text
}

// address finds a mail address in a header's value or a report's field; what is none
// becomes empty.
func address(text string) string {
	text = strings.TrimSpace(text)
	if i := strings.LastIndexByte(text, '<'); i >= 0 {
		if j := strings.IndexByte(text[i:], '>'); j > 0 {
			text = text[i+1 : i+j]
		}
	}
	text = strings.TrimSpace(text)
	if len(text) >= 7 && strings.EqualFold(text[:7], "mailto:") {
		text = text[7:]
	}
	at := strings.LastIndexByte(text, '@')
	if at <= 0 || at == len(text)-1 || len(text) > maxAddress || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\uFFFD' }) ||
		strings.ContainsAny(text, "<>,;()") {
		return ""
	}
	return text
}
