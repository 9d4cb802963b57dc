package contacts

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/segment/engine"
)

// The commands of devices.
const (
	CommandDeviceAdd    = "device.add"
	CommandDeviceRemove = "device.remove"
)

const (
	maxDeviceIDBytes      = 200
	maxDeviceAddressBytes = 4096
)

// The events of devices, and why a device is no longer a profile's.
const (
	EventDeviceRegistered = "device_registered"
	EventDeviceRetired    = "device_retired"

	retiredRemoved  = "removed"  // by the account
	retiredMoved    = "moved"    // the address was registered with another profile
	retiredReplaced = "replaced" // the device has got another address
	retiredLimit    = "limit"    // the profile has too many, this was the oldest
	// RetiredDead is why a device is no longer a profile's whose push service says that it is
	// dead.
	RetiredDead = "dead"
)

// DeviceAdd registers a device of a profile, or gives one that is known another
// address. The address leaves whatever profile it was registered with before.
type DeviceAdd struct {
	Profile string `json:"profile"`
	// Device is the account's own name for it; empty makes one.
	Device  string `json:"device,omitempty"`
	Kind    string `json:"kind"`    // webpush, fcm or apns
	Address string `json:"address"` // a token, or the subscription as JSON
}

// DeviceRemove takes a device off a profile.
type DeviceRemove struct {
	Profile string `json:"profile"`
	Device  string `json:"device"`
}

// DeviceReply answers [DeviceAdd].
type DeviceReply struct {
	Profile string `json:"profile"`
	Device  string `json:"device"`
}

// push is the channel of devices.
const push = "push"

func (s *State) deviceHash(kind byte, address []byte) identifier.Hash {
	return s.hasher().HashDevice(kind, address, &s.buf)
}

func noDevice() *refuse.Refusal { return refuse.NotFound("device", "the contact has no such device") }

// CheckDevice says what cannot be stored of a device.
func CheckDevice(c *DeviceAdd) *refuse.Refusal {
	switch {
	case !slices.Contains(profile.DeviceKinds, c.Kind):
		return refuse.Invalid("kind", "kind Input should be %s", orList(profile.DeviceKinds))
	case c.Address == "" || len(c.Address) > maxDeviceAddressBytes || !utf8.ValidString(c.Address):
		return refuse.Invalid("address", "address must be a text of 1 to %d bytes", maxDeviceAddressBytes)
	case len(c.Device) > maxDeviceIDBytes || !utf8.ValidString(c.Device) || strings.ContainsFunc(c.Device, func(r rune) bool { return r < ' ' || r == '/' || r == 0x7f }):
		return refuse.Invalid("device", "device must be a text of at most %d bytes without slashes", maxDeviceIDBytes)
	}
	return nil
}

// addDevice registers a device. What the profile had under the name or the
// address before goes.
func (s *State) addDevice(tx *feature.Tx, c DeviceAdd) *refuse.Refusal {
	if r := CheckDevice(&c); r != nil && !(s.host.Redacted() && identifier.IsMasked(c.Address)) {
		return r
	}
	kind := slices.Index(profile.DeviceKinds, c.Kind)
	o, d, refusal := s.host.Profile(c.Profile)
	if refusal != nil {
		return refusal
	}
	if c.Device == "" {
		c.Device = feature.NewID("dev_", tx.Record)
	}
	v := profile.Device{ID: []byte(c.Device), Kind: byte(kind), Address: []byte(c.Address), AddedMs: tx.AtMs}
	h := s.deviceHash(v.Kind, v.Address)
	if old := s.ids.Owner(h); old != profile.NoOrdinal && old != o {
		s.moveAway(old, &v)
	}
	tx.Reply = DeviceReply{s.host.ProfileID(o), c.Device}
	if slices.ContainsFunc(d.Devices, func(x profile.Device) bool { return s.sameDevice(&v, &x) && bytes.Equal(x.ID, v.ID) }) {
		return nil
	}
	var events []feature.Event
	gone := func(x profile.Device, reason string) {
		s.ids.Remove(s.deviceHash(x.Kind, x.Address))
		events = append(events, deviceEvent(&x, EventDeviceRetired, reason))
	}
	d.Devices = slices.DeleteFunc(d.Devices, func(x profile.Device) bool {
		switch {
		case s.sameDevice(&v, &x): // it has another name now
			return true
		case bytes.Equal(x.ID, v.ID):
			gone(x, retiredReplaced)
			return true
		}
		return false
	})
	for len(d.Devices) >= profile.MaxDevices {
		gone(d.Devices[0], retiredLimit)
		d.Devices = slices.Delete(d.Devices, 0, 1)
	}
	d.Devices = append(d.Devices, v)
	s.ids.Set(h, o)
	s.sets.Set(SetDevices).Add(o)
	events = append(events, deviceEvent(&v, EventDeviceRegistered, ""))
	// The device has asked the person's permission; a refusal that is on record
	// stays.
	fields := engine.FieldDevices
	if Assume(d, tx.AtMs, byte(slices.Index(profile.Channels, push)), profile.SourceDevice) {
		fields |= engine.FieldConsents
		events = append(events, feature.NewEvent(EventSubscribed, feature.Properties{"channel": push, "source": profile.SourceDevice}))
	}
	s.host.Update(o, d, fields, events...)
	return nil
}

