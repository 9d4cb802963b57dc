package profile

import (
	"encoding/binary"
	"slices"

	"github.com/musterhq/muster/internal/wire"
)

// Contact is the part of a document that only contacts have. Profiles that only
// ever sent events have none of it, at the cost of one byte.
type Contact struct {
	// IsContact says that the profile was made, or taken on, as a contact.
	IsContact bool
	Lists     []uint32 // numbers of lists, in the order they were joined
	// Suppressions has at most two of a channel: one that is pending, and a graver one, which
	// comes first and is the one that counts.
	Suppressions []Suppression
	Devices      []Device
	Engaged      Engagement
	SoftBounces  []int64 // times of the last soft bounces of e-mail, see SoftBounce
	Caused       CausedEnrolments
	earlier      earlier
}

// earlier is the time of an event from before the profile was created.
type earlier struct {
	ms    int64 // Unix milliseconds
	known bool
}

// Suppression forbids sending on a channel, whatever the consent.
type Suppression struct {
	Channel byte // its place in Channels
	Reason  SuppressionReason
	SinceMs int64 // log time
}

// SuppressionReason is why a channel is suppressed; 0 is none.
type SuppressionReason byte

// Why a channel is suppressed. Numbers are on disk; a higher one is graver.
const (
	// SuppressionPending: double opt-in was asked for and not confirmed.
	SuppressionPending SuppressionReason = iota + 1
	// SuppressionBounced: a hard bounce, the address does not exist.
	SuppressionBounced
	// SuppressionComplained: marked as spam.
	SuppressionComplained
	// SuppressionByAccount: by decision of the account.
	SuppressionByAccount
)

// rulesPendingKept is the first version of the state machine's rules under which a graver
// suppression keeps a pending one beneath it. Before, an address became mailable without a
// confirmation when its graver suppression was lifted.
const rulesPendingKept = 25

// Device is where push messages of a profile go.
type Device struct {
	ID      []byte // as the account knows it
	Kind    byte   // see DeviceKinds
	Address []byte // a token, or the subscription as JSON
	AddedMs int64
}

// Engagement counts what a profile did with messages.
type Engagement struct {
	Sent, Opened, Clicked               uint64
	LastSentMs, LastOpenMs, LastClickMs int64
}

// Bits of the mask that says what follows.
const (
	extraContact = 1 << iota
	extraLists
	extraSuppressions
	extraDevices
	extraEngaged
	extraSoft
	extraCaused
	extraEarlier
	extraAll = 1<<iota - 1
)

func (x *Contact) append(dst []byte) []byte {
	mask := byte(0)
	for _, f := range [...]struct {
		has bool
		bit byte
	}{{x.IsContact, extraContact}, {len(x.Lists) > 0, extraLists}, {len(x.Suppressions) > 0, extraSuppressions}, {len(x.Devices) > 0, extraDevices}, {x.Engaged != (Engagement{}), extraEngaged}, {len(x.SoftBounces) > 0, extraSoft}, {x.Caused.n > 0, extraCaused}, {x.earlier.known, extraEarlier}} {
		if f.has {
			mask |= f.bit
		}
	}
	dst = append(dst, mask)
	le := binary.LittleEndian
	if len(x.Lists) > 0 {
		dst = binary.AppendUvarint(dst, uint64(len(x.Lists)))
		for _, n := range x.Lists {
			dst = le.AppendUint32(dst, n)
		}
	}
	if len(x.Suppressions) > 0 {
		dst = binary.AppendUvarint(dst, uint64(len(x.Suppressions)))
		for _, b := range x.Suppressions {
			dst = le.AppendUint64(append(dst, b.Channel, byte(b.Reason)), uint64(b.SinceMs))
		}
	}
	if len(x.Devices) > 0 {
		dst = binary.AppendUvarint(dst, uint64(len(x.Devices)))
		for _, v := range x.Devices {
			dst = wire.AppendBlock(wire.AppendBlock(append(dst, v.Kind), v.ID), v.Address)
			dst = le.AppendUint64(dst, uint64(v.AddedMs))
		}
	}
	if mask&extraEngaged != 0 {
		e := &x.Engaged
		for _, n := range [...]uint64{e.Sent, e.Opened, e.Clicked} {
			dst = binary.AppendUvarint(dst, n)
		}
		for _, ms := range [...]int64{e.LastSentMs, e.LastOpenMs, e.LastClickMs} {
			dst = le.AppendUint64(dst, uint64(ms))
		}
	}
	if len(x.SoftBounces) > 0 {
		dst = binary.AppendUvarint(dst, uint64(len(x.SoftBounces)))
		for _, ms := range x.SoftBounces {
			dst = le.AppendUint64(dst, uint64(ms))
		}
	}
	if x.Caused.n > 0 {
		dst = append(binary.AppendUvarint(dst, uint64(x.Caused.minute)), x.Caused.n)
	}
	if x.earlier.known {
		dst = le.AppendUint64(dst, uint64(x.earlier.ms))
	}
	return dst
}

