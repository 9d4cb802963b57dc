package resolver

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
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
	typeDeviceRegistered = "device_registered"
	typeDeviceRetired    = "device_retired"

	retiredRemoved  = "removed"  // by the account
	retiredMoved    = "moved"    // the address was registered with another profile
	retiredReplaced = "replaced" // the device has got another address
	retiredDead     = "dead"     // its push service says so
	retiredLimit    = "limit"    // the profile has too many, this was the oldest

	mediumPush = "push"
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

func noDevice() *Refusal { return notFound("device", "the contact has no such device") }

// checkDevice says what cannot be stored of a device.
func checkDevice(c *DeviceAdd) *Refusal {
	switch {
	case !slices.Contains(profile.DeviceKinds, c.Kind):
		return invalid("kind", "kind Input should be %s", orList(profile.DeviceKinds))
	case c.Address == "" || len(c.Address) > maxDeviceAddressBytes || !utf8.ValidString(c.Address):
		return invalid("address", "address must be a text of 1 to %d bytes", maxDeviceAddressBytes)
	case len(c.Device) > maxDeviceIDBytes || !utf8.ValidString(c.Device) || strings.ContainsFunc(c.Device, func(r rune) bool { return r < ' ' || r == '/' || r == 0x7f }):
		return invalid("device", "device must be a text of at most %d bytes without slashes", maxDeviceIDBytes)
	}
	return nil
}

