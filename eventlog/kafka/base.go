package kafka

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/musterhq/muster/eventlog"
)

// A log that was in files before continues in Kafka with the offset it ended at,
// its base. Each partition of such a topic begins with a base record, and
//
//	offset of a record = its offset in Kafka - 1 + base
//
// so that the record behind the base record has the base for its offset. Retention
// may take the base record, so the first record of each batch has the same bytes
// for its key. The bytes are:
//
//	0  magic, "MBAS"      4
//	4  base               8, little-endian
//	12 CRC-32C of 0 to 12 4
//
// The base record is a tick without a time, with these bytes for its body: a
// produce request that is repeated can put a second one behind the first, and
// the state machine takes that for what it is, a record that does nothing.
const (
	baseMagic = "MBAS"
	baseSize  = 16
)

func appendBase(dst []byte, base int64) []byte {
	at := len(dst)
	dst = append(dst, baseMagic...)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(base))
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[at:], castagnoli))
}

// errBase: bytes begin as those of a base and are not.
var errBase = errors.New("the base of the partition cannot be read")

// decodeBase reads what appendBase wrote. Other bytes are found to be none.
func decodeBase(b []byte) (base int64, found bool, err error) {
	if len(b) != baseSize || !bytes.HasPrefix(b, []byte(baseMagic)) {
		return 0, false, nil
	}
	if sum := binary.LittleEndian.Uint32(b[12:]); sum != crc32.Checksum(b[:12], castagnoli) {
		return 0, false, fmt.Errorf("%w: its checksum is %08x, its bytes have %08x", errBase, sum, crc32.Checksum(b[:12], castagnoli))
	}
	if base = int64(binary.LittleEndian.Uint64(b[4:])); base < 0 {
		return 0, false, fmt.Errorf("%w: it is %d", errBase, base)
	}
	return base, true, nil
}

// baseRecord is the first record of a partition with a base.
func baseRecord(base int64) []byte {
	body := appendBase(nil, base)
	env := eventlog.Envelope{Kind: eventlog.KindTick}
	// Always the same, so that the second one is known as such.
	sum := sha256.Sum256(body)
	copy(env.ID[:], sum[:])
	return append(env.Append(nil), body...)
}

// origin says how a partition's offsets come from Kafka's: offset = Kafka's +
// shift, from Kafka's offset first on. The zero value is a partition without a
// base.
type origin struct {
	shift, first int64
	// key is that of the first record of each batch, nil without a base.
	key []byte
}

func originOf(base int64) *origin {
	return &origin{shift: base - 1, first: 1, key: appendBase(nil, base)}
}

func (o *origin) base() int64 {
	if o.key == nil {
		return 0
	}
	return o.shift + 1
}
