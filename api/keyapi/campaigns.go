package keyapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/keyapi/internal/analytics"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/whatsapp"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
)

// sendTimeout bounds how long a request waits for a campaign to be sent. Sending
// continues after it.
const sendTimeout = 12 * time.Hour

// campaignCalls are the calls about campaigns.
type campaignCalls struct{ sender Campaigns }

func (k campaignCalls) operations() keycall.Group {
	return keycall.Group{Group: operation.Group{Surface: operation.SurfaceA, Tag: "Campaigns", Title: "Campaigns",
		About: "A campaign is one message to many. It goes to each person once, and never to people who unsubscribed, bounced, complained, are suppressed or have not confirmed. Unless the setting `require_opt_in` was turned off, e-mail goes only to people who subscribed."}, Routes: []keycall.Route{
		{Handle: k.create, Operation: operation.Operation{Method: "POST", Path: "/campaign", Permission: "campaigns:write", ID: "createCampaign", Summary: "Create a campaign",
			About: "With channel 2, `type` and `date` are required. A `date` in the future schedules the campaign when it names lists or segments: its `status` is `scheduled` and it is sent at `scheduled_at`, its audience being who belongs to it then. Otherwise it is a draft that `/send` sends. A sender of a domain that is not verified is refused when the campaign is sent. An account has at most 100,000 campaigns; the oldest push messages make room.",
			Body:  shape.Object(campaignFieldsShape(true)...), Data: shapes.Campaign,
			Fails: []string{"channel Input should be 1 or 2", "type Input should be 1, 2, 3 or 4", "type Field required"}}},
		{Handle: listCampaigns, Operation: operation.Operation{Method: "GET", Path: "/campaign", Permission: "campaigns:read", ID: "listCampaigns", Summary: "List campaigns", About: "The oldest first.", Data: shape.List(shapes.Campaign, ""), Paged: true}},
		{Handle: getCampaign, Operation: operation.Operation{Method: "GET", Path: "/campaign/{id}", Permission: "campaigns:read", ID: "getCampaign", Summary: "Read a campaign", Data: shapes.Campaign, Fails: []string{"There is no campaign with this id"}}},
		{Handle: k.update, Operation: operation.Operation{Method: "PATCH", Path: "/campaign/{id}", Permission: "campaigns:write", ID: "updateCampaign", Summary: "Change a campaign", About: "Omitted fields keep their values. A `date` in the future schedules it as at creation, also one that was sent; one in the past ends the schedule. Refused while it is being sent. The channel of a campaign that was sent stays: its statistics are of it.",
			Body: shape.Object(campaignFieldsShape(false)...), Data: shapes.Campaign, Fails: []string{"the campaign is being sent; wait until that is done"}}},
		{Handle: deleteCampaign, Operation: operation.Operation{Method: "DELETE", Path: "/campaign/{id}", Permission: "campaigns:write", ID: "deleteCampaign", Summary: "Delete a campaign", About: "One that was sent stays on record for 90 days after it was sent last. Deleted, its links to unsubscribe keep working, others lead nowhere.",
			Fails: []string{"there is no campaign with this id"}}},
		{Handle: unscheduleCampaign, Operation: operation.Operation{Method: "DELETE", Path: "/campaign/{id}/schedule", Permission: "campaigns:write", ID: "unscheduleCampaign", Summary: "Cancel the schedule of a campaign",
			About: "It is not sent by itself then, and what is left of a run that waits, or that has a `rate` or local times, is cancelled; its `date` stays as it is, and schedules it again when a change names it. A campaign that is not scheduled stays as it is.", Data: shapes.Campaign, Fails: []string{"There is no campaign with this id"}}},
		{Handle: k.send, Operation: operation.Operation{Method: "POST", Path: "/campaign/{id}/send", Permission: "campaigns:write", Timeout: sendTimeout, ID: "sendCampaign", Summary: "Send a campaign",
			About: "It sends now, whatever `date` says, and ends a schedule. A send without an audience is refused: name lists or segments, here or in the campaign, or send with `all_contacts`. It answers when all is sent, which may take hours, or when the rest has to wait for quiet hours or the campaign's rate; who goes away changes nothing. A second send meanwhile is refused; one that a stop of the service cut off continues at its start. " +
				"Sent again later, it goes to those who did not get it. A run that was stopped, or that sent nothing though there were recipients, is a failure with the same `data`.",
			Body: shape.Object(sendFieldsShape()...), BodyRules: operation.BodyRules{NoNull: []string{"list_id", "segment_ids"}, Optional: true, Instead: toSend}, Data: sendResultShape, FailData: true, Fails: []string{"batch_size Input should be a whole number from 1 to 1000", "list_id Field required: the campaign has no audience", "sender: example.org is not a verified domain of this account"}}},
		{Handle: readCampaignStats, Operation: operation.Operation{Method: "GET", Path: "/campaign/{id}/stats", Permission: "campaigns:read", ID: "campaignStats", Summary: "Read a campaign's statistics", Data: campaignStatsShape,
			Fails: []string{"There is no campaign with this id"}}},
		{Handle: listCampaignActivity, Operation: operation.Operation{Method: "GET", Path: "/campaign/{id}/recipients/activity", Permission: "campaigns:read", ID: "campaignActivity", Summary: "List recipients' activity",
			Data: shape.List(recipientActivityShape, ""), Paged: true, Fails: []string{"There is no campaign with this id"}}},
		{Handle: k.startABTest, Operation: operation.Operation{Method: "POST", Path: "/campaign/{id}/ab-test/start", Permission: "campaigns:write", ID: "startABTest", Summary: "Start an A/B test",
			About:     "It answers at once. A part of the audience gets the variants, each person one; after the wait the best goes to the rest. The numbers are in the campaign's statistics.",
			BodyRules: operation.BodyRules{NoNull: []string{"list_id", "segment_ids"}},
			Body: shape.Object(append([]shape.Field{
				shape.Req("variants", shape.List(shape.Object(
					shape.Opt("subject", shape.Text("Only today", "Instead of the campaign's. Only of messages that have a subject or a title: e-mails, push and in-app messages.").Bytes(0, 998)),
					shape.Opt("body", shape.Text("<p>Hello {{first_name}}</p>", "Instead of the campaign's.")),
					shape.Opt("sender_name", shape.Text("Ann of Example", "Instead of the campaign's, of e-mails alone.")),
				), "What is compared.").Entries(2, 10).Like([]any{shape.Pairs("subject", "Only today"), shape.Pairs("subject", "A present for you")})),
				shape.Opt("test_percent", shape.Integer(20, "How much of the audience takes part, in percent.").Between(1, 100).Default(20)),
				shape.Opt("metric", shape.Word("By what the winner is chosen: unique opens or unique clicks, of those sent. Of an SMS no opens are known: there it is `clicks`, which are counted with `track_links`.", "opens", "clicks").Default("opens")),
				shape.Opt("wait_seconds", shape.Integer(14400, "How long to wait, in seconds, before the choice.").Between(0, 2592000).Default(14400)),
			}, sendFieldsShape()...)...), Data: campaignStatsShape, Fails: []string{"variants Input should have 2 to 10 entries"}}},
	}}
}

