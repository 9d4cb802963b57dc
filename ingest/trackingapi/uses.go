package trackingapi

import (
	"context"
	"sync"
	"time"

	"github.com/musterhq/muster/resolver/sources"
)

// keyRef names a write key.
type keyRef struct {
	account       uint64
	source, keyID string
}

// uses remembers when write keys were used until that is recorded: not every request is to
// make a record. Only keys that hold get here, so that there are no more entries than keys.
type uses struct {
	mu struct {
		sync.Mutex // guards pending
		pending    map[keyRef]int64
	}
}

func (u *uses) note(s *sources.Access, atMs int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.mu.pending == nil {
		u.mu.pending = map[keyRef]int64{}
	}
	k := keyRef{s.Account, s.SourceID, s.KeyID}
	u.mu.pending[k] = max(u.mu.pending[k], atMs)
}

func (u *uses) last(k keyRef) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.mu.pending[k]
}

func (u *uses) list() []sources.Use {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := make([]sources.Use, 0, len(u.mu.pending))
	for k, at := range u.mu.pending {
		out = append(out, sources.Use{Account: k.account, SourceID: k.source, KeyID: k.keyID, AtMs: at})
	}
	return out
}

// recorded drops uses that the state has, but not later ones of the same keys.
func (u *uses) recorded(list []sources.Use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, x := range list {
		k := keyRef{x.Account, x.SourceID, x.KeyID}
		if u.mu.pending[k] == x.AtMs {
			delete(u.mu.pending, k)
		}
	}
}

// LastUsed is when a write key was used last, in Unix milliseconds, as far as that is not
// recorded in the state; 0 if it is, or was not used.
func (h *Handler) LastUsed(account uint64, sourceID, keyID string) int64 {
	return h.uses.last(keyRef{account, sourceID, keyID})
}

// flush records the uses of all keys at once.
func (h *Handler) flush() {
	list := h.uses.list()
	if len(list) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.opts.Timeout)
	defer cancel()
	if err := h.opts.Node.RecordSourceUses(ctx, list); err != nil {
		// They are kept for the next time.
		h.opts.Logger.Warn("the use of write keys is not recorded", "keys", len(list), "error", err)
		return
	}
	h.uses.recorded(list)
}

// flushLoop flushes now and then, and at the end.
func (h *Handler) flushLoop() {
	defer close(h.flushed)
	t := time.NewTicker(h.opts.FlushInterval)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			h.flush()
		case <-h.stop:
			h.flush()
			return
		}
	}
}

// Close records what is left and ends. It is called once, when no more requests come.
func (h *Handler) Close() {
	close(h.stop)
	<-h.flushed
}
