package capture

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Damage is bytes of a segment that are no records and no torn tail.
type Damage struct {
	// Path is the segment's file, Position the first byte that is wrong.
	Path     string
	Position int64
	// Lost is how many bytes are passed over in all.
	Lost int64
}

func (d Damage) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d: captured messages in %d bytes cannot be read, all others are kept. They are in no backup; to be rid of the report, remove the file", d.Path, d.Position, d.Lost)
}

// scanned is what a segment's bytes hold.
type scanned struct {
	// sound is where a torn tail begins, the length of all where there is none.
	sound int
	// damage is where the first bytes stand that are neither records nor a torn tail, -1
	// without any; lost is how many bytes such have.
	damage, lost int
}

// scan reads a segment's bytes and calls the function of each record's kind with its
// place. What is damaged is passed over up to the next record. Records of unknown kinds
// are passed over, too.
func scan(b []byte, message func(m *Message, offset, size int), again func(r *repeat)) scanned {
	out := scanned{sound: len(b), damage: -1}
	skip := func(from, to int) {
		if out.damage < 0 {
			out.damage = from
		}
		out.lost += to - from
	}
	at := len(segmentMagic)
	if len(b) < at || [8]byte(b[:8]) != segmentMagic {
		if len(b) < at && bytes.HasPrefix(segmentMagic[:], b) || blank(b) {
			out.sound = 0
			return out
		}
		at = min(at, len(b))
		skip(0, at)
	}
	for at < len(b) {
		size, ok := read(b[at:], at, message, again)
		if ok {
			at += size
			continue
		}
		next := at + 1
		for next < len(b) {
			if kind, _, _, err := nextRecord(b[next:]); err == nil && (kind == kindMessage || kind == kindRepeat) {
				break
			}
			next++
		}
		if next == len(b) && torn(b[at:]) {
			out.sound = at
			return out
		}
		skip(at, next)
		at = next
	}
	return out
}

// read reads the record that b starts with, which stands at byte at.
func read(b []byte, at int, message func(m *Message, offset, size int), again func(r *repeat)) (size int, ok bool) {
	kind, payload, size, err := nextRecord(b)
	if err != nil {
		return 0, false
	}
	switch kind {
	case kindMessage:
		var m Message
		if json.Unmarshal(payload, &m) != nil || m.ID == "" {
			return 0, false
		}
		message(&m, at, size)
	case kindRepeat:
		var r repeat
		if json.Unmarshal(payload, &r) != nil {
			return 0, false
		}
		again(&r)
	}
	return size, true
}

// torn reports whether the bytes behind the last record are of a write that was cut off: a
// record has its length written first and ends with a line feed, and what never reached
// the disk is missing, or zeros.
func torn(b []byte) bool {
	if b[len(b)-1] == 0 {
		return true
	}
	n, full := bodyLength(b)
	return !full || n >= 1 && n <= maxRecord && n > len(b)-headSize && !bytes.HasSuffix(b, []byte("}\n"))
}

// blank reports whether all bytes are zeros.
func blank(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }
