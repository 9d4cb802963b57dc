package contacts

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/segment/engine"
)

// The types of the events of lists.
const (
	EventListJoined = "list_joined"
	EventListLeft   = "list_left"
)

// The commands of lists.
const (
	CommandListCreate = "list.create"
	CommandListUpdate = "list.update"
	CommandListDelete = "list.delete"
	CommandListRemove = "list.remove"
)

const (
	// MaxLists is how many lists an account has at a time.
	MaxLists = 10_000
	// MaxProfileLists is how many lists a profile can be on.
	MaxProfileLists = 500
	maxDescription  = 2000 // bytes
)

// List is a static list of contacts.
type List struct {
	ID          string `json:"id"`
	Number      uint32 `json:"number"` // dense, in documents instead of the id
	Name        string `json:"name"`
	Description string `json:"description"`
	CreatedMs   int64  `json:"created_ms"`
	UpdatedMs   int64  `json:"updated_ms"`
	// Topic is nil for a list that never was one.
	*Topic
}

// maxNumber bounds the numbers of lists that an account has made in all, 4 billion.
const maxNumber = 1<<32 - 1

// ListSave creates a list, or changes the one with the ID.
type ListSave struct {
	ID          string `json:"id,omitempty"`
	Name        string `json:"name"`
	Description string `json:"description"`
	TopicSave
}

// ListDelete removes a list that nothing refers to.
type ListDelete struct {
	ID string `json:"id"`
}

// ListRemove takes a profile off a list.
type ListRemove struct {
	ListID  string `json:"list_id"`
	Profile string `json:"profile"`
}

// The sets of profiles that are contacts, and that have a device for push
// messages.
const (
	SetContacts = "contacts"
	SetDevices  = "devices"
)

// ListSet names the set of a list's members.
func ListSet(number uint32) string { return "list/" + strconv.FormatUint(uint64(number), 10) }

// install takes in a list, in whatever order they come.
func (s *State) install(l *List) {
	s.lists[l.ID] = l
	s.listIDs[l.Number] = l.ID
	if l.Topic != nil {
		s.topics[l.Number] = l
	}
	s.host.TakeNumber(l.Number)
}

// List finds a list, nil if there is none. It must not be changed.
func (s *State) List(id string) *List { return s.lists[id] }

// ListIDs are the ids of the lists by number. They must not be changed.
func (s *State) ListIDs() map[uint32]string { return s.listIDs }

// Live is how many lists a profile is on. Numbers of deleted lists stay in its document
// until it joins another.
func (s *State) Live(d *profile.Document) (n int) {
	for _, number := range d.Lists {
		if _, ok := s.listIDs[number]; ok {
			n++
		}
	}
	return n
}

func (s *State) createList(tx *feature.Tx, c ListSave) *refuse.Refusal {
	if r := checkList(&c); r != nil {
		return r
	}
	number := s.host.NextNumber()
	switch {
	case len(s.lists) >= MaxLists:
		return refuse.AtLimit("", "this account has %d lists, the most it can have; delete one first", MaxLists)
	case number == maxNumber:
		return refuse.AtLimit("", "this account has made %d lists, the most it can ever make; use one of them", uint32(maxNumber))
	}
	l := &List{ID: feature.NewID("lst_", tx.Record), Number: number, Name: c.Name, Description: c.Description, CreatedMs: tx.AtMs, UpdatedMs: tx.AtMs}
	if r := s.changeTopic(l, &c.TopicSave); r != nil {
		return r
	}
	s.install(l)
	s.saveList(tx, l)
	s.host.SaveNumbers()
	tx.Reply = l
	return nil
}

func checkList(c *ListSave) *refuse.Refusal {
	if r := refuse.Name(c.Name); r != nil {
		return r
	}
	if len(c.Description) > maxDescription {
		return refuse.Invalid("description", "description must have at most %d bytes", maxDescription)
	}
	return nil
}

// changeTopic changes what people see of a list, which is not installed yet.
func (s *State) changeTopic(l *List, c *TopicSave) *refuse.Refusal {
	t, refusal := c.change(l.Topic)
	switch {
	case refusal != nil:
		return refusal
	case t != nil && l.Topic == nil && len(s.topics) >= MaxTopics:
		return refuse.AtLimit("public", "this account has %d lists that are or were public, the most it can have; delete one first", MaxTopics)
	}
	l.Topic = t
	if t != nil {
		s.host.BeginConsentLog()
	}
	return nil
}

func (s *State) listKey(id string) string {
	return state.EntityKey(s.account, state.EntityList, id)
}

func (s *State) saveList(tx *feature.Tx, l *List) {
	tx.Store.PutEntity(s.listKey(l.ID), must.JSON(l))
}

