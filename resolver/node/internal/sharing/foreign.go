package sharing

import (
	"errors"
	"fmt"

	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// judge says why what was fetched does not become a checkpoint of the node. It is f.Err
// where the node continues with its own: the shared one is of another log that bears this
// one's name, such as a topic that was deleted and made anew. A shared one that went on from
// the node's own tells that the log has lost records since, and the node's own is no way
// around that.
func (s *Sharing) judge(f *Fetched, check func(checkpoint.Candidate) error) error {
	var x checkpoint.Candidate
	var err error
	x.Manifest, x.IDs, err = s.dir.ReadManifestIn(tmp, f.offset)
	if err == nil {
		err = check(x)
	}
	switch {
	case err == nil, errors.Is(err, statefiles.ErrDamaged): // damage is set aside like any other
		return nil
	case !errors.Is(err, checkpoint.ErrOtherLog):
		return err
	}
	err = fmt.Errorf("the shared checkpoints in %s: %w. Put the log back that belongs to them, start with another place for --checkpoints, or remove those there", s.store.Place(), err)
	have, e := s.dir.NewestReadable()
	if e != nil || have < 0 || !s.dir.Apart(x, have) {
		return errors.Join(err, e)
	}
	s.log.Error("the shared checkpoints are not of this log; continuing with this node's own, and sharing none", "own", have, "error", err)
	s.foreign = true
	s.failures.Add(1)
	s.failing.Store(true)
	f.Err = err
	return nil
}
