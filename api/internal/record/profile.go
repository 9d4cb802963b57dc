package record

import (
	"encoding/json"
	"slices"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/view"
)

// Profile is a profile as it is answered.
type Profile struct {
	ProfileIdentity
	Geo        json.RawMessage    `json:"geo"`
	Attributes json.RawMessage    `json:"attributes"`
	Tags       []string           `json:"tags"`    // those in Attributes
	Consent    map[string]Consent `json:"consent"` // by channel
	Lists      []string           `json:"lists"`
	// Segments are the ids of the segments that hold the profile at AsOf; null
	// when that could not be found out, which the message then explains.
	Segments []string `json:"segments"`
	// Flows are the ids of the flows that the profile is or was in.
	Flows []string `json:"flows"`
	AsOf  string   `json:"as_of"`
	// Statuses are by channel; one that was never subscribed to has none.
	Statuses        map[string]string `json:"statuses"`
	Suppressions    map[string]string `json:"suppressions"` // reasons by channel
	EngagementScore int               `json:"engagement_score"`
	Devices         int               `json:"devices"`
	IsContact       bool              `json:"is_contact"`
	Conflicts       []Conflict        `json:"conflicts"`
	CreatedAt       string            `json:"created_at"`
	// LastEventAt is the time of the latest event, null before the first.
	LastEventAt *string `json:"last_event_at"`
}

// ProfileIdentity is the identifiers and names of a profile.
type ProfileIdentity struct {
	ProfileID  string              `json:"profile_id"`
	MergedIDs  []string            `json:"merged_ids"`
	Identities map[string][]string `json:"identities"` // by kind, the newest first
	// AnonymousIDs are what SDKs made up for the person's devices, the newest first.
	AnonymousIDs []string `json:"anonymous_ids"`
	FirstName    string   `json:"first_name"`
	LastName     string   `json:"last_name"`
}

// Consent is a profile's consent to a channel.
type Consent struct {
	Status string  `json:"status"`
	Source string  `json:"source"`
	Since  *string `json:"since"`
}

// Conflict is an identifier seen with the profile that is not its own.
type Conflict struct {
	Kind           string  `json:"kind"`
	Value          string  `json:"value"`
	Reason         string  `json:"reason"`
	OtherProfileID *string `json:"other_profile_id"`
	At             string  `json:"at"`
}

// Channels are the channels that profiles have consents for, in the order in which they
// are offered.
var Channels = []string{"email", "sms", "push", "whatsapp", "im", "in_app"}

// IdentityKinds are the kinds of the identifiers that people see.
var IdentityKinds = []resolver.IdentityKind{resolver.IdentityEmail, resolver.IdentityExternalID, resolver.IdentityPhone}

// NewProfile makes the record of a profile at an instant, with the segments that hold it
// and the flows that it is or was in, both by id.
func NewProfile(p *view.Profile, segments, flows []string, asOfMs int64) Profile {
	out := Profile{
		ProfileIdentity: ProfileIdentity{ProfileID: p.ID.String(), MergedIDs: []string{}, Identities: map[string][]string{}, FirstName: p.FirstName, LastName: p.LastName},
		Geo:             Object(p.Geo), Attributes: Object(p.Attributes), Tags: Tags(p.Attributes),
		Consent: map[string]Consent{},
		Lists:   []string{}, Segments: segments, Flows: flows, Statuses: map[string]string{}, Suppressions: map[string]string{}, Conflicts: []Conflict{},
		AsOf: Time(asOfMs), CreatedAt: Time(p.CreatedMs),
	}
	for _, k := range IdentityKinds {
		out.Identities[k.String()] = []string{}
	}
	for i := len(p.Identities) - 1; i >= 0; i-- {
		id := p.Identities[i]
		out.Identities[id.Kind.String()] = append(out.Identities[id.Kind.String()], id.Value)
	}
	out.AnonymousIDs = append([]string{}, p.AnonymousIDs...)
	slices.Reverse(out.AnonymousIDs)
	for _, m := range p.Merged {
		out.MergedIDs = append(out.MergedIDs, m.ID.String())
	}
	for _, ch := range Channels {
		out.Consent[ch] = Consent{Status: "never_subscribed"}
	}
	for _, c := range p.Consents {
		since := Time(c.SinceMs)
		out.Consent[c.Channel] = Consent{c.Status, c.Source, &since}
	}
	out.Lists = append(out.Lists, p.Lists...)
	for _, ch := range Channels {
		if s := p.Status(ch, asOfMs); s != "" {
			out.Statuses[ch] = s
		}
	}
	for _, b := range p.Suppressions {
		out.Suppressions[b.Channel] = b.Reason
	}
	out.EngagementScore, out.Devices, out.IsContact = p.Score(asOfMs), len(p.Devices), p.IsContact
	for _, c := range p.Conflicts {
		x := Conflict{Kind: c.Kind.String(), Value: c.Value, Reason: c.Reason, At: Time(c.AtMs)}
		if c.Other != nil {
			id := c.Other.String()
			x.OtherProfileID = &id
		}
		out.Conflicts = append(out.Conflicts, x)
	}
	if p.HasEvent() {
		at := Time(p.LastEventMs)
		out.LastEventAt = &at
	}
	return out
}
