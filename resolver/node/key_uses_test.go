package node

import (
	"sync/atomic"
	"testing"

	"github.com/musterhq/muster/resolver"
)

// TestUsesOfRecords: each use is in one record of its account's partition, in the order in
// which they came, and no record holds more than the state takes.
func TestUsesOfRecords(t *testing.T) {
	n := &Node{partitions: make([]atomic.Pointer[partition], 3)}
	var uses []uint64
	for i := range uint64(2*resolver.MaxKeyUses + 7) {
		uses = append(uses, i*i)
	}
	seen, last := 0, map[int]uint64{}
	for _, record := range usesOfRecords(n, uses, func(u uint64) uint64 { return u }) {
		if len(record) == 0 || len(record) > resolver.MaxKeyUses {
			t.Errorf("a record of %d uses", len(record))
		}
		of := n.PartitionOf(record[0])
		for _, u := range record {
			if p := n.PartitionOf(u); p != of {
				t.Fatalf("account %d of partition %d is in a record of partition %d", u, p, of)
			}
			if u != 0 && u <= last[of] {
				t.Fatalf("partition %d: %d comes behind %d", of, u, last[of])
			}
			last[of] = u
			seen++
		}
	}
	if seen != len(uses) {
		t.Errorf("%d of %d uses are in records", seen, len(uses))
	}
}
