package view

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/search"
)

// ProfilePage is a part of what a search finds. With a Next there may be more, even
// where the page is empty: the work of a page is bounded.
type ProfilePage struct {
	Profiles []*Profile
	Next     *search.Place
}

// Search lists profiles. Errors are [search.ErrTooMany] and the store's.
func (v Profiles) Search(s *search.Query) (page ProfilePage, err error) {
	page.Next, err = search.Search(searched{v.base}, s, func(place search.Place, d *profile.Document) bool {
		p := v.profile(place.Ordinal, d)
		if s.Order == search.OrderLastEvent {
			p.LastEventMs = place.AtMs // there may have been another since the places were found
		}
		if s.Status != "" && p.Status(s.Channel, s.AtMs) != s.Status {
			return false
		}
		page.Profiles = append(page.Profiles, p)
		return true
	})
	return page, err
}

// ByLastEvent begins a search in [search.OrderLastEvent]: [search.LastEvents.Rank] follows,
// outside the view, and then [Profiles.Search] of a view of the same account. The
// error is that of SearchProfiles.
func (v Profiles) ByLastEvent(s *search.Query) (*search.LastEvents, error) {
	return search.ByLastEvent(searched{v.base}, s)
}

// Holders lists the profiles that show an identifier, the one that it identifies and
// those that share it, in order of ordinals from one on, limit at most.
func (v Profiles) Holders(kind identifier.Kind, value string, from uint32, limit int) ([]uint32, error) {
	return search.Holders(searched{v.base}, kind, value, from, limit)
}

// PlaceIn is the place of the profile among those that a search lists.
func (p *Profile) PlaceIn(s *search.Query) *search.Place {
	d := profile.Document{FirstName: []byte(p.FirstName), LastName: []byte(p.LastName)}
	for _, id := range p.Identities {
		d.Identifiers = append(d.Identifiers, profile.Identifier{Kind: id.Kind, Value: []byte(id.Value)})
	}
	return s.PlaceOf(p.Ordinal, &d, p.LastEventMs)
}

// searched is an account as searches see it, see [search.Account].
type searched struct{ v *base }

func (x searched) Number() uint64 { return x.v.a.Number }

func (x searched) Store() *state.Store { return x.v.store }

func (x searched) Hasher() identifier.Hasher { return x.v.a.Profiles.Hasher }

func (x searched) Headers() *profile.HeaderTable { return &x.v.a.Profiles.Headers }

func (x searched) Decode(ordinal uint32, d *profile.Document) error { return x.v.decode(ordinal, d) }

func (x searched) All() *roaring.Bitmap { return x.v.a.Engine.Universe() }

func (x searched) Anonymous() *roaring.Bitmap { return x.v.a.Engine.Anonymous() }

func (x searched) WithStatus(channel, status string) *roaring.Bitmap {
	return x.v.a.Profiles.Reach.WithStatus(channel, status)
}
