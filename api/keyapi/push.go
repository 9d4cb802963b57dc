package keyapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
)

// pushCalls are the calls that send push messages.
type pushCalls struct{ sender Campaigns }

func (p pushCalls) operations() keycall.Group {
	return keycall.Group{Group: operation.Group{Surface: operation.SurfaceA, Tag: "Push", Title: "Push", About: "Messages to devices over Web Push, FCM and APNs."}, Routes: []keycall.Route{
		{Handle: pushSegments, Operation: operation.Operation{Method: "GET", Path: "/push/segments", Permission: "segments:read", ID: "pushSegments", Summary: "List segments to send to", About: "The oldest first.",
			Data: shape.List(pushSegmentShape, ""), Paged: true}},
		{Handle: p.send, Operation: operation.Operation{Method: "POST", Path: "/push/send", Permission: "campaigns:write", Timeout: sendTimeout, ID: "sendPush", Summary: "Send a push message",
			About: "It answers when the message was sent, with the message `sent`. With `dryRun` all is checked and counted, and nothing is kept or delivered; FCM is asked to check the message for up to 5 of its devices (`validate_only`), and what it refuses is a failure. " +
				"When it was stopped, or no device took it, that is a failure with the same `data`. " +
				"`campaignId` stays on record until the account has 100,000 campaigns; then the oldest push message gives way.",
			Body: shape.Object(
				append(pushFieldsShape("ttlSeconds"),
					shape.Req("title", shape.Text("Our January sale", "Title of the message.")),
					shape.Opt("body", shape.Text("It ends on Friday", "Text of the message.")),
					shape.Opt("segmentId", shape.SegmentID("Who gets it; left out, every live device of the account.")),
					shape.Opt("link", shape.Text("https://example.com/sale", "What the message opens: a page, or with a scheme of its own (`myapp://sale`) a place in the app.")),
					shape.Opt("dryRun", shape.Boolean(true, "Check and count, and deliver nothing.").Default(false)))...,
			), Data: pushResultShape, FailData: true, Fails: []string{"title Field required"}}},
	}}
}

// pushSegment is a segment as a push message may be sent to it.
type pushSegment struct {
	ID   string `json:"_id"`
	Name string `json:"name"`
	// Count is the number of members, null while the segment is building.
	Count  *uint64 `json:"count"`
	Status string  `json:"status"` // building or live
}

// pushSegments answers GET /push/segments, the oldest first.
func pushSegments(c *keycall.Call) (any, error) {
	out, next, err := keycall.SegmentPage(c, c.Read, func(v *resolver.View, s *resolver.Segment) pushSegment {
		x := pushSegment{ID: s.ID, Name: s.Name, Status: "building"}
		// No event that was acknowledged before is in this instant's future.
		if n, live := v.Segments().Count(s.ID, max(c.Now.UnixMilli(), v.LogTimeMs())); live {
			x.Count, x.Status = &n, "live"
		}
		return x
	})
	return keycall.Reply{Data: out, Next: next}, err
}

// pushResult is the answer to a push message.
type pushResult struct {
	// CampaignID is the row of push history, "" for a dry run.
	CampaignID        string `json:"campaignId"`
	SegmentName       string `json:"segmentName"`
	ContactsInSegment uint64 `json:"contactsInSegment"`
	ReachableContacts uint64 `json:"reachableContacts"`
	Total             uint64 `json:"total"`    // devices addressed
	Accepted          uint64 `json:"accepted"` // devices
	Retired           uint64 `json:"retired"`  // devices
	DryRun            bool   `json:"dryRun"`
}

