package uploads

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/cmd/muster/internal/importer"
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/node"
)

const (
	// personRows is a window of people, personWorkers how many of them are in flight.
	personRows    = 256
	personWorkers = 8
	// personTries bounds how often a row is tried while the node is overloaded.
	personTries = 8
)

// people takes files of people. A row is what POST /contacts and PATCH /contacts/{id}
// would be: identifiers follow their rules, and no profiles are merged.
type people struct {
	node    *node.Node
	account uint64
	list    string
	judge   *personJudge
}

func (s *Uploads) newPeople(u *upload) (*people, error) {
	judge, err := s.newPersonJudge(u.account)
	return &people{node: s.opts.Node, account: u.account, list: u.Plan.ListID, judge: judge}, err
}

func (p *people) begin(ctx context.Context) (uint64, error) { return 0, p.judge.begin(ctx) }

func (p *people) full(rows, _ int) bool { return rows >= personRows }

// person is a row of people.
type person struct {
	Email      string          `json:"email"`
	ExternalID string          `json:"external_id"`
	Phone      string          `json:"phone"`
	FirstName  string          `json:"first_name"`
	LastName   string          `json:"last_name"`
	Geo        json.RawMessage `json:"geo"`
	Attributes json.RawMessage `json:"attributes"`
	// Subscribed is nil where the row says nothing of it.
	Subscribed *bool `json:"-"`
}

// task is a row of a window.
type task struct {
	person
	line    int
	refused string
}

func (p *people) take(ctx context.Context, _ uint64, rows []importer.Row) (r windowResult, err error) {
	tasks := make([]task, len(rows))
	var good []*task
	for i := range rows {
		t := &tasks[i]
		t.line = rows[i].Line
		if t.person, t.refused = p.judge.person(&rows[i]); t.refused == "" {
			good = append(good, t)
		}
	}
	groups, err := p.groups(ctx, good)
	if err != nil {
		return r, err
	}
	errs := make([]error, personWorkers)
	var next atomic.Int64
	var wait sync.WaitGroup
	for n := range errs {
		wait.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(groups) {
					return
				}
				for _, t := range groups[i] {
					if errs[n] = p.store(ctx, t); errs[n] != nil {
						return
					}
				}
			}
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return r, err
	}
	for i := range tasks {
		if t := &tasks[i]; t.refused != "" {
			r.refused = append(r.refused, api.ImportRefusal{Line: t.line, Reason: t.refused})
		} else {
			r.taken++
		}
	}
	return r, nil
}

// store stores a person, or notes why not. The error says that it cannot be known now.
func (p *people) store(ctx context.Context, t *task) error {
	for range 2 {
		again, err := p.storeOnce(ctx, t)
		var refused *resolver.Refusal
		switch {
		case errors.As(err, &refused):
			t.refused = refused.Message
			return nil
		case err != nil || !again:
			return err
		}
	}
	t.refused = contacts.MessageDuplicateEmail
	return nil
}

// storeOnce stores a person. again says that another request made the person
// meanwhile.
func (p *people) storeOnce(ctx context.Context, t *task) (again bool, err error) {
	var id, address string
	known, onList, silent := false, p.list == "", false
	err = p.node.Read(ctx, p.account, func(v *resolver.View) error {
		for kind, value := range t.identifiers() {
			if value == "" {
				continue
			}
			o, found := v.Profiles().Find(resolver.IdentityKind(kind), value)
			if found {
				id, known = v.Profiles().ID(o).String(), true
				x, err := v.Profiles().Get(o)
				if err == nil {
					address = x.Newest(resolver.IdentityEmail)
					silent = saidNothing(x)
					onList = onList || slices.Contains(x.Lists, p.list)
				}
				return err
			}
			if resolver.IdentityKind(kind) == resolver.IdentityEmail {
				return nil // a new e-mail is a new person, even if another has the phone
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	change := contacts.Update{ID: id, Geo: t.Geo, Attributes: t.Attributes}
	if !known {
		var made contacts.Reply
		err := p.command(ctx, contacts.CommandCreate, contacts.Create{
			Email: t.Email, FirstName: t.FirstName, LastName: t.LastName, Phone: t.Phone, ExternalID: t.ExternalID, ListID: p.list,
			Unsubscribed: t.refuses(),
		}, &made)
		var refused *resolver.Refusal
		if errors.As(err, &refused) && refused.Code == "conflict" && refused.Field == "email" {
			err = p.node.Read(ctx, p.account, func(v *resolver.View) error {
				_, again = v.Profiles().Find(resolver.IdentityEmail, t.Email)
				return nil
			})
			if err == nil && !again {
				err = refused // of another company of this server
			}
			return again, err
		}
		if err != nil || len(t.Geo)+len(t.Attributes) == 0 {
			return false, err
		}
		change.ID = made.ID
		return false, p.command(ctx, contacts.CommandUpdate, change, nil)
	}
	if !onList && t.Email == "" && address == "" {
		t.refused = "email is empty; somebody on file is put on a list by e-mail: add it to the row, or import the row without list_id"
		return false, nil
	}
	for value, to := range map[*string]**string{&t.Email: &change.Email, &t.ExternalID: &change.ExternalID, &t.Phone: &change.Phone, &t.FirstName: &change.FirstName, &t.LastName: &change.LastName} {
		if *value != "" {
			*to = value
		}
	}
	change.Consents = t.consents(silent)
	if err := p.command(ctx, contacts.CommandUpdate, change, nil); err != nil || onList {
		return false, err
	}
	return false, p.command(ctx, contacts.CommandListAdd, contacts.ListAdd{ListID: p.list, Create: contacts.Create{Email: address}}, nil)
}

// command carries a command out, again while the node is overloaded.
func (p *people) command(ctx context.Context, name string, args, reply any) error {
	pause := 50 * time.Millisecond
	for n := 1; ; n++ {
		b, err := p.node.Command(ctx, p.account, name, args)
		switch {
		case err == nil && reply != nil:
			return json.Unmarshal(bytes.TrimSpace(b), reply)
		case err == nil:
			return nil
		case !errors.Is(err, resolver.ErrOverloaded) && !errors.Is(err, eventlog.ErrQueueFull):
			return err
		case n == personTries:
			return fmt.Errorf("the node is overloaded: %w", err)
		}
		if !sleep(ctx, pause) {
			return ctx.Err()
		}
		pause *= 2
	}
}