var errNoCampaign = keycall.FailWith(keycall.CodeNotFound, "There is no campaign with this id")

func campaignOf(c *keycall.Call, id string) (x campaigns.Campaign, out record.Campaign, err error) {
	err = c.Read(func(v *resolver.View) (err error) {
		if x, err = wholeCampaign(v, id); err == nil {
			out = record.WholeCampaign(v, &x)
		}
		return err
	})
	return x, out, err
}

// wholeCampaign reads a campaign with its body.
func wholeCampaign(v *resolver.View, id string) (campaigns.Campaign, error) {
	x, ok, err := v.Campaigns().WholeCampaign(id)
	if err == nil && !ok {
		err = errNoCampaign
	}
	return x, err
}

// campaignFields are the fields of a campaign in a request.
type campaignFields struct {
	Name    *string         `json:"name"`
	Channel json.RawMessage `json:"channel"`
	Type    json.RawMessage `json:"type"`
	Date    *string         `json:"date"`
	messageFields
	ListID     []string `json:"list_id"`
	SegmentIDs []string `json:"segment_ids"`
	optionFields
	Channels []channelFields `json:"channels"`
	pacingFields
}

// messageFields are what a campaign says, in a request.
type messageFields struct {
	Subject    *string `json:"subject"`
	Body       *string `json:"body"`
	Sender     *string `json:"sender"`
	SenderName *string `json:"sender_name"`
	ReplyTo    *string `json:"reply_to"`
	TemplateID *string `json:"template_id"`
}

