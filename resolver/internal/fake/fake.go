package fake

import (
	"math/rand/v2"
	"sync"

	"github.com/musterhq/muster/eventlog"
)

// Random is a deterministic source of ids, safe for several goroutines.
type Random struct {
	mu   sync.Mutex
	Rand *rand.Rand
}

func (r *Random) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range p {
		p[i] = byte(r.Rand.Uint32())
	}
	return len(p), nil
}

// WholeLog begins no new files when told to, so that nothing is trimmed and a
// fresh machine can replay all of it.
type WholeLog struct{ eventlog.Log }
