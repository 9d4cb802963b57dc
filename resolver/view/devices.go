package view

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/internal/profile"
)

// PushAudience are the profiles that a push message to a segment, or to all
// when the id is empty, goes to, and how many members the segment has. ok is
// false while the segment is being built.
func (v Reach) PushAudience(segment string) (audience *roaring.Bitmap, members uint64, ok bool) {
	if segment == "" {
		b := v.a.Contacts.WithDevices(nil)
		return b, b.GetCardinality(), true
	}
	if !v.a.Engine.Live(segment) {
		return nil, 0, false
	}
	b := v.a.Engine.Members(segment, v.a.Engine.NowMs()).Clone()
	members = b.GetCardinality()
	return v.a.Contacts.WithDevices(b), members, true
}

// PushDevices are the devices of a profile, and why they may not be sent to, ""
// if they may. An erased profile has none.
func (v Reach) PushDevices(ordinal uint32) (devices []Device, reason string, err error) {
	if !Profiles(v).Has(ordinal) {
		return nil, "erased", nil
	}
	var d profile.Document
	if err := v.decode(ordinal, &d); err != nil {
		return nil, "", err
	}
	return v.contactInfo(&d).Devices, v.a.WhyUnreachable(&d, "push"), nil
}