// apply changes what is given.
func (f *messageFields) apply(m *campaigns.Message) {
	set(&m.Subject, f.Subject)
	set(&m.Body, f.Body)
	set(&m.Sender, f.Sender)
	set(&m.SenderName, f.SenderName)
	set(&m.ReplyTo, f.ReplyTo)
	set(&m.TemplateID, f.TemplateID)
}

// optionFields are the options of the channel that a campaign goes out on, in a request.
type optionFields struct {
	Link       *string         `json:"link"`
	Service    *string         `json:"service"`
	WhatsApp   *whatsAppFields `json:"whatsapp"`
	Push       *pushFields     `json:"push"`
	InApp      *inAppFields    `json:"in_app"`
	TrackLinks *bool           `json:"track_links"`
}

// apply changes what is given.
func (f *optionFields) apply(o *campaigns.ChannelOptions) {
	set(&o.Link, f.Link)
	set(&o.Service, f.Service)
	set(&o.TrackLinks, f.TrackLinks)
	if f.WhatsApp != nil {
		o.WhatsApp = f.WhatsApp.template()
	}
	if f.Push != nil {
		o.Push = f.Push.options()
	}
	if f.InApp != nil {
		o.InApp = f.InApp.options()
	}
}

// pacingFields are what holds up the messages of a campaign, in a request.
type pacingFields struct {
	LocalTime           *bool       `json:"local_time"`
	Rate                *rateFields `json:"rate"`
	IgnoreSendingLimits *bool       `json:"ignore_sending_limits"`
}

// apply changes what is given.
func (f *pacingFields) apply(p *campaigns.Pacing) {
	set(&p.LocalTime, f.LocalTime)
	set(&p.IgnoresLimits, f.IgnoreSendingLimits)
	if f.Rate != nil {
		p.Rate = f.Rate.rate()
	}
}

// set changes a value to the one that is given; nil is none.
func set[T any](value, given *T) {
	if given != nil {
		*value = *given
	}
}

// rateFields are how fast a campaign is sent at most, in a request; none given is no bound.
type rateFields struct {
	Messages *int   `json:"messages"`
	Per      string `json:"per"`
}

func (f *rateFields) rate() *campaigns.Rate {
	if *f == (rateFields{}) {
		return nil
	}
	x := &campaigns.Rate{Per: cmp.Or(f.Per, campaigns.PerMinute)}
	set(&x.Messages, f.Messages)
	return x
}

// pushFields are the options of a push message in a request; none of them given is none.
type pushFields struct {
	Image      string `json:"image"`
	Collapse   string `json:"collapse"`
	TTLSeconds int    `json:"ttl_seconds"`
}

func (f *pushFields) options() *campaigns.PushOptions {
	if *f == (pushFields{}) {
		return nil
	}
	return &campaigns.PushOptions{Image: f.Image, Collapse: f.Collapse, TTLSeconds: f.TTLSeconds}
}

// inAppFields are the options of an in-app message in a request; none of them given is their
// defaults.
type inAppFields struct {
	Display  string `json:"display"`
	Image    string `json:"image"`
	Priority int    `json:"priority"`
	TTLHours int    `json:"ttl_hours"`
}