// addDevice registers a device. What the profile had under the name or the
// address before goes.
func (m *Machine) addDevice(cmd *command, c DeviceAdd) *Refusal {
	a := cmd.account
	if r := checkDevice(&c); r != nil && !(cmd.redacted && identifier.IsMasked(c.Address)) {
		return r
	}
	kind := slices.Index(profile.DeviceKinds, c.Kind)
	o, _, refusal := m.profileOf(a, c.Profile)
	if refusal != nil {
		return refusal
	}
	if c.Device == "" {
		c.Device = feature.NewID("dev_", cmd.env.ID)
	}
	v := profile.Device{ID: []byte(c.Device), Kind: byte(kind), Address: []byte(c.Address), AddedMs: m.logTime}
	h := a.hasher.HashDevice(v.Kind, v.Address, &m.normal)
	if old := a.ids.Owner(h); old != profile.NoOrdinal && old != o {
		m.moveAway(cmd, old, &v)
	}
	d := &m.doc
	cmd.reply(DeviceReply{a.headers.Get(o).ID.String(), c.Device})
	if slices.ContainsFunc(d.Devices, func(x profile.Device) bool { return m.sameDevice(a, &v, &x) && bytes.Equal(x.ID, v.ID) }) {
		return nil
	}
	var events []feature.Event
	gone := func(x profile.Device, reason string) {
		a.ids.Remove(a.hasher.HashDevice(x.Kind, x.Address, &m.normal))
		events = append(events, deviceEvent(&x, typeDeviceRetired, reason))
	}
	d.Devices = slices.DeleteFunc(d.Devices, func(x profile.Device) bool {
		switch {
		case m.sameDevice(a, &v, &x): // it has another name now
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
	a.ids.Set(h, o)
	a.set(setDevices).Add(o)
	events = append(events, deviceEvent(&v, typeDeviceRegistered, ""))
	// Who lets a device be written to has been asked by it; a refusal that is on
	// record stays.
	fields := engine.FieldDevices
	push := byte(slices.Index(profile.Channels, mediumPush))
	if m.assume(d, push, profile.SourceDevice) {
		fields |= engine.FieldConsents
		events = append(events, feature.NewEvent(typeSubscribed, feature.Properties{"channel": mediumPush, "source": profile.SourceDevice}))
	}
	m.updateProfile(cmd, o, d, fields, events...)
	return nil
}

// moveAway takes an address off the profile that has it.
func (m *Machine) moveAway(cmd *command, o uint32, v *profile.Device) {
	a, d := cmd.account, &m.other
	if err := m.load(a, o, d); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	i := slices.IndexFunc(d.Devices, func(x profile.Device) bool { return m.sameDevice(a, v, &x) })
	if i < 0 {
		return
	}
	x := deviceEvent(&d.Devices[i], typeDeviceRetired, retiredMoved)
	d.Devices = slices.Delete(d.Devices, i, i+1)
	a.keepDevices(o, d)
	m.updateProfile(cmd, o, d, engine.FieldDevices, x)
}

// sameDevice reports whether two devices have one address, one of which may be masked.
func (m *Machine) sameDevice(a *account, v, x *profile.Device) bool {
	if identifier.IsMasked(v.Address) != identifier.IsMasked(x.Address) {
		return a.hasher.HashDevice(v.Kind, v.Address, &m.normal) == a.hasher.HashDevice(x.Kind, x.Address, &m.normal)
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
func (a *account) keepDevices(o uint32, d *profile.Document) {
	if len(d.Devices) == 0 {
		a.set(setDevices).Remove(o)
	}
}

func (m *Machine) removeDevice(cmd *command, c DeviceRemove) *Refusal {
	a := cmd.account
	o, d, refusal := m.profileOf(a, c.Profile)
	if refusal != nil {
		return refusal
	}
	events := m.dropDevices(a, o, d, retiredRemoved, func(v *profile.Device) bool { return string(v.ID) == c.Device })
	if len(events) == 0 {
		return noDevice()
	}
	m.updateProfile(cmd, o, d, engine.FieldDevices, events...)
	return nil
}

// dropDevices takes the chosen devices off the profile in d and returns the
// events to record.
func (m *Machine) dropDevices(a *account, o uint32, d *profile.Document, reason string, which func(*profile.Device) bool) (events []feature.Event) {
	d.Devices = slices.DeleteFunc(d.Devices, func(v profile.Device) bool {
		if !which(&v) {
			return false
		}
		a.ids.Remove(a.hasher.HashDevice(v.Kind, v.Address, &m.normal))
		events = append(events, deviceEvent(&v, typeDeviceRetired, reason))
		return true
	})
	a.keepDevices(o, d)
	return events
}

// redirectDevices makes the devices of a profile that was merged the winner's in
// the index.
func (m *Machine) redirectDevices(a *account, l *loser, winner uint32) {
	for _, v := range l.devices {
		a.ids.Set(a.hasher.HashDevice(v.Kind, v.Address, &m.normal), winner)
	}
}

// evictDevices forgets the addresses that were too many after a merge.
func (m *Machine) evictDevices(a *account) {
	for _, v := range m.shed {
		a.ids.Remove(a.hasher.HashDevice(v.Kind, v.Address, &m.normal))
	}
	m.shed = m.shed[:0]
}

// withDevices are the profiles of an audience that have a device; nil stands
// for all profiles.
func (a *account) withDevices(audience *roaring.Bitmap) *roaring.Bitmap {
	if audience == nil {
		return a.members(setDevices).Clone()
	}
	audience.And(a.members(setDevices))
	return audience
}

// PushAudience are the profiles that a push message to a segment, or to all
// when the id is empty, goes to, and how many members the segment has. ok is
// false while the segment is being built.
func (v *View) PushAudience(segment string) (audience *roaring.Bitmap, members uint64, ok bool) {
	if segment == "" {
		b := v.a.withDevices(nil)
		return b, b.GetCardinality(), true
	}
	if !v.a.engine.Live(segment) {
		return nil, 0, false
	}
	b := v.a.engine.Members(segment, v.a.engine.NowMs()).Clone()
	members = b.GetCardinality()
	return v.a.withDevices(b), members, true
}

// PushDevices are the devices of a profile, and why they may not be sent to, ""
// if they may. Who was erased has none.
func (v *View) PushDevices(ordinal uint32) (devices []Device, reason string, err error) {
	if !v.Has(ordinal) {
		return nil, "erased", nil
	}
	var d profile.Document
	if err := v.decode(ordinal, &d); err != nil {
		return nil, "", err
	}
	return v.contactInfo(&d).Devices, v.a.whyUnreachable(&d, mediumPush), nil
}
