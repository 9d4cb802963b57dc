package view

import (
	"sort"

	"github.com/musterhq/muster/resolver/internal/profile"
)

// maxGrowthSkip bounds how many merged profiles in a row are passed over.
const maxGrowthSkip = 64

// CountBefore is how many of the account's profiles were made before an instant, without the
// anonymous ones.
// Profiles are numbered as they are made, so a few are looked at, not all. One
// that others were merged into says when the oldest of them was made, so it is
// passed over; those next to it tell.
func (v Profiles) CountBefore(atMs int64) (n uint64, err error) {
	all := v.identified()
	var d profile.Document
	at := sort.Search(int(all.GetCardinality()), func(i int) bool {
		for skip := 0; err == nil && skip < maxGrowthSkip; skip++ {
			o, e := all.Select(uint32(i + skip))
			if e != nil {
				return true // behind the last
			}
			if err = v.decode(o, &d); err == nil && len(d.Merged) == 0 {
				return d.CreatedMs >= atMs
			}
		}
		return d.CreatedMs >= atMs
	})
	return uint64(at), err
}