func (s *State) updateList(tx *feature.Tx, c ListSave) *refuse.Refusal {
	old := s.lists[c.ID]
	if old == nil {
		return NoList()
	}
	if r := checkList(&c); r != nil {
		return r
	}
	l := *old
	l.Name, l.Description, l.UpdatedMs = c.Name, c.Description, tx.AtMs
	if r := s.changeTopic(&l, &c.TopicSave); r != nil {
		return r
	}
	s.install(&l)
	s.saveList(tx, &l)
	tx.Reply = &l
	return nil
}

// NoList refuses a list that there is none of.
func NoList() *refuse.Refusal {
	return refuse.NotFound("list_id", "list_id: there is no such list")
}

// deleteList removes a list, and all that is kept of it. Its number stays in
// documents, where it means nothing from then on.
func (s *State) deleteList(tx *feature.Tx, c ListDelete) *refuse.Refusal {
	old := s.lists[c.ID]
	if old == nil {
		return NoList()
	}
	if users := s.host.ListUsers(c.ID); users != "" {
		return &refuse.Refusal{Code: "conflict", Field: "list_id", Message: "the list is used by " + users + "; change those first"}
	}
	delete(s.lists, old.ID)
	delete(s.listIDs, old.Number)
	delete(s.topics, old.Number)
	s.host.DropSet(ListSet(old.Number))
	s.host.DropSet(leftSet(old.Number))
	tx.Store.PutEntity(s.listKey(old.ID), nil)
	return nil
}

// Join puts the profile in d on a list, in the document and the list's set. It
// returns the event of it, none if the profile is on the list already.
func (s *State) Join(o uint32, d *profile.Document, l *List) (events []feature.Event, refusal *refuse.Refusal) {
	if slices.Contains(d.Lists, l.Number) {
		return nil, nil
	}
	if s.HasLeft(o, l) {
		return nil, LeftTopic()
	}
	d.Lists = slices.DeleteFunc(d.Lists, func(n uint32) bool { _, ok := s.listIDs[n]; return !ok })
	if len(d.Lists) >= MaxProfileLists {
		return nil, FullLists()
	}
	d.Lists = append(d.Lists, l.Number)
	s.sets.Set(ListSet(l.Number)).Add(o)
	return []feature.Event{feature.NewEvent(EventListJoined, feature.Properties{"list_id": l.ID, "list_name": l.Name})}, nil
}

// FullLists refuses to put a contact on one more list.
func FullLists() *refuse.Refusal {
	return refuse.AtLimit("list_id", "list_id: the contact is on %d lists, the most it can be on", MaxProfileLists)
}

func (s *State) removeFromList(_ *feature.Tx, c ListRemove) *refuse.Refusal {
	l := s.lists[c.ListID]
	if l == nil {
		return NoList()
	}
	o, d, refusal := s.host.Profile(c.Profile)
	if refusal != nil {
		return refusal
	}
	events := s.leave(o, d, l)
	if len(events) == 0 {
		return refuse.NotFound("profile", "the contact is not on this list")
	}
	s.host.Update(o, d, engine.FieldLists, events...)
	return nil
}

// leave takes the profile in d off a list, in the document and the list's set. It returns the
// event of it, none if the profile is not on the list.
func (s *State) leave(o uint32, d *profile.Document, l *List) []feature.Event {
	i := slices.Index(d.Lists, l.Number)
	if i < 0 {
		return nil
	}
	d.Lists = slices.Delete(d.Lists, i, i+1)
	s.sets.Set(ListSet(l.Number)).Remove(o)
	return []feature.Event{feature.NewEvent(EventListLeft, feature.Properties{"list_id": l.ID, "list_name": l.Name})}
}

// Lists lists the lists, the oldest first.
func (s *State) Lists() []List {
	out := make([]List, 0, len(s.lists))
	for _, l := range s.lists {
		out = append(out, *l)
	}
	slices.SortFunc(out, func(x, y List) int { return cmp.Compare(x.Number, y.Number) })
	return out
}

// Find finds a list.
func (s *State) Find(id string) (List, bool) {
	if l := s.lists[id]; l != nil {
		return *l, true
	}
	return List{}, false
}

// Members are the profiles on a list. The answer must not be changed.
func (s *State) Members(l List) *roaring.Bitmap { return s.sets.Members(ListSet(l.Number)) }

// MembersPage lists members of a list in order of ordinals, from an ordinal on, limit at
// most.
func (s *State) MembersPage(l List, from uint32, limit int) []uint32 {
	return profile.Page(s.Members(l), from, limit)
}
