package resolver

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

// The commands of lists.
const (
	CommandListCreate = "list.create"
	CommandListUpdate = "list.update"
	CommandListDelete = "list.delete"
	CommandListAdd    = "list.add.2"
	CommandListRemove = "list.remove"

	// commandListAdd1 is [CommandListAdd] in logs of before version 8 of the rules.
	commandListAdd1 = "list.add"
)

const (
	maxLists        = 10_000 // of an account, at a time
	maxProfileLists = 500    // of a profile
	maxDescription  = 2000   // bytes
)

// List is a static list of contacts.
type List struct {
	ID          string `json:"id"`
	Number      uint32 `json:"number"` // dense, in documents instead of the id
	Name        string `json:"name"`
	Description string `json:"description"`
	CreatedMs   int64  `json:"created_ms"`
	UpdatedMs   int64  `json:"updated_ms"`
}

// maxNumber bounds the numbers of lists and of campaigns that an account has made
// in all, 4 billion of each.
const maxNumber = 1<<32 - 1

// ListSave creates a list, or changes the one with the ID.
type ListSave struct {
	ID          string `json:"id,omitempty"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// ListDelete removes a list that nothing refers to.
type ListDelete struct {
	ID string `json:"id"`
}

// ListAdd puts a contact on a list; it is made if its e-mail is not on file.
type ListAdd struct {
	ListID string        `json:"list_id"`
	Create ContactCreate `json:"create"`
}

// ListRemove takes a profile off a list.
type ListRemove struct {
	ListID  string `json:"list_id"`
	Profile string `json:"profile"`
}

// The sets of profiles that are contacts, and that have a device for push
// messages.
const (
	setContacts = "contacts"
	setDevices  = "devices"
)

// listSet names the set of a list's members.
func listSet(number uint32) string { return "list/" + strconv.FormatUint(uint64(number), 10) }

// installList takes in a list, in whatever order they come.
func (a *account) installList(l *List) {
	a.lists[l.ID] = l
	a.listIDs[l.Number] = l.ID
	a.NextList = max(a.NextList, l.Number+1)
}

// list finds a list.
func (a *account) list(id string) *List { return a.lists[id] }

// liveLists is how many lists the profile is on. Numbers of deleted lists stay in
// its document until it joins another.
func (a *account) liveLists(d *profile.Document) (n int) {
	for _, number := range d.Lists {
		if _, ok := a.listIDs[number]; ok {
			n++
		}
	}
	return n
}

func (m *Machine) createList(cmd *command, c ListSave) *Refusal {
	if r := checkList(&c); r != nil {
		return r
	}
	a := cmd.account
	switch {
	case len(a.lists) >= maxLists:
		return atLimit("", "this account has %d lists, the most it can have; delete one first", maxLists)
	case a.NextList == maxNumber:
		return atLimit("", "this account has made %d lists, the most it can ever make; use one of them", uint32(maxNumber))
	}
	l := &List{ID: feature.NewID("lst_", cmd.env.ID), Number: a.NextList, Name: c.Name, Description: c.Description, CreatedMs: m.logTime, UpdatedMs: m.logTime}
	a.installList(l)
	m.saveList(a, l)
	m.saveNumbers(a)
	cmd.reply(l)
	return nil
}

func checkList(c *ListSave) *Refusal {
	if r := refuse.Name(c.Name); r != nil {
		return r
	}
	if len(c.Description) > maxDescription {
		return invalid("description", "description must have at most %d bytes", maxDescription)
	}
	return nil
}

func (m *Machine) saveList(a *account, l *List) {
	m.store.PutEntity(state.EntityKey(a.number, state.EntityList, l.ID), must.JSON(l))
}

// saveNumbers stores the numbers of what is made next.
func (m *Machine) saveNumbers(a *account) {
	m.store.PutEntity(state.EntityKey(a.number, state.EntityAccount, ""), must.JSON(a.accountEntity))
}

func (m *Machine) updateList(cmd *command, c ListSave) *Refusal {
	old := cmd.account.list(c.ID)
	if old == nil {
		return noList()
	}
	if r := checkList(&c); r != nil {
		return r
	}
	l := *old
	l.Name, l.Description, l.UpdatedMs = c.Name, c.Description, m.logTime
	cmd.account.installList(&l)
	m.saveList(cmd.account, &l)
	cmd.reply(&l)
	return nil
}

func noList() *Refusal { return notFound("list_id", "list_id: there is no such list") }

// deleteList removes a list, and all that is kept of it. Its number stays in
// documents, where it means nothing from then on.
func (m *Machine) deleteList(cmd *command, c ListDelete) *Refusal {
	a := cmd.account
	old := a.list(c.ID)
	if old == nil {
		return noList()
	}
	if list := a.usesOfList(c.ID); len(list) > 0 {
		return &Refusal{Code: "conflict", Field: "list_id", Message: "the list is used by " + users(list) + "; change those first"}
	}
	delete(a.lists, old.ID)
	delete(a.listIDs, old.Number)
	m.dropSet(a, listSet(old.Number))
	m.store.PutEntity(state.EntityKey(a.number, state.EntityList, old.ID), nil)
	return nil
}

// join puts the profile in d on a list, in the document and the list's set. It
// returns whether that was new.
func (a *account) join(o uint32, d *profile.Document, l *List) (joined bool, refusal *Refusal) {
	if slices.Contains(d.Lists, l.Number) {
		return false, nil
	}
	d.Lists = slices.DeleteFunc(d.Lists, func(n uint32) bool { _, ok := a.listIDs[n]; return !ok })
	if len(d.Lists) >= maxProfileLists {
		return false, atLimit("list_id", "list_id: the contact is on %d lists, the most it can be on", maxProfileLists)
	}
	d.Lists = append(d.Lists, l.Number)
	a.set(listSet(l.Number)).Add(o)
	return true, nil
}

func (m *Machine) removeFromList(cmd *command, c ListRemove) *Refusal {
	a := cmd.account
	l := a.list(c.ListID)
	if l == nil {
		return noList()
	}
	o, d, refusal := m.profileOf(a, c.Profile)
	if refusal != nil {
		return refusal
	}
	i := slices.Index(d.Lists, l.Number)
	if i < 0 {
		return notFound("profile", "the contact is not on this list")
	}
	d.Lists = slices.Delete(d.Lists, i, i+1)
	a.set(listSet(l.Number)).Remove(o)
	m.updateProfile(cmd, o, d, engine.FieldLists, feature.NewEvent(typeListLeft, feature.Properties{"list_id": l.ID, "list_name": l.Name}))
	return nil
}

// Lists lists the lists, the oldest first.
func (v *View) Lists() []List {
	out := make([]List, 0, len(v.a.lists))
	for _, l := range v.a.lists {
		out = append(out, *l)
	}
	slices.SortFunc(out, func(x, y List) int { return cmp.Compare(x.Number, y.Number) })
	return out
}

// List finds a list.
func (v *View) List(id string) (List, bool) {
	if l := v.a.list(id); l != nil {
		return *l, true
	}
	return List{}, false
}

// ListMembers are the profiles on a list. The answer must not be changed, and is valid
// as long as the view.
func (v *View) ListMembers(l List) *roaring.Bitmap { return v.a.members(listSet(l.Number)) }

// CountListMembers is how many profiles are on a list.
func (v *View) CountListMembers(l List) uint64 {
	return v.a.members(listSet(l.Number)).GetCardinality()
}

// ListMembersPage lists members of a list in order of ordinals, from an ordinal
// on, limit at most.
func (v *View) ListMembersPage(l List, from uint32, limit int) []uint32 {
	return profile.Page(v.a.members(listSet(l.Number)), from, limit)
}
