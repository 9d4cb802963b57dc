package columns

// Aliases say whom events of merged profiles count for, at one cut. nil is none.
type Aliases struct {
	winners map[uint32]uint32
	// merged has a bit for each ordinal up to the greatest that is in winners: most
	// are in neither.
	merged []uint64
}

// NewAliases takes the map; it must not be changed any more.
func NewAliases(winners map[uint32]uint32) *Aliases {
	if len(winners) == 0 {
		return nil
	}
	a := &Aliases{winners: winners}
	for o := range winners {
		if w := int(o / 64); w >= len(a.merged) {
			a.merged = append(a.merged, make([]uint64, w+1-len(a.merged))...)
		}
		a.merged[o/64] |= 1 << (o % 64)
	}
	return a
}

// replace puts whom events count for in the place of each ordinal.
func (a *Aliases) replace(ordinals []uint32) {
	if a == nil {
		return
	}
	for i, o := range ordinals {
		if int(o/64) < len(a.merged) && a.merged[o/64]&(1<<(o%64)) != 0 {
			ordinals[i] = a.winners[o]
		}
	}
}
