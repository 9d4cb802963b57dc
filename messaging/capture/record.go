package capture

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

var (
	segmentMagic = [8]byte{'M', 'U', 'S', 'T', 'C', 'A', 'P', '1'}
	castagnoli   = crc32.MakeTable(crc32.Castagnoli)
)

const (
	headSize = 8 // length and checksum
	// maxRecord bounds a record, in bytes. Texts at their bounds fit even when
	// JSON has to escape every byte.
	maxRecord = 8 << 20

	kindMessage byte = 1
	kindRepeat  byte = 2
)

// repeat is the payload of kind 2.
type repeat struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
}

func encodeRecord(kind byte, payload any) ([]byte, error) {
	var b bytes.Buffer
	b.Write([]byte{0, 0, 0, 0, 0, 0, 0, 0, kind})
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // would triple the size of HTML
	if err := e.Encode(payload); err != nil {
		return nil, fmt.Errorf("capture: encoding: %w", err)
	}
	rec := b.Bytes()
	if len(rec)-headSize > maxRecord {
		return nil, fmt.Errorf("capture: the message takes %d bytes, at most %d are kept", len(rec), maxRecord)
	}
	binary.LittleEndian.PutUint32(rec, uint32(len(rec)-headSize))
	binary.LittleEndian.PutUint32(rec[4:], crc32.Checksum(rec[headSize:], castagnoli))
	return rec, nil
}

var errDamaged = errors.New("damaged")

// nextRecord returns the record b starts with and its size. errDamaged says that
// there is none, be it torn, be it something else.
func nextRecord(b []byte) (kind byte, payload []byte, size int, err error) {
	if len(b) < headSize {
		return 0, nil, 0, errDamaged
	}
	n := int(binary.LittleEndian.Uint32(b))
	if n < 1 || n > maxRecord || n > len(b)-headSize {
		return 0, nil, 0, errDamaged
	}
	body := b[headSize : headSize+n]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return 0, nil, 0, errDamaged
	}
	return body[0], body[1:], headSize + n, nil
}

// scan reads a segment's bytes and calls the function of each record's kind with
// its place. It returns the length of what is sound; err says why it ends there,
// nil at the end of b. Records of unknown kinds are passed over.
func scan(b []byte, message func(m *Message, offset, size int), again func(r *repeat)) (sound int, err error) {
	if len(b) < len(segmentMagic) || [8]byte(b[:8]) != segmentMagic {
		return 0, errDamaged
	}
	for at := len(segmentMagic); at < len(b); {
		kind, payload, size, err := nextRecord(b[at:])
		if err != nil {
			return at, err
		}
		switch kind {
		case kindMessage:
			var m Message
			if json.Unmarshal(payload, &m) != nil || m.ID == "" {
				return at, errDamaged
			}
			message(&m, at, size)
		case kindRepeat:
			var r repeat
			if json.Unmarshal(payload, &r) != nil {
				return at, errDamaged
			}
			again(&r)
		}
		at += size
	}
	return len(b), nil
}