func (f *inAppFields) options() *card.Options {
	if *f == (inAppFields{}) {
		return nil
	}
	return &card.Options{Display: f.Display, Image: f.Image, Priority: f.Priority, TTLHours: f.TTLHours}
}

// whatsAppFields are a template of WhatsApp in a request; none of them given is no template.
type whatsAppFields struct {
	Template        string            `json:"template"`
	Language        string            `json:"language"`
	Parameters      []string          `json:"parameters"`
	Header          string            `json:"header"`
	NamedParameters map[string]string `json:"named_parameters"`
	HeaderType      string            `json:"header_type"`
	HeaderName      string            `json:"header_name"`
	HeaderFilename  string            `json:"header_filename"`
	HeaderLocation  whatsapp.Location `json:"header_location"`
	Buttons         []whatsapp.Button `json:"buttons"`
}

func (f *whatsAppFields) template() *whatsapp.Template {
	t := &whatsapp.Template{
		Name: f.Template, Language: f.Language, Parameters: f.Parameters, Header: f.Header, Named: f.NamedParameters,
		HeaderType: f.HeaderType, HeaderName: f.HeaderName, HeaderFilename: f.HeaderFilename, Buttons: f.Buttons,
	}
	if f.HeaderLocation != (whatsapp.Location{}) {
		t.Location = &f.HeaderLocation
	}
	if t.IsZero() {
		return nil
	}
	return t
}

// apply changes what is given.
func (f *campaignFields) apply(x *campaigns.Campaign) error {
	n, given, err := keycall.Number("channel", f.Channel, campaigns.ChannelOmni, campaigns.ChannelSingle)
	if err != nil {
		return err
	} else if given {
		x.Channel = n
	}
	if x.Type == campaigns.TypeInApp { // as requests name it
		x.Type, x.Service = campaigns.TypePush, campaigns.ServiceInApp
	}
	n, given, err = keycall.Number("type", f.Type, campaigns.TypeEmail, campaigns.TypeSMS, campaigns.TypeIM, campaigns.TypePush)
	if err != nil {
		return err
	} else if given {
		x.Type = n
	}
	set(&x.Name, f.Name)
	set(&x.Date, f.Date)
	f.messageFields.apply(&x.Message)
	f.optionFields.apply(&x.ChannelOptions)
	f.pacingFields.apply(&x.Pacing)
	if x.Service == campaigns.ServiceInApp {
		switch single := x.Channel == campaigns.ChannelSingle && x.Type == campaigns.TypePush; {
		case single:
			x.Type, x.Service = campaigns.TypeInApp, ""
		case f.Service != nil:
			return keycall.Fail("service Input should be in_app with channel 2 and type 4 only")
		default:
			x.Service = "" // the request makes it a campaign of another type
		}
	}
	if given && x.Channel == campaigns.ChannelOmni && (n != campaigns.TypeEmail || len(f.Channels) > 0) {
		return keycall.Fail("type Input should be left out where channel is 1: channels says how an omni-channel campaign is sent, without it by e-mail (1)")
	}
	if f.ListID != nil {
		x.ListIDs = f.ListID
	}
	if f.SegmentIDs != nil {
		x.SegmentIDs = f.SegmentIDs
	}
	if f.Channels != nil {
		x.Channels = channelMessages(f.Channels)
	}
	switch {
	case x.Name == "":
		return keycall.Fail("name Field required")
	case x.Channel == 0:
		return keycall.Fail("channel Field required")
	case x.Channel == campaigns.ChannelSingle && x.Type == 0:
		return keycall.Fail("type Field required")
	case x.Channel == campaigns.ChannelSingle && x.Date == "":
		return keycall.Fail("date Field required")
	case x.Date != "" && !isDate(x.Date):
		return keycall.Fail("date Input should be a valid datetime in ISO 8601, such as 2026-01-31T09:00:00Z")
	}
	if r := x.CheckChannels(); r != nil {
		return r
	}
	return nil
}

func isDate(s string) bool {
	_, ok := campaigns.DateMs(s)
	return ok
}

