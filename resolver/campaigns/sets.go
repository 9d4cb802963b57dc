package campaigns

import (
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/internal/profile"
)

// setName names a set of a campaign's recipients among those of the account.
func setName(number uint32, which string) string {
	var b strings.Builder
	b.WriteString("campaign/")
	b.WriteString(strconv.FormatUint(uint64(number), 10))
	b.WriteByte('/')
	b.WriteString(which)
	return b.String()
}

// members reads a set of a campaign's recipients. It must not be changed.
func (s *State) members(x *Campaign, which string) *roaring.Bitmap {
	return s.host.Members(setName(x.Number, which))
}

// set finds a set of a campaign's recipients or makes it.
func (s *State) set(x *Campaign, which string) *profile.OrdinalSet {
	return s.host.Set(setName(x.Number, which))
}

// dropSet removes a set of a campaign's recipients.
func (s *State) dropSet(x *Campaign, which string) { s.host.DropSet(setName(x.Number, which)) }
