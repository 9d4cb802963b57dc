package profiles

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/api/internal/evaluation"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/search"
	"github.com/musterhq/muster/resolver/view"
	"github.com/musterhq/muster/segment"
)

// maxSearchBytes bounds the text of a search.
const maxSearchBytes = 512

// profileOrders are the orders of a search by name.
var profileOrders = map[string]search.Order{
	"match": search.OrderMatch, "newest": search.OrderNewest, "oldest": search.OrderOldest, "last_event": search.OrderLastEvent,
}

func (a *API) searchRoute() handler.Route {
	return handler.Route{Handle: a.searchProfiles, Operation: operation.Operation{Method: "GET", Path: "/profiles/search", Permission: "contacts:read", ID: "searchProfiles", Summary: "List and search profiles",
		About: "All profiles, or those that `q` and the filters choose. Exact: what an acknowledged event changed is in the next answer. The work of a page is bounded, so with rare statuses a page may have few profiles, or none, and lead on with `next`.",
		Query: []operation.Parameter{
			operation.Query("q", shape.Text("ann", "What an e-mail, an external id, a phone number, a name or a last name begins with, whatever its case; of a phone number digits count alone. A first and a last name have a space between them.").Bytes(0, maxSearchBytes)),
			operation.Query("segment_id", shape.SegmentID("Members of this segment alone.")),
			operation.Query("list_id", shape.ListID("Those on this list alone.")),
			operation.Query("status", shape.ContactStatus("Those with this status on the channel alone.")),
			operation.Query("channel", shape.Channel("The channel of `status`.").Default("email")),
			operation.Query("sort", shape.Word("`match`, the default with `q`: by what matches, e-mails first, then external ids, phone numbers, names and last names. `newest`, the default without, and `oldest`: as the profiles were made. `last_event`: the latest event first.",
				"match", "newest", "oldest", "last_event")),
		},
		Data: shape.List(shapes.ProfileRow, ""), Paged: true, Also: []int{404}}}
}

// profileFilter is the query of a search.
type profileFilter struct {
	search.Query
	segment, list string // ids, "" for any
}

// hash tells the cursors of different searches apart.
func (f *profileFilter) hash() (short [8]byte) {
	h := sha256.New()
	for _, s := range []string{f.Text, f.segment, f.list, f.Status, f.Channel} {
		fmt.Fprintf(h, "%d %s\n", len(s), s)
	}
	fmt.Fprintf(h, "%d", f.Order)
	copy(short[:], h.Sum(nil))
	return short
}

// readProfileFilter reads the query of a search.
func readProfileFilter(c *handler.Call) (f profileFilter, err error) {
	if f.Limit, err = c.Limit(); err != nil {
		return f, err
	}
	args := c.QueryArgs()
	text := func(name string) string { return strings.TrimSpace(string(args.Peek(name))) }
	f.Text, f.segment, f.list, f.Status = text("q"), text("segment_id"), text("list_id"), text("status")
	if len(f.Text) > maxSearchBytes {
		return f, handler.BadField("q", "q is longer than %d bytes", maxSearchBytes)
	}
	channel := text("channel")
	switch {
	case f.Status != "" && !slices.Contains(segment.ContactStatuses, f.Status):
		return f, handler.BadField("status", "status must be one of %s", strings.Join(segment.ContactStatuses, ", "))
	case channel != "" && f.Status == "":
		return f, handler.BadField("channel", "channel is that of a status; give status too, or leave channel out")
	case channel != "" && !slices.Contains(record.Channels, channel):
		return f, handler.BadField("channel", "channel must be one of %s", strings.Join(record.Channels, ", "))
	case f.Status != "":
		if f.Channel = channel; channel == "" {
			f.Channel = "email"
		}
	}
	order := text("sort")
	switch {
	case order == "" && f.Text != "":
		order = "match"
	case order == "":
		order = "newest"
	case profileOrders[order] == 0:
		return f, handler.BadField("sort", "sort must be match, newest, oldest or last_event")
	case order == "match" && f.Text == "":
		return f, handler.BadField("sort", "sort by match needs a q; leave sort out, or use newest, oldest or last_event")
	}
	f.Order = profileOrders[order]
	f.After, err = f.place(c)
	return f, err
}