// create answers POST /campaign.
func (k campaignCalls) create(c *keycall.Call) (any, error) {
	var in campaignFields
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	var x campaigns.Campaign
	if err := in.apply(&x); err != nil {
		return nil, err
	}
	return k.save(c, x, nil, &in)
}

// save saves a campaign, in place of before where that is given.
func (k campaignCalls) save(c *keycall.Call, x campaigns.Campaign, before *campaigns.Campaign, in *campaignFields) (any, error) {
	if r := x.CheckService(); r != nil { // before what its provider says of it
		return nil, r
	}
	if r := optionsFit(&x); r != nil {
		return nil, r
	}
	if err := k.usable(c, &x, before); err != nil {
		return nil, err
	}
	var saved campaigns.Campaign
	if err := c.Command(campaigns.CommandSave, campaigns.Save{Campaign: x, SetsDate: in.Date != nil}, &saved); err != nil {
		return nil, err
	}
	_, out, err := campaignOf(c, saved.ID)
	return out, err
}

// optionsFit refuses options of a push or in-app message that the campaign does not send. The
// state machine refuses them as well, but logs have its words: those name the types of
// campaigns by numbers that requests do not know.
func optionsFit(x *campaigns.Campaign) *resolver.Refusal {
	field, text := "", ""
	switch medium := x.Medium(); {
	case x.Push != nil && medium != "push":
		field, text = "push", "push Input should be left out where channel is not 2, type not 4 or service in_app: it is of push messages"
	case x.InApp != nil && medium != "in_app":
		field, text = "in_app", "in_app Input should be left out where channel is not 2, type not 4 or service not in_app: it is of in-app messages"
	default:
		return nil
	}
	return &resolver.Refusal{Code: "invalid", Field: field, Message: text}
}

// update answers PATCH /campaign/{id}.
func (k campaignCalls) update(c *keycall.Call) (any, error) {
	var in campaignFields
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	x, _, err := campaignOf(c, c.Param("id"))
	if err != nil {
		return nil, err
	}
	before, medium := x, x.Medium()
	if err := in.apply(&x); err != nil {
		return nil, err
	}
	if now := x.Medium(); now != medium {
		if err := neverSent(c, x.ID, medium, now); err != nil {
			return nil, err
		}
	}
	return k.save(c, x, &before, &in)
}

// neverSent refuses to change the channel of a campaign that was sent: its recipients and
// statistics are of the channel that it has.
func neverSent(c *keycall.Call, id, medium, now string) error {
	sent := false
	err := c.Read(func(v *resolver.View) error {
		_, sent = v.Campaigns().Run(id)
		return nil
	})
	if err == nil && sent {
		field := "type"
		if medium == campaigns.MediumOmni || now == campaigns.MediumOmni {
			field = "channels"
		}
		err = keycall.FailWith(keycall.CodeConflict, "%s: the campaign was sent by %s, and its statistics are of that; create another campaign to send by %s", field, medium, now)
	}
	return err
}

func deleteCampaign(c *keycall.Call) (any, error) {
	return nil, c.Command(campaigns.CommandDelete, campaigns.Ref{ID: c.Param("id")}, nil)
}

// unscheduleCampaign answers DELETE /campaign/{id}/schedule.
func unscheduleCampaign(c *keycall.Call) (any, error) {
	if _, _, err := campaignOf(c, c.Param("id")); err != nil {
		return nil, err
	}
	if err := c.Command(campaigns.CommandUnschedule, campaigns.Unschedule{ID: c.Param("id")}, nil); err != nil {
		return nil, err
	}
	return getCampaign(c)
}

func getCampaign(c *keycall.Call) (any, error) {
	_, out, err := campaignOf(c, c.Param("id"))
	return out, err
}

// listCampaigns answers GET /campaign, the oldest first.
func listCampaigns(c *keycall.Call) (any, error) {
	out, next, err := keycall.CampaignPage(c, c.Read, record.NewCampaign)
	return keycall.Reply{Data: out, Next: next}, err
}

