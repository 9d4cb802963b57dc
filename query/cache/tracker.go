package cache

import (
	"context"
	"sync"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

const (
	// maxAccounts and maxTypes bound what the tracker remembers: accounts of a
	// partition, and types of events of an account.
	maxAccounts = 4096
	maxTypes    = 8192
)

// tracker follows what is appended to the accounts that were asked about.
type tracker struct {
	mu         sync.Mutex // guards all of it
	partitions map[int]*partition
	epochs     uint64
}

type partition struct {
	// seen is the offset below which all was stored; batches up to appending may be
	// under way.
	seen, appending int64
	accounts        map[uint64]*account
}

// account is what is known of an account's records from the offset since on.
// Offsets are those behind the newest such record, 0 for none.
type account struct {
	epoch uint64
	since int64
	row   int64
	types map[string]*int64
}

// begin starts to track an account and returns its epoch. It must come before
// what is to be kept is asked.
func (t *tracker) begin(ctx context.Context, b Backend, cut query.Cut, number uint64) (epoch uint64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.partitions[cut.Partition]
	if p == nil || cut.UpTo > p.seen && p.appending <= p.seen {
		t.mu.Unlock()
		position, err := b.Position(ctx, cut.Partition)
		t.mu.Lock()
		if err != nil {
			return 0, err
		}
		switch p = t.partitions[cut.Partition]; {
		case p == nil:
			p = t.open(cut.Partition, position)
		case position > p.seen && p.appending <= p.seen:
			// Others have appended meanwhile.
			p.seen = position
			clear(p.accounts)
		}
	}
	a := p.accounts[number]
	if a == nil {
		if len(p.accounts) >= maxAccounts {
			for other := range p.accounts {
				delete(p.accounts, other)
				break
			}
		}
		t.epochs++
		// A batch under way has not been looked at for this account.
		a = &account{epoch: t.epochs, since: max(p.seen, p.appending), types: map[string]*int64{}}
		p.accounts[number] = a
	}
	return a.epoch, nil
}

func (t *tracker) open(number int, seen int64) *partition {
	if t.partitions == nil {
		t.partitions = map[int]*partition{}
	}
	p := &partition{seen: seen, appending: seen, accounts: map[uint64]*account{}}
	t.partitions[number] = p
	return p
}

// forget ends an account's epoch.
func (t *tracker) forget(partition int, number uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.partitions[partition]; p != nil {
		delete(p.accounts, number)
	}
}

// appending notes a batch that is about to be stored.
func (t *tracker) appending(b *query.Batch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.partitions[b.Partition]
	if p == nil {
		return
	}
	if b.From > p.seen {
		// Others have stored what is between.
		clear(p.accounts)
		p.seen = b.From
	}
	p.appending = max(p.appending, b.To)
	if len(p.accounts) == 0 {
		return
	}
	for i := range b.Aliases {
		delete(p.accounts, b.Aliases[i].Account)
	}
	var a *account
	var number uint64
	for i := range b.Account {
		if i == 0 || b.Account[i] != number {
			number = b.Account[i]
			a = p.accounts[number]
		}
		if a == nil {
			continue
		}
		end := b.Offset[i] + 1
		a.row = max(a.row, end)
		newest := a.types[string(b.EventType.At(i))]
		if newest == nil {
			if len(a.types) >= maxTypes {
				delete(p.accounts, number)
				a = nil
				continue
			}
			newest = new(int64)
			a.types[string(b.EventType.At(i))] = newest
		}
		*newest = max(*newest, end)
	}
}

// appended notes that a batch is stored.
func (t *tracker) appended(b *query.Batch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.partitions[b.Partition]; p != nil {
		p.seen = max(p.seen, b.To)
	}
}

// Where an entry made at one cut stands at another.
type standing uint8

const (
	stale standing = iota // of no use
	same                  // the rows are those of the entry's cut
	grown                 // rows may have been added
)

// compare returns what became of the rows of some types between an entry's cut and
// another; no types, or [segment.AnyEvent], are all.
func (t *tracker) compare(cut query.Cut, number, epoch uint64, at int64, types []string) standing {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.partitions[cut.Partition]
	if p == nil {
		return stale
	}
	a := p.accounts[number]
	switch {
	case a == nil || a.epoch != epoch || at > cut.UpTo:
		return stale
	case at == cut.UpTo:
		return same
	case at < a.since || cut.UpTo > p.seen:
		return stale
	}
	if len(types) == 0 {
		types = []string{segment.AnyEvent}
	}
	for _, typ := range types {
		if typ == segment.AnyEvent {
			if a.row > at {
				return grown
			}
		} else if newest := a.types[typ]; newest != nil && *newest > at {
			return grown
		}
	}
	return same
}

// current reports whether an account is in that epoch.
func (t *tracker) current(partition int, number, epoch uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.partitions[partition]
	return p != nil && p.accounts[number] != nil && p.accounts[number].epoch == epoch
}
