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
	n, full := bodyLength(b)
	if !full || n < 1 || n > maxRecord || n > len(b)-headSize {
		return 0, nil, 0, errDamaged
	}
	body := b[headSize : headSize+n]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return 0, nil, 0, errDamaged
	}
	return body[0], body[1:], headSize + n, nil
}

// bodyLength is the length that a record's head names; full is false where the head is
// cut short.
func bodyLength(b []byte) (n int, full bool) {
	if len(b) < headSize {
		return 0, false
	}
	return int(binary.LittleEndian.Uint32(b)), true
}
