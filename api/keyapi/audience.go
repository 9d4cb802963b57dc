package keyapi

import (
	"cmp"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/keyapi/internal/analytics"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/text"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
)

// audienceCalls are what can be asked of a campaign before it is sent.
type audienceCalls struct{ sender Campaigns }

func (a audienceCalls) operations() []keycall.Route {
	return []keycall.Route{
		{Handle: countAudience, Operation: operation.Operation{Method: "POST", Path: "/campaign/{id}/audience", Permission: "campaigns:read", Timeout: audienceTimeout, ID: "campaignAudience", Summary: "Count a campaign's audience",
			About: "Nothing is sent. The audience is who belongs to it now: that of the campaign, or of a send with the same fields. `skipped` counts those who would be passed over, by reason: `no e-mail`, `no phone`, `no device`, `not subscribed`, `unsubscribed`, why they are suppressed, `already sent`, or the merge tag that has no value for them, and no default. Tags are those of what the campaign sends by itself; a test of variants may have others.",
			Body:  shape.Object(sendFieldsShape()[:3]...), BodyRules: operation.BodyRules{Optional: true}, Data: campaignAudienceShape, Fails: []string{"list_id Field required: the campaign has no audience", "There is no campaign with this id"}}},
		{Handle: a.render, Operation: operation.Operation{Method: "POST", Path: "/campaign/{id}/render", Permission: "campaigns:read", ID: "renderCampaign", Summary: "Render a campaign for one person",
			About: "Nothing is sent. Merge tags are filled in; links are as they were written, and `{{unsubscribe_url}}` is `#unsubscribe` and `{{preferences_url}}` `#preferences`: the recipient's own are made when it is sent. " +
				"Fields of the campaign that are given here take the place of those that are saved, and are not saved.",
			Body: shape.Object(append([]shape.Field{
				viaShape("the first that reaches the person"),
				shape.Opt("profile_id", shape.ProfileID("The person. Give this or `email`.")),
				shape.Opt("email", shape.Text("ann@example.com", "An e-mail of the person.").Bytes(1, 512)),
				shape.Opt("template_id", shape.TemplateID("The template to render; left out, what the campaign sends by itself.")),
			}, renderContentShape()...)...), Data: renderedCampaignShape, Fails: []string{"profile_id Field required: name the person by profile_id or email", "There is no campaign with this id"}}},
	}
}

// renderContentShape are the fields of a campaign that a rendering can change.
func renderContentShape() []shape.Field {
	return slices.DeleteFunc(testContentShape(), func(f shape.Field) bool { return f.Name() == "template_id" })
}

var campaignAudienceShape = shape.Named("CampaignAudience", shape.Object(
	shape.Req("count", shape.Count(1204, "People in the audience, each once.")),
	shape.Req("reachable", shape.Count(1187, "Those who would be sent it.")),
	shape.Req("channels", shape.MapOf(shape.Count(1187, ""), "Those who would be sent it, by channel.").Like(shape.Pairs("email", 1187))),
	shape.Req("skipped", shape.MapOf(shape.Count(17, ""), "Those who would be passed over, by reason.").Like(shape.Pairs("unsubscribed", 17))),
	shape.Req("as_of", shape.Instant("When the audience was looked up.")),
))

