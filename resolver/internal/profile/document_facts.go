package profile

import (
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/segment"
)

// DeviceKinds are the kinds of devices by their number on disk.
var DeviceKinds = []string{segment.DeviceWebPush, segment.DeviceFCM, segment.DeviceAPNs}

// FillFacts fills in what conditions look at; f's slices point into the document.
// lists has the ids of lists by number; lastEvent is that of the header.
func (d *Document) FillFacts(f *segment.Facts, lists map[uint32]string, lastEvent int64) {
	x := &f.Fields
	x.Emails, x.ExternalIDs, x.Phones = x.Emails[:0], x.ExternalIDs[:0], x.Phones[:0]
	for _, id := range d.Identifiers {
		switch id.Kind {
		case identifier.Email:
			x.Emails = append(x.Emails, id.Value)
		case identifier.ExternalID:
			x.ExternalIDs = append(x.ExternalIDs, id.Value)
		case identifier.Phone:
			x.Phones = append(x.Phones, id.Value)
		}
	}
	x.FirstName, x.LastName, x.Geo, x.Attributes, x.CreatedAtMs = d.FirstName, d.LastName, d.Geo, d.Attributes, d.CreatedMs
	x.FirstSeenMs, x.LastEventMs, x.HasEvent, x.IsContact = d.FirstSeen(), lastEvent, HasEvent(lastEvent), d.IsContact
	x.Anonymous = d.IsAnonymous()
	x.Engagement = d.Engaged.facts()
	x.PushDevices = x.PushDevices[:0]
	for i := range d.Devices {
		x.PushDevices = append(x.PushDevices, DeviceKinds[d.Devices[i].Kind])
	}
	f.Consents = f.Consents[:0]
	for i := range d.Consents {
		c := &d.Consents[i]
		f.Consents = append(f.Consents, segment.ConsentFact{Channel: NameOf(Channels, c.Channel), Status: NameOf(ConsentStatuses, c.Status),
			SubscribedMs: c.SubscribedMs, HasDate: c.SubscribedMs != 0})
	}
	f.Suppressions = f.Suppressions[:0]
	d.EachSuppression(func(b Suppression) {
		f.Suppressions = append(f.Suppressions, segment.SuppressionFact{Channel: NameOf(Channels, b.Channel), Reason: b.Reason.String()})
	})
	f.Lists = f.Lists[:0]
	for _, n := range d.Lists {
		if id, ok := lists[n]; ok {
			f.Lists = append(f.Lists, id)
		}
	}
}

// facts is the part that segments and statuses look at.
func (e *Engagement) facts() segment.Engagement {
	return segment.Engagement{Sent: e.Sent, Opened: e.Opened, Clicked: e.Clicked, LastOpenMs: e.LastOpenMs, LastClickMs: e.LastClickMs}
}