// A cursor of a search: the search's hash, field, time, ordinal and text.
const searchCursorBytes = 8 + 1 + 8 + 4

func (f *profileFilter) cursor(p *search.Place) string {
	hash := f.hash()
	b := append(hash[:], p.Field)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.AtMs))
	b = binary.LittleEndian.AppendUint32(b, p.Ordinal)
	return paging.Encode(paging.Profiles, append(b, p.Text...))
}

// place is where the page begins, nil for the beginning.
func (f *profileFilter) place(c *handler.Call) (*search.Place, error) {
	b, err := c.Cursor(paging.Profiles, 0)
	if b == nil || err != nil {
		return nil, err
	}
	if len(b) < searchCursorBytes {
		return nil, handler.CursorFault(paging.ErrCursor)
	}
	if [8]byte(b) != f.hash() {
		return nil, handler.BadField("cursor", "cursor belongs to another search; leave it out to start at the beginning")
	}
	return &search.Place{
		Field: b[8], AtMs: int64(binary.LittleEndian.Uint64(b[9:])), Ordinal: binary.LittleEndian.Uint32(b[17:]), Text: string(b[searchCursorBytes:]),
	}, nil
}

// searchProfiles answers GET /profiles/search.
func (a *API) searchProfiles(c *handler.Call) (any, error) {
	f, err := readProfileFilter(c)
	if err != nil {
		return nil, err
	}
	var members *roaring.Bitmap // of a segment that is building
	var found view.ProfilePage
	var byLastEvent *search.LastEvents
	for {
		live := true
		err = c.Read(func(v *resolver.View) (err error) {
			f.AtMs, f.Within = a.opts.Chain.Instant(v), nil
			if f.list != "" {
				l, ok := v.Contacts().Find(f.list)
				if !ok {
					return errNoList
				}
				f.Within = append(f.Within, v.Contacts().Members(l))
			}
			if f.segment != "" {
				if _, ok := v.Segments().Get(f.segment); !ok {
					return handler.ErrNoSegment
				}
				within := members
				if within == nil {
					if within, live = v.Segments().Members(f.segment, f.AtMs); !live {
						return nil
					}
				}
				f.Within = append(f.Within, within)
			}
			if f.Order == search.OrderLastEvent {
				byLastEvent, err = v.Profiles().ByLastEvent(&f.Query)
				return err
			}
			found, err = v.Profiles().Search(&f.Query)
			return err
		})
		if errors.Is(err, search.ErrTooMany) {
			return nil, handler.BadField("sort", "sort: too many profiles match to be sorted; give more of q, filter by segment_id or list_id, or sort otherwise")
		}
		if err != nil {
			return nil, err
		}
		if live {
			break
		}
		if members, err = a.membersNow(c, f.segment); err != nil {
			return nil, err
		}
	}
	if byLastEvent != nil {
		byLastEvent.Rank() // changes of the state do not wait for it
		err = c.Read(func(v *resolver.View) (err error) {
			found, err = v.Profiles().Search(&f.Query)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	out := []record.ProfileRow{}
	var room paging.Room
	for _, p := range found.Profiles {
		row := record.NewProfileRow(p, f.AtMs)
		if !room.Take(row) {
			break
		}
		out = append(out, row)
	}
	next := ""
	switch {
	case len(out) < len(found.Profiles):
		last := found.Profiles[len(out)-1]
		next = f.cursor(last.PlaceIn(&f.Query))
	case found.Next != nil:
		next = f.cursor(found.Next)
	}
	return handler.Page{Items: out, Next: next}, nil
}

// membersNow are the members of a segment that is building, by history.
func (a *API) membersNow(c *handler.Call, id string) (*roaring.Bitmap, error) {
	var root *segment.Node
	q, err := a.opts.Evaluation.Ask(c, func(q *evaluation.Question, v *resolver.View) error {
		s, ok := v.Segments().Get(id)
		if !ok {
			return handler.ErrNoSegment
		}
		root = s.Root
		q.Gather(v, root)
		return nil
	})
	if err != nil {
		return nil, err
	}
	defer q.Close()
	return q.Who(q.Ctx, root)
}