var renderedCampaignShape = shape.Named("RenderedCampaign", shape.Object(
	shape.Req("profile_id", shape.ProfileID("")),
	shape.Req("channel", analytics.ChannelShape("On which the campaign is sent.")),
	shape.Req("sender", shape.Text("news@mail.example.com", "")),
	shape.Req("sender_name", shape.Text("Example", "")),
	shape.Req("reply_to", shape.Text("help@example.com", "")),
	shape.Req("subject", shape.Text("Our January sale", "")),
	shape.Req("html", shape.Text("<p>Hello Ann</p>", "Of an e-mail; else empty.")),
	shape.Req("text", shape.Text("Hello Ann", "Of other channels, and of templates that have one; else empty.")),
	shape.Req("link", shape.Text("https://example.com/sale", "What a push message opens; else empty.")),
	shape.Req("segments", shape.Count(1, "Of an SMS, how many are charged for this text: of 160 characters, or 153 each where it takes several; with UCS-2 70 and 67. Counted is what goes out to the person as they are now, with their own links to unsubscribe and to the preference page, and the links of `track_links`, which are longer than those in `text`. Null on other channels.").OrNull()),
	shape.Req("encoding", shape.Word("Of an SMS: GSM-7, or UCS-2 where a character is not of that alphabet. Null on other channels.", string(text.GSM7), string(text.UCS2)).OrNull()),
	shape.Req("skipped", shape.Text("unsubscribed", "Why the person would be passed over; null where they would not.").OrNull()),
))

const (
	audienceTimeout = time.Minute
	// audiencePiece is how many people are judged in one read of the state, which
	// changes wait for.
	audiencePiece = 500
)

type campaignAudience struct {
	Count     uint64            `json:"count"`
	Reachable uint64            `json:"reachable"`
	Channels  map[string]uint64 `json:"channels"`
	Skipped   map[string]uint64 `json:"skipped"`
	AsOf      string            `json:"as_of"`
}

