package resolver

import (
	"encoding/binary"
	"slices"

	"github.com/musterhq/muster/internal/wire"
)

// contactExtra is what a document holds of a profile as somebody messages are
// sent to. Profiles that only ever sent events have none of it, at the cost of
// one byte.
type contactExtra struct {
	// isContact says that the profile was made, or taken on, as a contact.
	isContact bool
	lists     []uint32 // numbers of lists, in the order they were joined
	blocks    []block
	devices   []device
	engaged   engagement
	soft      []int64 // times of the last soft bounces of e-mail, see softBounce
	caused    caused
	earlier   earlier
}

// earlier is the time of an event from before the profile was created.
type earlier struct {
	ms    int64 // Unix milliseconds
	known bool
}

// block keeps a channel from being sent to, whatever the consent.
type block struct {
	channel byte
	reason  blockReason
	sinceMs int64
}

type blockReason byte

// Why a channel is blocked. Numbers are on disk; a higher one is graver.
const (
	// blockPending: double opt-in was asked for and not confirmed.
	blockPending blockReason = iota + 1
	// blockBounced: a hard bounce, the address does not exist.
	blockBounced
	// blockComplained: marked as spam.
	blockComplained
	// blockSuppressed: by decision of the account.
	blockSuppressed
)

// device is where push messages of a profile go.
type device struct {
	id      []byte // as the account knows it
	kind    byte   // see deviceKinds
	address []byte // a token, or the subscription as JSON
	addedMs int64
}

// engagement counts what a profile did with messages.
type engagement struct {
	sent, opened, clicked             uint64
	lastSentMs, lastOpenMs, lastClick int64
}

// Bits of the mask that says what follows.
const (
	extraContact = 1 << iota
	extraLists
	extraBlocks
	extraDevices
	extraEngaged
	extraSoft
	extraCaused
	extraEarlier
	extraAll = 1<<iota - 1
)

func (x *contactExtra) append(dst []byte) []byte {
	mask := byte(0)
	for _, f := range [...]struct {
		has bool
		bit byte
	}{{x.isContact, extraContact}, {len(x.lists) > 0, extraLists}, {len(x.blocks) > 0, extraBlocks}, {len(x.devices) > 0, extraDevices}, {x.engaged != (engagement{}), extraEngaged}, {len(x.soft) > 0, extraSoft}, {x.caused.n > 0, extraCaused}, {x.earlier.known, extraEarlier}} {
		if f.has {
			mask |= f.bit
		}
	}
	dst = append(dst, mask)
	le := binary.LittleEndian
	if len(x.lists) > 0 {
		dst = binary.AppendUvarint(dst, uint64(len(x.lists)))
		for _, n := range x.lists {
			dst = le.AppendUint32(dst, n)
		}
	}
	if len(x.blocks) > 0 {
		dst = binary.AppendUvarint(dst, uint64(len(x.blocks)))
		for _, b := range x.blocks {
			dst = le.AppendUint64(append(dst, b.channel, byte(b.reason)), uint64(b.sinceMs))
		}
	}
	if len(x.devices) > 0 {
		dst = binary.AppendUvarint(dst, uint64(len(x.devices)))
		for _, v := range x.devices {
			dst = wire.AppendBlock(wire.AppendBlock(append(dst, v.kind), v.id), v.address)
			dst = le.AppendUint64(dst, uint64(v.addedMs))
		}
	}
	if mask&extraEngaged != 0 {
		e := &x.engaged
		for _, n := range [...]uint64{e.sent, e.opened, e.clicked} {
			dst = binary.AppendUvarint(dst, n)
		}
		for _, ms := range [...]int64{e.lastSentMs, e.lastOpenMs, e.lastClick} {
			dst = le.AppendUint64(dst, uint64(ms))
		}
	}
	if len(x.soft) > 0 {
		dst = binary.AppendUvarint(dst, uint64(len(x.soft)))
		for _, ms := range x.soft {
			dst = le.AppendUint64(dst, uint64(ms))
		}
	}
	if x.caused.n > 0 {
		dst = append(binary.AppendUvarint(dst, uint64(x.caused.minute)), x.caused.n)
	}
	if x.earlier.known {
		dst = le.AppendUint64(dst, uint64(x.earlier.ms))
	}
	return dst
}

