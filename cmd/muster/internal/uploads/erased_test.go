package uploads

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/erasure"
)

// askedContext calls a function each time it is asked whether it has ended, as the node
// does before each read of the state.
type askedContext struct {
	context.Context
	asked func()
}

func (c *askedContext) Err() error {
	c.asked()
	return c.Context.Err()
}

// TestStartWhileErasedPeopleAreLookedFor: an import is started with other columns while its
// file is looked through by the guessed ones. A look by the new columns follows.
func TestStartWhileErasedPeopleAreLookedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Close() // no look comes before the one below
	const tag = "zqgone"
	_, err := w.node.Command(t.Context(), w.account, contacts.CommandCreate, contacts.Create{Email: "person@people.example", ExternalID: tag + "-1"})
	ok(t, err)
	_, err = w.node.Command(t.Context(), w.account, resolver.CommandContactErase, resolver.ContactErase{ID: w.profile("person@people.example").ID.String()})
	ok(t, err)
	// Nothing but the plan says that the person's row names the person.
	x := w.upload(api.ImportPeople, "E-Mail,Membership\nann@people.example,m-2\n,"+tag+"-1\n")
	w.Uploads.mu.Lock()
	u := w.Uploads.mu.files[w.account][x.ID]
	w.Uploads.mu.Unlock()

	started := false
	ctx, stop := context.WithCancel(t.Context())
	w.stop, w.done = stop, make(chan struct{})
	go w.run(&askedContext{ctx, func() {
		if u.content.TryLock() {
			u.content.Unlock()
			return
		}
		// The look has the file, and took the columns.
		if !started {
			started = true
			_, err := w.Start(t.Context(), w.account, x.ID, api.ImportPlan{Columns: []api.ImportColumn{{Name: "Membership", Field: text("external_id")}}})
			if err != nil {
				t.Error(err)
			}
		}
	}})
	x = w.until(x.ID, hasEnded)
	w.Close()
	w.tidy(t.Context()) // at most a second later it would come by itself
	r, err := w.Refused(w.account, x.ID)
	ok(t, err)
	rows, err := io.ReadAll(r)
	ok(t, err)
	ok(t, r.Close())
	if x.Taken != 1 || x.Refused != 1 || strings.Contains(string(rows), tag) || !strings.Contains(string(rows), "---") {
		t.Errorf("%+v\n%s", x, rows)
	}
}

// TestErasedWhileAnErasureIsLifted: a person is erased, and an erasure lifted, between two
// looks through a file, so that as many identifiers are kept out as before. The person's row
// leaves the file all the same.
func TestErasedWhileAnErasureIsLifted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Close() // no look comes but those below
	people := []string{"first@people.example", "second@people.example"}
	erase := func(email string) {
		_, err := w.node.Command(t.Context(), w.account, resolver.CommandContactErase, resolver.ContactErase{ID: w.profile(email).ID.String()})
		ok(t, err)
	}
	for _, email := range people {
		_, err := w.node.Command(t.Context(), w.account, contacts.CommandCreate, contacts.Create{Email: email})
		ok(t, err)
	}
	x := w.upload(api.ImportPeople, "email\n"+strings.Join(people, "\n")+"\n")
	for i, email := range people {
		erase(email)
		if i == 1 {
			_, err := w.node.Command(t.Context(), w.account, erasure.CommandLift, erasure.Lift{Kind: "email", Value: people[0]})
			ok(t, err)
		}
		w.tidy(t.Context())
	}
	rows, err := os.ReadFile(filepath.Join(w.dir, strconv.FormatUint(w.account, 16), x.ID, nameContent))
	ok(t, err)
	if strings.Contains(string(rows), "people.example") {
		t.Errorf("the file has\n%s", rows)
	}
}
