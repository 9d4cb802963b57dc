package api

import (
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
)

// profileRow is a profile in a list of profiles.
type profileRow struct {
	ProfileID       string              `json:"profile_id"`
	Identities      map[string][]string `json:"identities"` // by kind, the newest first
	FirstName       string              `json:"first_name"`
	LastName        string              `json:"last_name"`
	Statuses        map[string]string   `json:"statuses"` // by channel
	Lists           []string            `json:"lists"`
	Tags            []string            `json:"tags"`
	EngagementScore int                 `json:"engagement_score"`
	IsContact       bool                `json:"is_contact"`
	CreatedAt       string              `json:"created_at"`
	FirstSeenAt     string              `json:"first_seen_at"`
	LastEventAt     *string             `json:"last_event_at"` // null before the first
}

var profileRowShape = shape.Named("ProfileRow", shape.Object(
	shape.Req("profile_id", shape.ProfileID("")),
	shape.Req("identities", shape.Object(
		shape.Req("email", shape.List(shape.Text("ann@example.com", ""), "")), shape.Req("external_id", shape.List(shape.Text("42", ""), "")), shape.Req("phone", shape.List(shape.Text("+491701234567", ""), "")),
	).Says("Identifiers by kind, the newest first. The first e-mail of somebody subscribed to e-mail is the one that is mailed, and e-mails that events attach stand behind it.")),
	shape.Req("first_name", shape.Text("Ann", "")), shape.Req("last_name", shape.Text("Lee", "")),
	shape.Req("statuses", shape.MapOf(shape.ContactStatus(""), "Statuses by channel; one that was never subscribed to has none.").Like(shape.Pairs("email", "Subscribed"))),
	shape.Req("lists", shape.List(shape.ListID(""), "")),
	shape.Req("tags", shape.List(shape.Text("customer", ""), "The texts of `attributes.tags`.")),
	shape.Req("engagement_score", shape.Count(20, "").With("maximum", 100)),
	shape.Req("is_contact", shape.Boolean(true, "Whether somebody made it a contact.")),
	shape.Req("created_at", shape.Instant("")),
	shape.Req("first_seen_at", shape.Instant("The first event, if that is before `created_at`.")),
	shape.Req("last_event_at", shape.Instant("Null before the first event.").OrNull()),
))

// newProfileRow is a profile as lists answer it at an instant.
func newProfileRow(p *resolver.Profile, atMs int64) profileRow {
	whole := (&person{Profile: p, atMs: atMs}).answer(nil)
	return profileRow{
		ProfileID: whole.ProfileID, Identities: whole.Identities, FirstName: whole.FirstName, LastName: whole.LastName,
		Statuses: whole.Statuses, Lists: whole.Lists, Tags: whole.Tags, EngagementScore: whole.EngagementScore, IsContact: whole.IsContact,
		CreatedAt: whole.CreatedAt, FirstSeenAt: record.Time(p.FirstSeenMs), LastEventAt: whole.LastEventAt,
	}
}