// countAudience answers POST /campaign/{id}/audience. People who change while they
// are counted are judged as they are when their turn comes.
func countAudience(c *keycall.Call) (any, error) {
	var in sendFields
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	x, _, err := campaignOf(c, c.Param("id"))
	if err != nil {
		return nil, err
	}
	start, err := in.start(&x)
	if err != nil {
		return nil, err
	}
	out := campaignAudience{Channels: map[string]uint64{}, Skipped: map[string]uint64{}}
	var people, sent *roaring.Bitmap
	var parts []channelPart
	err = c.Read(func(v *resolver.View) (err error) {
		contents, err := compose.CampaignContents(v, &x)
		if err != nil {
			return err
		}
		parts = partsOf(&x, contents)
		out.AsOf = record.Time(max(c.Now.UnixMilli(), v.LogTimeMs()))
		people, sent, err = v.Campaigns().Audience(&start)
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Count = people.GetCardinality()
	if n := sent.GetCardinality(); n > 0 {
		out.Skipped[campaigns.AlreadySent] = n
	}
	people.AndNot(sent)
	rest := people.ManyIterator()
	piece := make([]uint32, audiencePiece)
	for n := rest.NextMany(piece); n > 0; n = rest.NextMany(piece) {
		if err := c.Ctx.Err(); err != nil {
			return nil, err
		}
		err := c.Read(func(v *resolver.View) error {
			return out.judge(v, parts, len(x.Channels) > 0, piece[:n], c.Now.UnixMilli())
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// judge counts some of the people as reachable or by why they are passed over. Those who
// were erased since the audience was read do not belong to it any more.
func (out *campaignAudience) judge(v *resolver.View, parts []channelPart, several bool, people []uint32, nowMs int64) error {
	for _, o := range people {
		if !v.Profiles().Has(v.Profiles().Root(o)) {
			out.Count--
			continue
		}
		i, reason, err := reached(v, parts, several, o, nowMs)
		switch {
		case err != nil:
			return err
		case reason == "":
			out.Reachable++
			out.Channels[parts[i].part.Medium()]++
		default:
			out.Skipped[reason]++
		}
	}
	return nil
}

// channelPart is a channel on which a campaign goes out.
type channelPart struct {
	part  campaigns.Campaign
	holes *compose.Holes
}

func partsOf(x *campaigns.Campaign, contents []campaigns.Content) (out []channelPart) {
	for i, part := range x.Parts() {
		out = append(out, channelPart{part, compose.CampaignHoles(&part, contents[i])})
	}
	return out
}

// reached is the first channel on which a campaign reaches a person, and why it passes
// over them, "" where it does not. several says that the campaign is of several
// channels.
func reached(v *resolver.View, parts []channelPart, several bool, o uint32, nowMs int64) (i int, reason string, err error) {
	for i := range parts {
		reason, err = parts[i].passedOver(v, o, nowMs)
		if err != nil || reason == "" || reason == campaigns.AlreadySent {
			return i, reason, err
		}
	}
	if several {
		reason = campaigns.NoChannel
	}
	return 0, reason, nil
}

// passedOver is why nothing would be sent to a person on this channel, "" where it would.
func (w *channelPart) passedOver(v *resolver.View, o uint32, nowMs int64) (string, error) {
	reason, err := v.PassedOver(&w.part, o, nowMs)
	if err != nil || reason != "" || w.holes == nil {
		return reason, err
	}
	p, err := v.Profiles().Get(v.Profiles().Root(o))
	if err != nil {
		return "", err
	}
	return w.holes.Reason(p), nil
}

type renderedCampaign struct {
	ProfileID string `json:"profile_id"`
	Channel   string `json:"channel"`
	Sender    string `json:"sender"`
	ReplyTo   string `json:"reply_to"`
	compose.Rendered
	Segments *int    `json:"segments"`
	Encoding *string `json:"encoding"`
	Skipped  *string `json:"skipped"`
}

// render answers POST /campaign/{id}/render.
func (a audienceCalls) render(c *keycall.Call) (any, error) {
	var in struct {
		campaignFields
		ProfileID  string `json:"profile_id"`
		Email      string `json:"email"`
		Via        string `json:"via"`
		TemplateID string `json:"template_id"` // in place of that of campaignFields
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if (in.ProfileID == "") == (in.Email == "") {
		return nil, keycall.Fail("profile_id Field required: name the person by profile_id or email")
	}
	x, _, err := campaignOf(c, c.Param("id"))
	if err != nil {
		return nil, err
	}
	if err := in.apply(&x); err != nil {
		return nil, err
	}
	var contents []campaigns.Content
	err = c.Read(func(v *resolver.View) (err error) { contents, err = contentsOf(v, &x, "", in.TemplateID); return err })
	if err != nil {
		return nil, err
	}
	parts, several := partsOf(&x, contents), in.Via == "" && len(x.Channels) > 0
	if in.Via != "" {
		i := slices.Index(x.Media(), in.Via)
		if i < 0 {
			return nil, noSuchPart(&x)
		}
		parts, contents = parts[i:i+1], contents[i:i+1]
	}
	var content campaigns.Content
	var out renderedCampaign
	err = c.Read(func(v *resolver.View) error {
		o, field, ok := v.Profiles().Person(in.ProfileID, in.Email)
		if !ok {
			return keycall.FailWith(keycall.CodeNotFound, "%s: there is no such person", field)
		}
		p, err := v.Profiles().Get(o)
		if err != nil {
			return err
		}
		i, reason, err := reached(v, parts, several, o, c.Now.UnixMilli())
		if err != nil {
			return err
		}
		content, x = contents[i], parts[i].part
		out.ProfileID, out.Channel, out.Skipped = p.ID.String(), x.Medium(), record.TextOrNull(reason)
		if out.Rendered, err = compose.RenderCampaign(&x, content, p, v.CompanyState().Name); err != nil || out.Channel != "sms" {
			return contentFault(err)
		}
		sent, err := a.sender.OutgoingText(v, c.Key.Account, &x, content, p)
		if err != nil {
			return contentFault(err)
		}
		n := text.Segments(sent)
		out.Segments, out.Encoding = &n.Segments, (*string)(&n.Encoding)
		return nil
	})
	switch out.Channel {
	case "email":
		out.Sender, out.ReplyTo = cmp.Or(content.Sender, x.Sender), content.ReplyTo
	case "sms":
		out.Sender = messaging.TextSender(cmp.Or(content.Sender, x.Sender))
	}
	return out, err
}
