package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// skipRecords are records to pass over, by partition: PARTITION:OFFSET.
type skipRecords map[int][]int64

// Repeated implements [cli.Repeated].
func (skipRecords) Repeated() {}

// Set implements [flag.Value].
func (s skipRecords) Set(text string) error {
	p, o, ok := strings.Cut(text, ":")
	partition, err1 := strconv.ParseUint(p, 10, 16)
	offset, err2 := strconv.ParseUint(o, 10, 63)
	if !ok || err1 != nil || err2 != nil {
		return fmt.Errorf("must be PARTITION:OFFSET, such as 0:12345")
	}
	if !slices.Contains(s[int(partition)], int64(offset)) {
		s[int(partition)] = append(s[int(partition)], int64(offset))
	}
	return nil
}

// String implements [flag.Value].
func (s skipRecords) String() string {
	var out []string
	for p, offsets := range s {
		for _, o := range offsets {
			out = append(out, fmt.Sprintf("%d:%d", p, o))
		}
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}
