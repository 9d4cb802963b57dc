package file

import (
	"errors"
	"slices"
	"strings"
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

// Noticed returns the damage that was met while the log was in use, one error for each
// file, in the order of their names. [Log.Scrub] drops that of files which it finds
// whole.
func (l *Log) Noticed() (out []*eventlog.CorruptError) {
	l.noticed.Lock()
	defer l.noticed.Unlock()
	for _, e := range l.noticed.byFile {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b *eventlog.CorruptError) int { return strings.Compare(a.File, b.File) })
	return out
}
