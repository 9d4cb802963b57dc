package cache

import "sync"

// recent are the entries used last. ristretto keeps what is asked for often and declines
// what is new when it is full of that; an editor asks for the same new thing again a second
// later.
type recent struct {
	mu      sync.Mutex // guards what follows
	limit   int64
	bytes   int64
	entries map[string]*used
	uses    uint64
}

type used struct {
	entry *entry
	at    uint64 // number of its last use
}

func newRecent(limit int64) *recent { return &recent{limit: limit, entries: map[string]*used{}} }

func (r *recent) get(key string) *entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.entries[key]
	if u == nil {
		return nil
	}
	r.uses++
	u.at = r.uses
	return u.entry
}

// put keeps an entry in place of the one that its key had, and lets those go that were
// used longest ago.
func (r *recent) put(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.entries[e.key]; old != nil {
		r.bytes -= old.entry.bytes
	}
	r.uses++
	r.entries[e.key] = &used{e, r.uses}
	r.bytes += e.bytes
	for r.bytes > r.limit || len(r.entries) > recentEntries {
		var oldest *used
		for _, u := range r.entries {
			if oldest == nil || u.at < oldest.at {
				oldest = u
			}
		}
		delete(r.entries, oldest.entry.key)
		r.bytes -= oldest.entry.bytes
	}
}

// recentEntries bounds how many entries are looked through for the oldest.
const recentEntries = 256

func (r *recent) size() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}
