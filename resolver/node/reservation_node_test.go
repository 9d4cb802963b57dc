package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/emaildir"
	"github.com/musterhq/muster/resolver/internal/peek"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/reservation"
)

// lossyRemote hands commands to whichever node has the partition, and fails at
// times, before or after the command had its effect.
type lossyRemote struct {
	c     *testCluster
	rng   *rand.Rand
	mu    sync.Mutex // of rng
	fails atomic.Int64
	every int // how many calls there are to a failure, 0 for none
}

func (r *lossyRemote) Command(ctx context.Context, partition int, rec []byte) ([]byte, error) {
	fault := -1
	if r.every > 0 {
		r.mu.Lock()
		fault = r.rng.IntN(2 * r.every)
		r.mu.Unlock()
	}
	if fault == 0 {
		r.fails.Add(1)
		return nil, fmt.Errorf("%w: the call was cut before it arrived", resolver.ErrUnavailable)
	}
	for _, n := range r.c.nodes {
		if !n.Owns(partition) {
			continue
		}
		reply, err := n.SubmitCommand(ctx, partition, rec)
		if fault == 1 {
			r.fails.Add(1)
			return nil, fmt.Errorf("%w: the call was cut before it was answered", resolver.ErrUnavailable)
		}
		return reply, err
	}
	return nil, notOwner(partition)
}

// emailCluster is two nodes: the one has the directory and another partition, the
// other one the third.
func emailCluster(t *testing.T, every int) (*testCluster, *lossyRemote) {
	c := newTestCluster(t, 28, 2)
	r := &lossyRemote{c: c, rng: rand.New(rand.NewPCG(28, uint64(every))), every: every}
	a := c.open(0, func(o *Options) { o.Remote = r })
	b := c.open(1, func(o *Options) { o.Remote = r })
	mustTake(t, a, 0, 1, 2)
	c.found(a)
	mustRelease(t, a, 1)
	mustTake(t, b, 1)
	return c, r
}

// machines calls fn with the machine of each partition.
func (c *testCluster) machines(fn func(partition int, m *resolver.Machine)) {
	for _, n := range c.nodes {
		for p := range n.here() {
			p.mu.Lock()
			fn(p.id, p.mu.m)
			p.mu.Unlock()
		}
	}
}

// reconciled waits until nothing is reserved or to be released, and returns how many
// names the accounts hold and how many the directory has.
func (c *testCluster) reconciled() (held, has int) {
	c.t.Helper()
	eventually.Succeeds(c.t, func() error {
		open := 0
		held, has = 0, 0
		for _, n := range c.nodes {
			for _, p := range n.Stats() {
				open += int(p.EmailsReserved + p.EmailsToRelease)
			}
		}
		listed := map[string]bool{}
		var names []string
		c.machines(func(p int, m *resolver.Machine) {
			of, directory := peek.EmailNames(m)
			names = append(names, of...)
			if p == 0 {
				has = len(directory)
				for _, name := range directory {
					listed[name] = true
				}
			}
		})
		held = len(names)
		for _, name := range names {
			if !listed[name] {
				c.t.Fatalf("M2: a name is held, and the directory does not have it")
			}
		}
		if open > 0 || held != has {
			return fmt.Errorf("M3: %d reservations and releases are open, %d names held, %d in the directory", open, held, has)
		}
		return nil
	})
	return held, has
}

// race has each account make a contact with each e-mail, all at once and each at
// any node, and returns which account got which, and how many calls were not
// decided after so many attempts.
func (c *testCluster) race(emails []string, attempts int) (got map[string][]string, undecided int) {
	c.t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	got = map[string][]string{}
	limit := make(chan struct{}, 32)
	for i, email := range emails {
		for p := range clusterPartitions {
			account, n := clusterAccount(p), c.nodes[(i+p)%2]
			wg.Go(func() {
				limit <- struct{}{}
				defer func() { <-limit }()
				var reply []byte
				err := resolver.ErrUnavailable
				for attempt := 0; attempt < attempts && errors.Is(err, resolver.ErrUnavailable); attempt++ {
					reply, err = n.Command(context.Background(), account, contacts.CommandCreate, contacts.Create{Email: email})
				}
				var refusal *resolver.Refusal
				var made contacts.Reply
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					if err := json.Unmarshal(reply, &made); err != nil {
						c.t.Error(err)
					}
					got[email] = append(got[email], made.ID)
				case errors.As(err, &refusal):
					if refusal.Message != contacts.MessageDuplicateEmail && refusal.Message != "this record was applied before" {
						c.t.Errorf("%q: %v", email, refusal)
					}
				case errors.Is(err, resolver.ErrUnavailable) || errors.Is(err, resolver.ErrOverloaded) || errors.Is(err, resolver.ErrNotOwner):
					undecided++
				default:
					c.t.Errorf("%q: %v", email, err)
				}
			})
		}
	}
	wg.Wait()
	return got, undecided
}

