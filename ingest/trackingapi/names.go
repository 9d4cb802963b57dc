package trackingapi

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/musterhq/muster/segment"
)

// maxTypeNames bounds how many names are kept in memory, whatever clients send.
const maxTypeNames = 10_000

// typeNames knows the event types that names of events give, so that each is worked out once.
// It is safe for concurrent use.
type typeNames struct {
	mu struct {
		sync.RWMutex // guards types
		types        map[string][]byte
	}
}

// typeOf is the event type of a name: the name in snake case; of one that Latin letters and
// digits cannot spell, a part of its hash. The result must not be changed.
func (n *typeNames) typeOf(name []byte) []byte {
	if segment.ValidEventType(name) {
		return name
	}
	n.mu.RLock()
	t, ok := n.mu.types[string(name)]
	n.mu.RUnlock()
	if ok {
		return t
	}
	text := string(name)
	if key, ok := segment.SnakeCase(text); ok {
		t = []byte(key)
	} else {
		sum := sha256.Sum256(name)
		t = hex.AppendEncode([]byte("event_"), sum[:5])
	}
	if len(text) > maxNameKept {
		return t
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.types == nil || len(n.mu.types) >= maxTypeNames {
		n.mu.types = map[string][]byte{}
	}
	n.mu.types[text] = t
	return t
}

// maxNameKept is the longest name that is kept, in bytes.
const maxNameKept = 256

// namedTypes knows which event types have been named in the catalog after what applications
// call them. It is safe for concurrent use.
type namedTypes struct {
	mu struct {
		sync.Mutex // guards known
		known      map[namedType]struct{}
	}
}

type namedType struct {
	account uint64
	key     string
}

// isNew reports whether a type is not known to have a name.
func (n *namedTypes) isNew(account uint64, key []byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, known := n.mu.known[namedType{account, string(key)}]
	return !known
}

// add notes that a type has a name.
func (n *namedTypes) add(account uint64, key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.known == nil || len(n.mu.known) >= maxTypeNames {
		n.mu.known = map[namedType]struct{}{}
	}
	n.mu.known[namedType{account, key}] = struct{}{}
}
