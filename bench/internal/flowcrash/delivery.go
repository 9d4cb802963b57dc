package flowcrash

import (
	"hash/fnv"
	"slices"
	"sync"
	"time"
)

// effect names what a step wants: of whom, and because of which event or call, as
// far as the flow knows it.
type effect struct {
	flow, step, profile, key string
}

// manner is what a receiver does with an id.
type manner uint8

const (
	takes      manner = iota // takes it
	errorFirst               // answers an error for a while at first, then takes it
	hangsFirst               // does not answer the first
	dropsFirst               // drops the connection behind the first
	errorEver                // answers an error for a while, always
	refuses                  // answers an error for good
)

// fine reports whether the sender gets a success in the end.
func (m manner) fine() bool { return m < errorEver }

// arrival is one time that an id came.
type arrival struct {
	at time.Time
	// ok reports that the sender was answered that it was taken, promptly.
	ok bool
}

// delivery is all that a receiver saw of an id.
type delivery struct {
	// checked is how many arrivals an earlier check has seen.
	checked  int
	effect   effect
	manner   manner
	arrivals []arrival
	// strange is what came under the id beside the effect.
	strange []effect
}

// taken reports whether the last arrival was.
func (d *delivery) taken() bool { return d.arrivals[len(d.arrivals)-1].ok }

// desk keeps the deliveries of the receivers of one kind.
type desk struct {
	seed uint64
	mu   struct {
		sync.Mutex
		byID map[string]*delivery
	}
}

func newDesk(seed uint64) *desk {
	d := &desk{seed: seed}
	d.mu.byID = map[string]*delivery{}
	return d
}

// draw is a number below n that depends on the id and the seed.
func (d *desk) draw(id string, n uint32) uint32 {
	h := fnv.New64a()
	h.Write([]byte{byte(d.seed), byte(d.seed >> 8), byte(d.seed >> 16), byte(d.seed >> 24)})
	h.Write([]byte(id))
	sum := h.Sum64()
	return uint32((sum^sum>>29)*0x9e3779b97f4a7c15>>33) % n
}

// arrive notes an arrival and returns what to do with it; first says that the id
// came for the first time. The answer's outcome is noted by answered.
func (d *desk) arrive(id string, e effect, m manner) (x *delivery, n int, first bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x = d.mu.byID[id]
	if x == nil {
		x = &delivery{effect: e, manner: m}
		d.mu.byID[id] = x
	} else if x.effect != e {
		x.strange = append(x.strange, e)
	}
	x.arrivals = append(x.arrivals, arrival{at: time.Now()})
	return x, len(x.arrivals) - 1, len(x.arrivals) == 1
}

// promptly is how fast an answer must be for its sender to have it for sure,
// unless the sender was killed.
const promptly = time.Second

// answered notes that arrival n is being answered as taken.
func (d *desk) answered(x *delivery, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := &x.arrivals[n]
	a.ok = time.Since(a.at) < promptly
}

// all are the deliveries by id, as they are now.
func (d *desk) all() map[string]*delivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make(map[string]*delivery, len(d.mu.byID))
	for id, x := range d.mu.byID {
		now := *x
		now.arrivals, now.strange = slices.Clone(x.arrivals), slices.Clone(x.strange)
		all[id] = &now
	}
	return all
}

// pass notes that deliveries were checked as they were in all.
func (d *desk) pass(all map[string]*delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, x := range all {
		d.mu.byID[id].checked = len(x.arrivals)
	}
}

// keysOf are the keys that the effects of a flow carry.
func keysOf(all map[string]*delivery, flow string) map[string]bool {
	keys := map[string]bool{}
	for _, d := range all {
		if d.effect.flow == flow {
			keys[d.effect.key] = true
		}
	}
	return keys
}