func someEmails(prefix string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("%s%d@x.io", prefix, i))
	}
	return list
}

// TestM1NodesShareEmails: of many who make a contact with one e-mail at once, at two
// nodes and in three partitions, exactly one gets it, and the others are told so;
// many are reserved by one record. Erased, the e-mails are free for others.
func TestM1NodesShareEmails(t *testing.T) {
	t.Parallel()
	c, _ := emailCluster(t, 0)
	defer c.close()
	ctx := context.Background()
	emails := someEmails("one", 60)
	before := c.nodes[0].partitions[0].Load().position.applied.Load()
	got, undecided := c.race(emails, 5) // on a busy machine
	records := c.nodes[0].partitions[0].Load().position.applied.Load() - before
	if undecided > 0 {
		t.Errorf("%d calls were not decided, and nothing failed", undecided)
	}
	for _, email := range emails {
		if len(got[email]) != 1 {
			t.Errorf("M1: %q was made %d times", email, len(got[email]))
		}
	}
	if held, has := c.reconciled(); held != len(emails) || has != len(emails) {
		t.Errorf("M2: %d are held and %d in the directory, expected %d", held, has, len(emails))
	}
	// 20 contacts of the directory's own partition are among them; each e-mail is
	// asked for three times and confirmed.
	t.Logf("%d records for %d e-mails", records, len(emails))
	// An account that was refused an e-mail gets it once it is erased.
	email := emails[0]
	for p := range clusterPartitions {
		_, err := c.nodes[0].Command(ctx, clusterAccount(p), resolver.CommandContactErase, resolver.ContactErase{ID: got[email][0]})
		if err != nil {
			continue
		}
		other := clusterAccount((p + 1) % clusterPartitions)
		eventually.Succeeds(t, func() error {
			if _, err := c.nodes[0].Command(ctx, other, contacts.CommandCreate, contacts.Create{Email: email}); err != nil {
				return fmt.Errorf("M3: %q was erased and is not free: %w", email, err)
			}
			return nil
		})
	}
	c.reconciled()
}

// TestM3NodesFailAndMove: the same with calls between nodes that fail before or
// after they had effect, while the directory and the accounts move from node to
// node. What is left half done is reconciled after its time.
func TestM3NodesFailAndMove(t *testing.T) {
	t.Parallel()
	c, r := emailCluster(t, 4)
	defer c.close()
	stop := make(chan struct{})
	var mover sync.WaitGroup
	mover.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
			p := i % 2 // the directory, and the partition of the other node
			for at, n := range c.nodes {
				if n.Owns(p) {
					ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
					if err := errors.Join(n.Release(ctx, p), c.nodes[1-at].Take(ctx, p)); err != nil {
						t.Error(err)
					}
					cancel()
					break
				}
			}
		}
	})
	emails := someEmails("many", 40)
	got, undecided := c.race(emails, 1)
	close(stop)
	mover.Wait()
	for email, ids := range got {
		if len(ids) > 1 {
			t.Errorf("M1: %q was made %d times", email, len(ids))
		}
	}
	if r.fails.Load() == 0 || len(got) == 0 {
		t.Errorf("%d calls failed, %d contacts were made: this checks too little", r.fails.Load(), len(got))
	}
	c.clock.Add((reservation.For + 5*time.Second).Milliseconds())
	held, _ := c.reconciled()
	if held < len(got) {
		t.Errorf("M2: %d e-mails were answered as made, %d are held", len(got), held)
	}
	t.Logf("%d of %d e-mails were given, %d calls of %d undecided, %d failed; %d are held", len(got), len(emails), undecided, 3*len(emails), r.fails.Load(), held)
	r.every = 0
	for _, email := range emails {
		var errs []error
		made := len(got[email])
		for p := range clusterPartitions {
			_, err := c.nodes[0].Command(context.Background(), clusterAccount(p), contacts.CommandCreate, contacts.Create{Email: email})
			if err == nil {
				made++
			}
			errs = append(errs, err)
		}
		// A contact may have it whose account does not know yet.
		if made > 1 || slices.ContainsFunc(errs, func(err error) bool { return err != nil && err.Error() != contacts.MessageDuplicateEmail }) {
			t.Errorf("%q: made %d times: %v", email, made, errs)
		}
	}
}