// moveAway takes an address off the profile that has it.
func (s *State) moveAway(o uint32, v *profile.Device) {
	d := s.host.Other(o)
	i := slices.IndexFunc(d.Devices, func(x profile.Device) bool { return s.sameDevice(v, &x) })
	if i < 0 {
		return
	}
	x := deviceEvent(&d.Devices[i], EventDeviceRetired, retiredMoved)
	d.Devices = slices.Delete(d.Devices, i, i+1)
	s.keepDevices(o, d)
	s.host.Update(o, d, engine.FieldDevices, x)
}

// sameDevice reports whether two devices have one address, one of which may be masked.
func (s *State) sameDevice(v, x *profile.Device) bool {
	if identifier.IsMasked(v.Address) != identifier.IsMasked(x.Address) {
		return s.deviceHash(v.Kind, v.Address) == s.deviceHash(x.Kind, x.Address)
	}
	return v.Kind == x.Kind && bytes.Equal(v.Address, x.Address)
}

// deviceEvent has the properties of an event about a device: never its address, by which anyone who
// has the credentials could write to it.
func deviceEvent(v *profile.Device, typ, reason string) feature.Event {
	x := feature.NewEvent(typ, feature.Properties{"device_id": string(v.ID), "kind": profile.DeviceKinds[v.Kind]})
	if reason != "" {
		x.Properties["reason"] = reason
	}
	return x
}

// keepDevices keeps the set of profiles with devices in step with a document.
func (s *State) keepDevices(o uint32, d *profile.Document) {
	if len(d.Devices) == 0 {
		s.sets.Set(SetDevices).Remove(o)
	}
}

func (s *State) removeDevice(_ *feature.Tx, c DeviceRemove) *refuse.Refusal {
	o, d, refusal := s.host.Profile(c.Profile)
	if refusal != nil {
		return refusal
	}
	events := s.DropDevices(o, d, retiredRemoved, func(v *profile.Device) bool { return string(v.ID) == c.Device })
	if len(events) == 0 {
		return noDevice()
	}
	s.host.Update(o, d, engine.FieldDevices, events...)
	return nil
}

// DropDevices takes the chosen devices off the profile in d and returns the
// events to record.
func (s *State) DropDevices(o uint32, d *profile.Document, reason string, which func(*profile.Device) bool) (events []feature.Event) {
	d.Devices = slices.DeleteFunc(d.Devices, func(v profile.Device) bool {
		if !which(&v) {
			return false
		}
		s.ids.Remove(s.deviceHash(v.Kind, v.Address))
		events = append(events, deviceEvent(&v, EventDeviceRetired, reason))
		return true
	})
	s.keepDevices(o, d)
	return events
}

// Evict removes the addresses of devices that were too many after a merge.
func (s *State) Evict(devices []profile.Device) {
	for _, v := range devices {
		s.ids.Remove(s.deviceHash(v.Kind, v.Address))
	}
}

// WithDevices are the profiles of an audience that have a device; nil stands
// for all profiles.
func (s *State) WithDevices(audience *roaring.Bitmap) *roaring.Bitmap {
	if audience == nil {
		return s.sets.Members(SetDevices).Clone()
	}
	audience.And(s.sets.Members(SetDevices))
	return audience
}
