package file

import (
	"errors"
	"sync"

	"github.com/musterhq/muster/eventlog"
)

// noticed keeps what readers, redactions and copies of the log have met of damage, until
// a reading of all that is closed finds it no more.
type noticed struct {
	sync.Mutex
	byFile map[string]*eventlog.CorruptError
}

// notice keeps err where it is of damage, and returns it.
func (n *noticed) notice(err error) error {
	var damaged *eventlog.CorruptError
	if errors.As(err, &damaged) {
		n.Lock()
		defer n.Unlock()
		if n.byFile == nil {
			n.byFile = map[string]*eventlog.CorruptError{}
		}
		n.byFile[damaged.File] = damaged
	}
	return err
}

// whole drops the damage of files.
func (n *noticed) whole(files ...string) {
	n.Lock()
	defer n.Unlock()
	for _, f := range files {
		delete(n.byFile, f)
	}
}