// TestEmailsOfOnePartitionCostNothing: a log of one partition knows no directory.
func TestEmailsOfOnePartitionCostNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	n := f.mustOpen(t)
	defer f.close(t, n)
	before := n.Stats()[0].Applied
	for _, email := range someEmails("x", 10) {
		if _, err := n.Command(context.Background(), testAccount, contacts.CommandCreate, contacts.Create{Email: email}); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.Stats()[0].Applied - before; got != 10 || n.directory != nil {
		t.Errorf("10 contacts took %d records", got)
	}
}

// forgetfulWay reports no outcome of a reservation to the directory, like a node
// that is killed after the contact's command, or before it.
type forgetfulWay struct {
	nodeEmails
	before bool
}

func (w forgetfulWay) Confirm(emaildir.Confirmed) {}

func (w forgetfulWay) Submit(ctx context.Context, env eventlog.Envelope, rec []byte) (*refuse.Refusal, error) {
	if w.before {
		return nil, fmt.Errorf("%w: killed", resolver.ErrUnavailable)
	}
	return w.nodeEmails.Submit(ctx, env, rec)
}

// TestM3NodesSettle: a node that stops before the contact's command leaves an e-mail
// that is free again when its time is over, and who stops behind it one that is
// taken. Until then others are not told that it is, and are after it, wherever the
// account is.
func TestM3NodesSettle(t *testing.T) {
	t.Parallel()
	c, _ := emailCluster(t, 0)
	defer c.close()
	ctx := context.Background()
	const before, behind = "before@x.io", "behind@x.io"
	account := clusterAccount(1) // of the node that does not have the directory
	p := c.nodes[1].partitions[1].Load()
	for _, email := range []string{before, behind} {
		var out resolver.Outcome
		way := forgetfulWay{nodeEmails{p, &out}, email == before}
		env := eventlog.Envelope{Kind: eventlog.KindCommand, Account: account}
		cmd, err := contacts.ParseEmailCommand(eventlog.AppendCommand(env.Append(nil), contacts.CommandCreate, must.JSON(contacts.Create{Email: email})))
		if err != nil {
			t.Fatal(err)
		}
		err = reservation.Do(ctx, way, env, cmd)
		if (err != nil) != (email == before) || out.Refusal != nil {
			t.Fatalf("%s: %v %v", email, err, out.Refusal)
		}
	}
	create := func(email string, within time.Duration) error {
		soon, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		_, err := c.nodes[0].Command(soon, clusterAccount(2), contacts.CommandCreate, contacts.Create{Email: email})
		return err
	}
	for _, email := range []string{before, behind} {
		if err := create(email, 300*time.Millisecond); !errors.Is(err, resolver.ErrUnavailable) {
			t.Errorf("%s is not reconciled: %v", email, err)
		}
	}
	c.clock.Add((reservation.For + 2*time.Second).Milliseconds())
	if held, _ := c.reconciled(); held != 1 {
		t.Errorf("M3: %d e-mails are held, expected that of the contact that was made", held)
	}
	if err := create(before, time.Minute); err != nil {
		t.Errorf("M3: no contact has %s, and it is refused: %v", before, err)
	}
	var refusal *resolver.Refusal
	if err := create(behind, time.Minute); !errors.As(err, &refusal) || refusal.Message != contacts.MessageDuplicateEmail {
		t.Errorf("M1: %s is on file: %v", behind, err)
	}
}