// decode reads what append wrote; faults are noted in r. Slices have been
// emptied before.
func (x *contactExtra) decode(r *wire.Reader) {
	mask := r.U8()
	if mask&^extraAll != 0 {
		r.Bad = true
		return
	}
	x.isContact = mask&extraContact != 0
	if mask&extraLists != 0 {
		for n := r.Count(4); n > 0; n-- {
			x.lists = append(x.lists, r.U32())
		}
	}
	if mask&extraBlocks != 0 {
		for n := r.Count(10); n > 0; n-- {
			x.blocks = append(x.blocks, block{r.U8(), blockReason(r.U8()), int64(r.U64())})
		}
	}
	if mask&extraDevices != 0 {
		for n := r.Count(11); n > 0; n-- {
			x.devices = append(x.devices, device{kind: r.U8(), id: r.Block(), address: r.Block(), addedMs: int64(r.U64())})
		}
	}
	if mask&extraEngaged != 0 {
		x.engaged = engagement{r.Uvarint(), r.Uvarint(), r.Uvarint(), int64(r.U64()), int64(r.U64()), int64(r.U64())}
	}
	if mask&extraSoft != 0 {
		for n := r.Count(8); n > 0; n-- {
			x.soft = append(x.soft, int64(r.U64()))
		}
	}
	if mask&extraCaused != 0 {
		x.caused = caused{int64(r.Uvarint()), r.U8()}
	}
	if mask&extraEarlier != 0 {
		x.earlier = earlier{int64(r.U64()), true}
	}
}

// fold takes over what another profile has that became part of this one: the
// graver block of each channel holds. It returns devices that are too many.
func (x *contactExtra) fold(o *contactExtra) (shed []device) {
	x.isContact = x.isContact || o.isContact
	for _, n := range o.lists {
		if !slices.Contains(x.lists, n) {
			x.lists = append(x.lists, n)
		}
	}
	for _, b := range o.blocks {
		x.block(b)
	}
	e, f := &x.engaged, &o.engaged
	e.sent, e.opened, e.clicked = e.sent+f.sent, e.opened+f.opened, e.clicked+f.clicked
	e.lastSentMs, e.lastOpenMs, e.lastClick = max(e.lastSentMs, f.lastSentMs), max(e.lastOpenMs, f.lastOpenMs), max(e.lastClick, f.lastClick)
	x.foldSoftBounces(o.soft)
	x.caused.fold(o.caused)
	return x.foldDevices(o.devices)
}

// block blocks a channel, unless something graver does already. It returns
// whether that changed anything.
func (x *contactExtra) block(b block) bool {
	for i := range x.blocks {
		have := &x.blocks[i]
		if have.channel != b.channel {
			continue
		}
		if have.reason >= b.reason {
			return false
		}
		*have = b
		return true
	}
	x.blocks = append(x.blocks, b)
	return true
}

// blocked is what keeps a channel from being sent to, 0 if nothing does.
func (x *contactExtra) blocked(channel byte) blockReason {
	for _, b := range x.blocks {
		if b.channel == channel {
			return b.reason
		}
	}
	return 0
}

// unblock lifts the block of a channel if it is for one of the reasons.
func (x *contactExtra) unblock(channel byte, reasons ...blockReason) bool {
	for i, b := range x.blocks {
		if b.channel == channel && slices.Contains(reasons, b.reason) {
			x.blocks = slices.Delete(x.blocks, i, i+1)
			return true
		}
	}
	return false
}

// maxDevices is how many devices a profile keeps, the newest.
const maxDevices = 20