// sendFields are the fields of a send request.
type sendFields struct {
	ListID              []string        `json:"list_id"`
	SegmentIDs          []string        `json:"segment_ids"`
	AllContacts         bool            `json:"all_contacts"`
	TemplateSource      json.RawMessage `json:"template_source"`
	TemplateID          string          `json:"template_id"`
	BatchSize           json.RawMessage `json:"batch_size"`
	DelayBetweenBatches json.RawMessage `json:"delay_between_batches"`
}

const (
	defaultBatch = 100
	maxBatch     = 1000
	defaultDelay = 1.0
	minDelay     = 0.1
	maxDelay     = 60
)

// start is the command to the state machine: audience and pace.
func (f *sendFields) start(x *campaigns.Campaign) (s campaigns.Start, err error) {
	s = campaigns.Start{ID: x.ID, Plan: campaigns.Plan{ListIDs: f.ListID, SegmentIDs: f.SegmentIDs, TemplateID: f.TemplateID, BatchSize: defaultBatch, DelayMs: 1000 * defaultDelay}, CountsSent: true, Channels: x.ChannelNames()}
	if err = f.audience(x, &s); err != nil {
		return s, err
	}
	if s.TemplateSource, _, err = keycall.Word("template_source", f.TemplateSource, campaigns.TemplateList, campaigns.TemplateDraft); err != nil {
		return s, err
	}
	if s.TemplateSource != "" && s.TemplateID == "" {
		s.TemplateID = x.TemplateID
	}
	// What stands there is judged here and not by the decoder, which would not name
	// the field of a text, and would take "10" for a number.
	if keycall.IsGiven(f.BatchSize) {
		n, err := strconv.ParseInt(string(f.BatchSize), 10, 64)
		if err != nil || n < 1 || n > maxBatch {
			return s, keycall.Fail("batch_size Input should be a whole number from 1 to %d", maxBatch)
		}
		s.BatchSize = int(n)
	}
	if keycall.IsGiven(f.DelayBetweenBatches) {
		d, err := strconv.ParseFloat(string(f.DelayBetweenBatches), 64)
		if err != nil || !(d >= minDelay && d <= maxDelay) {
			return s, keycall.Fail("delay_between_batches Input should be a number of seconds from %g to %d", minDelay, maxDelay)
		}
		s.DelayMs = int64(math.Round(d * 1000))
	}
	if !s.Everybody && len(s.ListIDs)+len(s.SegmentIDs) == 0 {
		// A name that was mistyped or forgotten must not reach everybody.
		return s, keycall.Fail("list_id Field required: the campaign has no audience; name lists (list_id) or segments (segment_ids) here or in the campaign, or send with \"all_contacts\": true")
	}
	return s, nil
}

// audience is whom a send goes to: whom it names, or else the campaign's own audience,
// which may be empty.
func (f *sendFields) audience(x *campaigns.Campaign, s *campaigns.Start) error {
	named := len(f.ListID)+len(f.SegmentIDs) > 0
	switch {
	case f.AllContacts && named:
		return keycall.Fail("all_contacts Input should be left out where list_id or segment_ids names the audience")
	case f.AllContacts:
		s.ListIDs, s.SegmentIDs, s.Everybody = nil, nil, true
	case !named && (f.ListID != nil || f.SegmentIDs != nil):
		return keycall.Fail("list_id or segment_ids should name at least one list or segment; leave both out to use the campaign's own audience")
	case !named:
		s.ListIDs, s.SegmentIDs = x.ListIDs, x.SegmentIDs
	}
	return nil
}

// contentsOf are what a campaign sends, one for each of its parts: its own texts, those of an
// e-mail or else the template's.
func contentsOf(v *resolver.View, x *campaigns.Campaign, source, templateID string) ([]campaigns.Content, error) {
	parts := x.Parts()
	out := make([]campaigns.Content, len(parts))
	takesTemplate := false
	for i := range parts {
		var err error
		if len(x.Channels) > 0 && parts[i].Medium() != analytics.MediumEmail {
			out[i], err = contentOf(v, &parts[i], "", "")
		} else {
			takesTemplate = true
			out[i], err = contentOf(v, &parts[i], source, templateID)
		}
		if err != nil {
			return nil, err
		}
	}
	if !takesTemplate && (source != "" || templateID != "") {
		return nil, keycall.Fail("template_id Input should be left out: the campaign does not go out by e-mail")
	}
	return out, nil
}