// decode reads what append wrote; faults are noted in r. Slices have been
// emptied before.
func (x *Contact) decode(r *wire.Reader) {
	mask := r.U8()
	if mask&^extraAll != 0 {
		r.Bad = true
		return
	}
	x.IsContact = mask&extraContact != 0
	if mask&extraLists != 0 {
		for n := r.Count(4); n > 0; n-- {
			x.Lists = append(x.Lists, r.U32())
		}
	}
	if mask&extraSuppressions != 0 {
		for n := r.Count(10); n > 0; n-- {
			x.Suppressions = append(x.Suppressions, Suppression{r.U8(), SuppressionReason(r.U8()), int64(r.U64())})
		}
	}
	if mask&extraDevices != 0 {
		for n := r.Count(11); n > 0; n-- {
			x.Devices = append(x.Devices, Device{Kind: r.U8(), ID: r.Block(), Address: r.Block(), AddedMs: int64(r.U64())})
		}
	}
	if mask&extraEngaged != 0 {
		x.Engaged = Engagement{r.Uvarint(), r.Uvarint(), r.Uvarint(), int64(r.U64()), int64(r.U64()), int64(r.U64())}
	}
	if mask&extraSoft != 0 {
		for n := r.Count(8); n > 0; n-- {
			x.SoftBounces = append(x.SoftBounces, int64(r.U64()))
		}
	}
	if mask&extraCaused != 0 {
		x.Caused = CausedEnrolments{int64(r.Uvarint()), r.U8()}
	}
	if mask&extraEarlier != 0 {
		x.earlier = earlier{int64(r.U64()), true}
	}
}

// Merge takes over what another profile has that became part of this one: its lists, the
// graver suppression of each channel, devices and counts. The members of lists are kept a second
// time, as sets of the account, which package contacts moves. rules is the version of the
// state machine's rules. It returns the devices that are too many, the oldest.
func (x *Contact) Merge(o *Contact, rules int) (evicted []Device) {
	x.IsContact = x.IsContact || o.IsContact
	for _, n := range o.Lists {
		if !slices.Contains(x.Lists, n) {
			x.Lists = append(x.Lists, n)
		}
	}
	for _, b := range o.Suppressions {
		x.Suppress(b, rules)
	}
	e, f := &x.Engaged, &o.Engaged
	e.Sent, e.Opened, e.Clicked = e.Sent+f.Sent, e.Opened+f.Opened, e.Clicked+f.Clicked
	e.LastSentMs, e.LastOpenMs, e.LastClickMs = max(e.LastSentMs, f.LastSentMs), max(e.LastOpenMs, f.LastOpenMs), max(e.LastClickMs, f.LastClickMs)
	x.mergeSoftBounces(o.SoftBounces)
	x.Caused.merge(o.Caused)
	return x.mergeDevices(o.Devices)
}

// Suppress suppresses a channel, unless something graver does already; a confirmation is pending
// beneath what is graver, too. rules is the version of the state machine's rules. It returns
// whether that changed anything.
func (x *Contact) Suppress(b Suppression, rules int) bool {
	i := slices.IndexFunc(x.Suppressions, func(have Suppression) bool { return have.Channel == b.Channel })
	switch kept := rules >= rulesPendingKept; {
	case i < 0:
		x.Suppressions = append(x.Suppressions, b)
	case x.Suppressions[i].Reason == b.Reason:
		return false
	case kept && b.Reason == SuppressionPending:
		if x.Pending(b.Channel) {
			return false
		}
		x.Suppressions = slices.Insert(x.Suppressions, i+1, b)
	case kept && x.Suppressions[i].Reason == SuppressionPending:
		x.Suppressions = slices.Insert(x.Suppressions, i, b)
	case x.Suppressions[i].Reason > b.Reason:
		return false
	default:
		x.Suppressions[i] = b
	}
	return true
}

// Pending reports whether a channel's double opt-in was asked for and not confirmed, also
// where something graver suppresses the channel.
func (x *Contact) Pending(channel byte) bool {
	return slices.ContainsFunc(x.Suppressions, func(b Suppression) bool { return b.Channel == channel && b.Reason == SuppressionPending })
}

// GravestSuppression is the gravest suppression of a channel, 0 if there is none.
func (x *Contact) GravestSuppression(channel byte) SuppressionReason {
	for _, b := range x.Suppressions {
		if b.Channel == channel {
			return b.Reason
		}
	}
	return 0
}

// EachSuppression calls fn with the suppression of each channel that counts: the gravest.
func (x *Contact) EachSuppression(fn func(Suppression)) {
	for i, b := range x.Suppressions {
		if !slices.ContainsFunc(x.Suppressions[:i], func(graver Suppression) bool { return graver.Channel == b.Channel }) {
			fn(b)
		}
	}
}

// Unsuppress lifts the suppression of a channel that is for one of the reasons, and reports whether
// there was one. What is pending beneath it counts from then on.
func (x *Contact) Unsuppress(channel byte, reasons ...SuppressionReason) bool {
	for i, b := range x.Suppressions {
		if b.Channel == channel && slices.Contains(reasons, b.Reason) {
			x.Suppressions = slices.Delete(x.Suppressions, i, i+1)
			return true
		}
	}
	return false
}

// MaxDevices is how many devices a profile keeps, the newest.
const MaxDevices = 20

// mergeDevices takes over devices and returns those that were too many, the
// oldest.
func (x *Contact) mergeDevices(other []Device) (evicted []Device) {
	if len(other) == 0 {
		return nil
	}
	x.Devices = append(x.Devices, other...)
	slices.SortStableFunc(x.Devices, func(v, w Device) int { return int(min(max(v.AddedMs-w.AddedMs, -1), 1)) })
	if n := len(x.Devices) - MaxDevices; n > 0 {
		evicted = slices.Clone(x.Devices[:n])
		x.Devices = slices.Delete(x.Devices, 0, n)
	}
	return evicted
}

// String is the reason's name.
func (r SuppressionReason) String() string {
	switch r {
	case SuppressionPending:
		return "pending"
	case SuppressionBounced:
		return "bounced"
	case SuppressionComplained:
		return "complained"
	case SuppressionByAccount:
		return "suppressed"
	}
	return ""
}
