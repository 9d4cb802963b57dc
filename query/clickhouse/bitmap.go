package clickhouse

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
)

var errBadBitmap = errors.New("ClickHouse sent a bitmap that cannot be read")

// readBitmap reads the state of ClickHouse's groupBitmap over UInt32: a byte 0,
// the number of values (1 byte, at most 32) and these (4 bytes each); or a byte
// 1, a length (varint) and a Roaring bitmap in its portable form. The state is
// not kept.
func readBitmap(into *roaring.Bitmap, state []byte) error {
	if len(state) < 2 {
		return fmt.Errorf("%w: it has %d bytes", errBadBitmap, len(state))
	}
	switch kind, rest := state[0], state[1:]; kind {
	case 0:
		n := int(rest[0])
		if rest = rest[1:]; len(rest) != 4*n {
			return fmt.Errorf("%w: %d values in %d bytes", errBadBitmap, n, len(rest))
		}
		for i := range n {
			into.Add(binary.LittleEndian.Uint32(rest[4*i:]))
		}
		return nil
	case 1:
		n, used := binary.Uvarint(rest)
		if used <= 0 || n != uint64(len(rest)-used) {
			return fmt.Errorf("%w: its length is wrong", errBadBitmap)
		}
		if err := into.UnmarshalBinary(rest[used:]); err != nil {
			return fmt.Errorf("%w: %w", errBadBitmap, err)
		}
		return nil
	default:
		return fmt.Errorf("%w: it begins with %d", errBadBitmap, kind)
	}
}
