package record

import "github.com/musterhq/muster/resolver/view"

// ProfileRow is a profile as lists of profiles have it.
type ProfileRow struct {
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

// NewProfileRow makes the row of a profile at an instant.
func NewProfileRow(p *view.Profile, asOfMs int64) ProfileRow {
	whole := NewProfile(p, nil, nil, asOfMs)
	return ProfileRow{
		ProfileID: whole.ProfileID, Identities: whole.Identities, FirstName: whole.FirstName, LastName: whole.LastName,
		Statuses: whole.Statuses, Lists: whole.Lists, Tags: whole.Tags, EngagementScore: whole.EngagementScore, IsContact: whole.IsContact,
		CreatedAt: whole.CreatedAt, FirstSeenAt: Time(p.FirstSeenMs), LastEventAt: whole.LastEventAt,
	}
}
