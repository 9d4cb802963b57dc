package flows

import (
	"encoding/json"
	"time"

	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/messaging/whatsapp"
	"github.com/musterhq/muster/segment"
)

// Flow is a definition, parsed. A draft may be unfinished: [Flow.Validate] says
// what it lacks. The zero value has no trigger and no steps.
type Flow struct {
	Name    string
	Trigger Trigger
	Reentry Reentry
	// Steps in the order given; the first is the entry.
	Steps []Step
	// unknown are the ids behind references that are Unknown, by their JSON path.
	unknown map[string]string
}

// Reentry says whether a profile may go through a flow again.
type Reentry string

// The policies of re-entry.
const (
	Once      Reentry = "once"       // never again
	AfterExit Reentry = "after_exit" // when the last enrolment has ended
)

// The types of triggers.
const (
	TriggerListJoined     = "list_joined"
	TriggerEvent          = "event"
	TriggerDate           = "date"
	TriggerSegmentEntered = "segment_entered"
	TriggerSegmentExited  = "segment_exited"
	TriggerAPI            = "api"
)

// Trigger says what enrols a profile. Type is empty when a draft has none.
type Trigger struct {
	Type      string
	ListID    string // of list_joined
	SegmentID string // of segment_entered and segment_exited
	Event     *EventTrigger
	Date      *DateTrigger
}

// EventTrigger enrols who performs an event whose properties satisfy all of
// Where.
type EventTrigger struct {
	Event string
	Where []segment.Predicate
}

// DateTrigger enrols at a local time on a day that a profile names.
type DateTrigger struct {
	// Field is the path of the date in the profile, as conditions name fields:
	// attributes.…, geo.… or created_at. Its value is a day (2006-01-02), an
	// instant in RFC 3339, or Unix milliseconds.
	Field string
	// OffsetDays is added to the day; negative is before it.
	OffsetDays int
	// AtMinutes is the time of the day, in minutes after midnight.
	AtMinutes int
	Yearly    bool // every year on that day, or once
	Zone      *time.Location
}

// The types of steps.
const (
	StepEmail    = "email"
	StepSMS      = "sms"
	StepWhatsApp = "whatsapp"
	// StepIM sends a text by the account's own instant messenger.
	StepIM    = "im"
	StepPush  = "push"
	StepInApp = "in_app"
	// StepOmnichannel sends a message on the first of several channels that reaches the
	// person.
	StepOmnichannel = "omnichannel"
	StepWait        = "wait"
	StepCondition   = "condition"
	StepSplit       = "split"
	StepTag         = "tag"
	StepUpdate      = "update_contact"
	StepWebhook     = "webhook"
	StepExit        = "exit"
)

// End, in place of the index of a step, is the end of the flow: null, or no next
// at all. Unknown is a reference to a step that is not there, or a condition's way
// that is not given, which [Flow.Validate] finds.
const (
	End     = -1
	Unknown = -2
)

// Step is one step. Of Messages and the pointers, what its type needs is set.
type Step struct {
	ID   string
	Type string
	// Next is the index of the step that follows, or End. Conditions, splits and
	// exits have theirs elsewhere or none.
	Next int
	// Messages are what the step sends: one, or of an omnichannel step one for each channel,
	// in the order of preference.
	Messages  []Message
	Wait      *Wait
	Condition *Condition
	Split     *Split
	Tag       *Tag
	Update    *Update
	Webhook   *Webhook
}

// Message is a message on a channel. The pointer of the channel is set.
type Message struct {
	Channel  string // the type of the step that sends this alone: email, sms, whatsapp, im, push or in_app
	Email    *Email
	SMS      *SMS
	WhatsApp *WhatsApp
	Push     *Push
	InApp    *card.Card // with merge tags
	// IgnoresLimits sends it whatever the account's quiet hours and frequency caps say, and
	// does not count it for the latter.
	IgnoresLimits bool
}

// Email is the e-mail that the step sends, nil for none.
func (s *Step) Email() *Email {
	for i := range s.Messages {
		if x := s.Messages[i].Email; x != nil {
			return x
		}
	}
	return nil
}

// Email sends an e-mail: a saved template, or a subject and a body of its own.
// Texts may have merge tags.
type Email struct {
	TemplateID string
	Subject    string // instead of the template's
	Body       string // HTML
	Text       string // plain, made of Body when empty
	Sender     string // an address on a verified domain; empty for the account's default
	SenderName string
	ReplyTo    string
}

// SMS sends a text message, by SMS or by the account's own instant messenger.
type SMS struct {
	Text string
	// TrackLinks has clicks on links of the text counted. Counted links are longer.
	TrackLinks bool
}

// WhatsApp sends a template that WhatsApp has approved, or a text, which goes out only to
// people who have written within a day. Texts may have merge tags.
type WhatsApp struct {
	Text       string
	Template   whatsapp.Template // without a name it is none
	TrackLinks bool              // as of SMS, for links of Text
}

// Push sends a notification to all devices of a person. Title, Body and Link may have merge
// tags.
type Push struct {
	Title, Body string
	Link        string // a page, or a place in an app (myapp://…), that a tap opens
	Image       string // an https URL
	TTLSeconds  int64  // how long push services keep trying; 0 is as long as they can
	Collapse    string // replaces an earlier notification of the same name
	TrackLinks  bool   // as of SMS, for Link; links into apps are not counted
}

// Wait waits so many seconds, or until a local time: one of the two.
type Wait struct {
	Seconds int64
	Until   *Until
}

// Until is a local time: a time of the day, the next one that comes, or one of a
// certain day, which does not wait when it is over.
type Until struct {
	// Day is days since 1970-01-01 in the calendar, or -1 for the next one that comes.
	Day int
	// SecondOfDay is the time of the day, in seconds after midnight.
	SecondOfDay int
	Zone        *time.Location
	text        string // as given
}

// Condition asks whether the profile satisfies a segment's definition.
type Condition struct {
	If   json.RawMessage // in canonical form
	Root *segment.Node   // If, parsed; nil when a draft has none
	// OpenCart asks, beside If, that the newest cart of the person has something in it and that
	// no order followed it: definitions cannot compare the times of two events.
	OpenCart bool
	Yes, No  int
}

// Split sends people different ways, in proportion to weights.
type Split struct{ Branches []Branch }

// Branch is one way out of a split.
type Branch struct {
	Weight int // from 1 to 1,000,000
	Next   int
}

// Tag adds and removes tags of the profile.
type Tag struct{ Add, Remove []string }

// Update sets fields of the profile: first_name, last_name, attributes.… and
// geo.…, to JSON values; null removes. Texts may have merge tags.
type Update struct{ Set []Assignment }

// Assignment is one field and its value.
type Assignment struct {
	Field string
	Value json.RawMessage
}

// Webhook calls a URL. Texts may have merge tags; in a JSON body they are escaped
// for it.
type Webhook struct {
	URL     string
	Method  string // POST, PUT, PATCH, GET or DELETE
	Headers []Header
	Body    string
	isJSON  bool // Body was given as an object or array
	// TimeoutSeconds bounds an attempt (default 10, from 1 to 30).
	TimeoutSeconds int
	// Attempts is how often it is tried (default 5, from 1 to 10).
	Attempts int
	// ExitOnFailure ends the enrolment in the flow when all attempts failed;
	// otherwise it continues.
	ExitOnFailure bool
}

// Header is a line of a request's head.
type Header struct{ Name, Value string }
