package automation

import (
	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Bounds are those of a record's work on flows. They are part of the rules: changing one
// changes what Apply does and needs a new version of the state machine's rules.
type Bounds struct {
	// Steps is how many steps a record carries out, roughly. What is left is due, and goes
	// on with the next.
	Steps int
	// Scan is how many profiles a record looks at for a flow that goes live.
	Scan int
	// Enrolments is how many enrolments a record begins, but for what the last of them
	// brings about. Further profiles wait in the queue of the account, for continue records.
	Enrolments int
}

// StandardBounds are those of machines. Tests of what is left to further records have lower
// ones.
func StandardBounds() Bounds { return Bounds{Steps: 4096, Scan: 1000, Enrolments: 4096} }

// Runner carries out the flows of all accounts of a machine, one account at a time.
type Runner struct {
	// Bounds may be lowered by tests.
	Bounds Bounds
	// Enrolments and Loops count enrolments that began, and those that did not because
	// flows would start each other without an end, since the process started.
	Enrolments, Loops uint64

	store *state.Store
	*Work
}

// Work is the record that is being applied as flows see it. The machine's transaction owns
// it: only the goroutine that applies records may touch it.
type Work struct {
	nowMs     int64 // log time
	quiet     bool  // it starts no flows
	reporting bool  // it emits the outcome of the service's own actions

	// What is left of the bounds, for all accounts together.
	stepsLeft  int
	enrolsLeft int

	// Enrolling and running, which one enrolment does within another when its step fires the
	// trigger of a flow.
	draining    bool  // deferred profiles are being enrolled
	depth       uint8 // how many enrolments started each other up to here
	triggered   []toEnrol
	deferred    deferredEnrolment // see queueDeferred
	position    Position
	running     host         // the enrolment that is being run, if there is one
	enrolments  flows.Record // of its profile in its flow
	otherRecord flows.Record // scratch, of a profile whose date changes

	merger  profile.JSONMerger
	scratch []byte
}

// NewRunner returns what the flows of a machine share whose enrolments are in the store.
func NewRunner(store *state.Store, work *Work) *Runner {
	return &Runner{Bounds: StandardBounds(), store: store, Work: work}
}

// Begin readies the work for a record, within the bounds.
func (w *Work) Begin(logTimeMs int64, b Bounds) {
	w.nowMs, w.quiet, w.reporting = logTimeMs, false, false
	w.stepsLeft, w.enrolsLeft = b.Steps, b.Enrolments
	w.position = Position{}
}

// SetQuiet says whether what follows in the record starts no flows, as in an import.
func (w *Work) SetQuiet(on bool) { w.quiet = on }

// SetReporting says whether the record reports what became of the service's own actions,
// which start only so many flows of a profile.
func (w *Work) SetReporting(on bool) { w.reporting = on }

// Position is the place behind what the record has put into queues, see [State.Passed]. The
// zero value stands for nothing.
func (w *Work) Position() Position { return w.position }

// ofOurOwn reports whether what happens now is the service's own doing.
func (w *Work) ofOurOwn() bool { return w.depth > 0 || w.reporting }

// Share is how many enrolments each account may begin of those that are deferred, if so
// many accounts have some, so that none waits for another.
func (r *Runner) Share(accounts int) int { return max(r.Bounds.Enrolments/max(accounts, 1), 1) }