// send answers POST /push/send when the message has been sent. A dry run
// goes the same way up to where something would be kept or sent.
func (p pushCalls) send(c *keycall.Call) (any, error) {
	var in struct {
		Title *string `json:"title"`
		Body  string  `json:"body"`
		// Raw, since null is not as good as nothing.
		SegmentID  json.RawMessage `json:"segmentId"`
		Link       string          `json:"link"`
		DryRun     json.RawMessage `json:"dryRun"`
		Image      string          `json:"image"`
		Collapse   string          `json:"collapse"`
		TTLSeconds int             `json:"ttlSeconds"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if in.Title == nil {
		return nil, keycall.Fail("title Field required")
	}
	if len(*in.Title) > campaigns.MaxSubjectBytes {
		return nil, keycall.Fail("title Input should have at most %d bytes", campaigns.MaxSubjectBytes)
	}
	options := (&pushFields{in.Image, in.Collapse, in.TTLSeconds}).options()
	if r := options.Check(); r != nil {
		return nil, keycall.Fail("%s", strings.Replace(r.Message, "ttl_seconds", "ttlSeconds", 1)) // as this call writes it
	}
	content, err := compose.PreparePush(campaigns.Content{Subject: *in.Title, Text: in.Body, Link: in.Link, Push: options})
	var fault *compose.ContentError
	switch {
	case errors.As(err, &fault):
		// Campaigns have other names for these.
		switch fault.Field {
		case "subject":
			fault.Field = "title"
		case "text", "html":
			fault.Field = "body"
		}
		return nil, keycall.Fail("%s", strings.Replace(fault.Error(), ": ", " ", 1))
	case err != nil:
		return nil, err
	}
	out := pushResult{}
	if in.DryRun != nil {
		// Null must not send to everybody.
		if err := json.Unmarshal(in.DryRun, &out.DryRun); err != nil || string(in.DryRun) == "null" {
			return nil, keycall.Fail("dryRun Input should be a valid boolean")
		}
	}
	var segments []string
	segment := ""
	if in.SegmentID != nil {
		// An empty id or null is a mistake of the caller's, not all devices of the account.
		if err := json.Unmarshal(in.SegmentID, &segment); err != nil || segment == "" {
			return nil, keycall.Fail("segmentId Input should be the id of a segment; leave it out to address every device")
		}
		segments = []string{segment}
	}
	plan, err := p.sender.PlanPush(c.Ctx, c.Key.Account, segment, content)
	if err != nil {
		return nil, err
	}
	err = c.Read(func(v *resolver.View) error {
		s, _ := v.Segments().Get(segment)
		out.SegmentName = s.Name
		return nil
	})
	if err != nil {
		return nil, err
	}
	if plan.Devices == 0 && plan.Hole != "" {
		out.ContactsInSegment = plan.Members
		return nil, &keycall.Failure{Code: keycall.CodeConflict, Data: out, Message: "the message goes to no device: " + plan.Hole}
	}
	if out.DryRun {
		if err := p.sender.ValidatePush(c.Ctx, c.Key.Account, plan, content); err != nil {
			return nil, err
		}
		out.ContactsInSegment, out.ReachableContacts, out.Total = plan.Members, plan.Reachable, plan.Devices
		return keycall.Reply{Data: out, Message: "dry run"}, nil
	}
	return p.run(c, out, content, segments)
}

// run makes the row of push history and sends it.
func (p pushCalls) run(c *keycall.Call, out pushResult, content campaigns.Content, segments []string) (any, error) {
	var x campaigns.Campaign
	err := c.Command(campaigns.CommandSave, campaigns.Campaign{
		Name: pushName(content.Subject), Channel: campaigns.ChannelSingle, Type: campaigns.TypePush, Date: record.Time(c.Now.UnixMilli()),
		Message: campaigns.Message{Subject: content.Subject, Body: content.Text}, ChannelOptions: campaigns.ChannelOptions{Link: content.Link, Push: content.Push}, SegmentIDs: segments,
		OneOff: true, Pacing: campaigns.Pacing{IgnoresLimits: true},
	}, &x)
	if err != nil {
		return nil, err
	}
	out.CampaignID = x.ID
	r, err := p.sender.Send(c.Ctx, c.Key.Account, campaigns.Start{
		ID: x.ID, Plan: campaigns.Plan{SegmentIDs: segments, BatchSize: maxBatch}, Devices: true, Variants: []campaigns.Content{content},
	}, c.By())
	if errors.Is(err, messaging.ErrSendContinues) {
		f := *keycall.ErrSendContinues
		f.Data = out
		return nil, &f
	}
	if err != nil {
		return nil, err
	}
	out.ContactsInSegment, out.ReachableContacts = r.Members, r.Total
	for _, n := range r.Skipped {
		out.ReachableContacts -= uint64(n)
	}
	out.Total, out.Accepted, out.Retired = r.Devices, r.Accepted, r.Retired
	if reason := unsent(&r, out.Total > 0 && out.Accepted == 0); reason != "" {
		return nil, &keycall.Failure{Code: keycall.CodeConflict, Data: out,
			Message: fmt.Sprintf("the message was sent to %d of %d devices: %s", out.Accepted, out.Total, reason)}
	}
	return keycall.Reply{Data: out, Message: "sent"}, nil
}

// pushName names a push message in the list of campaigns.
func pushName(title string) string {
	const longest = 190
	name := "Push: " + title
	if len(name) > longest {
		name = strings.ToValidUTF8(name[:longest], "") + "…"
	}
	return name
}
