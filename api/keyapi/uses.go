package keyapi

import (
	"context"
	"sync"
	"time"

	"github.com/musterhq/muster/resolver/access"
)

// uses remembers when keys were used until that is recorded: not every request
// is to make a record. Only keys that hold get here, so there are no more entries
// than keys.
type uses struct {
	mu struct {
		sync.Mutex // guards pending
		pending    map[keyRef]int64
	}
}

func newUses() *uses {
	u := &uses{}
	u.mu.pending = map[keyRef]int64{}
	return u
}

func (u *uses) note(key keyRef, atMs int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.mu.pending[key] = max(u.mu.pending[key], atMs)
}

func (u *uses) size() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.mu.pending)
}

func (u *uses) last(key keyRef) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.mu.pending[key]
}

func (u *uses) list() []access.KeyUse {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := make([]access.KeyUse, 0, len(u.mu.pending))
	for k, at := range u.mu.pending {
		out = append(out, access.KeyUse{Account: k.account, KeyID: k.id, AtMs: at})
	}
	return out
}

// recorded drops uses that the state has, but not later ones of the same keys.
func (u *uses) recorded(list []access.KeyUse) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, x := range list {
		k := keyRef{x.Account, x.KeyID}
		if u.mu.pending[k] == x.AtMs {
			delete(u.mu.pending, k)
		}
	}
}

// LastUsed is when a key was used last, in Unix milliseconds, as far as that is
// not recorded in the state; 0 if it is, or was not used.
func (a *API) LastUsed(account uint64, keyID string) int64 {
	return a.uses.last(keyRef{account, keyID})
}

// flush records the uses of all keys at once.
func (a *API) flush() {
	list := a.uses.list()
	if len(list) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), a.opts.Timeout)
	defer cancel()
	if err := a.opts.Node.RecordKeyUses(ctx, list); err != nil {
		// They are kept for the next time.
		a.opts.Logger.Warn("the use of API keys is not recorded", "keys", len(list), "error", err)
		return
	}
	a.uses.recorded(list)
}

// flushLoop flushes now and then, and at the end.
func (a *API) flushLoop() {
	t := time.NewTicker(a.opts.FlushInterval)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			a.flush()
			a.surfaceA.limiter.sweep()
			a.surfaceC.limiter.sweep()
			a.tests.sweep()
		case <-a.stop:
			a.flush()
			return
		}
	}
}