// contentOf is what a campaign on one channel sends: its own texts, or those of the template.
func contentOf(v *resolver.View, x *campaigns.Campaign, source, templateID string) (campaigns.Content, error) {
	out, err := compose.OwnContent(v, x)
	if err != nil || source == "" && templateID == "" {
		return out, err
	}
	t, ok, err := v.Campaigns().WholeTemplate(templateID)
	switch {
	case err != nil:
		return out, err
	case templateID == "":
		return out, keycall.Fail("template_id Field required: name the template to send, here or in the campaign")
	case !ok, source != "" && t.Source != source:
		return out, keycall.FailWith(keycall.CodeNotFound, "template_id: there is no such template")
	}
	out.HTML, out.Text, out.Subject = t.HTML, t.Text, cmp.Or(t.Subject, out.Subject)
	return out, nil
}

// fitsProviders refuses contents that the account's providers never take.
func (k campaignCalls) fitsProviders(c *keycall.Call, x *campaigns.Campaign, contents []campaigns.Content) error {
	return contentFault(c.Read(func(v *resolver.View) error { return k.sender.CheckProviders(v, x, contents) }))
}

// keepLinks has the links of messages that were sent before lead where they lead.
func keepLinks(c *keycall.Call, start *campaigns.Start) error {
	return contentFault(c.Read(func(v *resolver.View) error { return compose.KeepLinks(v, start) }))
}

// contentFault makes what is wrong with a content a failure of the request.
func contentFault(err error) error {
	var fault *compose.ContentError
	if errors.As(err, &fault) {
		return keycall.Fail("%s", err)
	}
	return err
}

// sendResult is the answer to a send request.
type sendResult struct {
	Success      bool     `json:"success"`
	Message      string   `json:"message"`
	TotalMembers uint64   `json:"total_members"`
	EmailsSent   uint64   `json:"emails_sent"`
	Errors       []string `json:"errors"`
	StartedAt    string   `json:"started_at"`
	FinishedAt   *string  `json:"finished_at"`
}

// readSending is what a request says of sending the campaign that the path names:
// the campaign, the command for the state machine, and the contents, to be
// prepared.
func readSending(c *keycall.Call, in *sendFields) (x campaigns.Campaign, start campaigns.Start, contents []campaigns.Content, err error) {
	err = c.Read(func(v *resolver.View) (err error) {
		if x, err = wholeCampaign(v, c.Param("id")); err != nil {
			return err
		}
		if start, err = in.start(&x); err != nil {
			return err
		}
		if start.IfVersion, err = v.Campaigns().StartVersion(&x, start.TemplateID); err != nil {
			return err
		}
		contents, err = contentsOf(v, &x, start.TemplateSource, start.TemplateID)
		return err
	})
	return x, start, contents, err
}

// send answers POST /campaign/{id}/send when the campaign has been sent.
func (k campaignCalls) send(c *keycall.Call) (any, error) {
	var in sendFields
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	x, start, contents, err := readSending(c, &in)
	if err != nil {
		return nil, err
	}
	if start.Variants, err = compose.PrepareContents(&x, contents); err != nil {
		return nil, contentFault(err)
	}
	if err := k.fitsProviders(c, &x, start.Variants); err != nil {
		return nil, err
	}
	if err := keepLinks(c, &start); err != nil {
		return nil, err
	}
	r, err := k.sender.Send(c.Ctx, c.Key.Account, start, c.By())
	if err != nil {
		return nil, err
	}
	out := sendResult{
		Success: true, Message: "sent", TotalMembers: r.Total, EmailsSent: r.Sent,
		Errors: record.Texts(r.Errors), StartedAt: record.Time(r.StartedMs), FinishedAt: record.TimeOrNull(r.FinishedMs),
	}
	if r.Status == campaigns.RunWaiting {
		out.Message = "the rest waits until " + record.Time(r.WakeMs) + " and goes out by itself"
		return out, nil
	}
	reason := unsent(&r, r.Sent == 0 && (r.Failed > 0 || len(r.Errors) > 0))
	if reason == "" {
		return out, nil
	}
	out.Success, out.Message = false, reason
	return nil, &keycall.Failure{Code: keycall.CodeConflict, Message: reason, Data: out}
}

// unsent says why a run did not do what it was to: it was stopped, or nothing was
// sent at all. It is "" for a run that sent, though not to everybody.
func unsent(r *campaigns.Run, nothing bool) string {
	switch {
	case r.Status == campaigns.RunDone && !nothing:
		return ""
	case len(r.Errors) > 0:
		return r.Errors[len(r.Errors)-1]
	case r.Status == campaigns.RunDone:
		return "nothing could be sent"
	}
	return "stopped before the end"
}

// hasCredits refuses a campaign of e-mails for which the account has no credit.
func hasCredits(c *keycall.Call, x *campaigns.Campaign) error {
	if x.Medium() != "email" {
		return nil
	}
	return c.Read(func(v *resolver.View) error {
		if v.CompanyState().EmailCredits <= 0 {
			return keycall.FailWith(keycall.CodeConflict, "the account is out of e-mail credits; top up and send again")
		}
		return nil
	})
}

// startABTest answers POST /campaign/{id}/ab-test/start: the test is sent in the
// background, and its winner to the rest.
func (k campaignCalls) startABTest(c *keycall.Call) (any, error) {
	var in struct {
		sendFields
		Variants    []variantFields `json:"variants"`
		TestPercent *int            `json:"test_percent"`
		Metric      json.RawMessage `json:"metric"`
		WaitSeconds *int64          `json:"wait_seconds"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	x, start, contents, err := readSending(c, &in.sendFields)
	if err != nil {
		return nil, err
	}
	if len(x.Channels) > 0 {
		return nil, keycall.FailWith(keycall.CodeConflict, "channels: an A/B test compares texts on one channel; send this campaign without a test, or create one of a single channel")
	}
	ab := &campaigns.ABTest{Percent: 20, WaitMs: 4 * 3_600_000}
	metric, given, err := keycall.Word("metric", in.Metric, "opens", "clicks")
	if err != nil {
		return nil, err
	}
	if ab.Metric, err = testMetric(&x, metric, given); err != nil {
		return nil, err
	}
	if in.TestPercent != nil {
		ab.Percent = *in.TestPercent
	}
	if in.WaitSeconds != nil {
		// Bounded before it is multiplied: the product may not fit.
		ab.WaitMs = min(max(*in.WaitSeconds, -1), 1+30*86_400) * 1000
	}
	switch {
	case len(in.Variants) < 2 || len(in.Variants) > 10:
		return nil, keycall.Fail("variants Input should have 2 to 10 entries")
	case ab.Percent < 1 || ab.Percent > 100:
		return nil, keycall.Fail("test_percent Input should be a whole number from 1 to 100")
	case ab.WaitMs < 0 || ab.WaitMs > 30*86_400_000:
		return nil, keycall.Fail("wait_seconds Input should be a whole number from 0 to 2592000")
	}
	if start.Variants, err = k.prepareVariants(c, &x, contents[0], in.Variants); err != nil {
		return nil, err
	}
	// The test is sent after the answer: faults that can be found now are reported
	// now.
	if err := hasCredits(c, &x); err != nil {
		return nil, err
	}
	start.AB = ab
	if err := keepLinks(c, &start); err != nil {
		return nil, err
	}
	if err := k.sender.Start(c.Ctx, c.Key.Account, start, c.By()); err != nil {
		return nil, err
	}
	return readCampaignStats(c)
}
