package uploads

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
)

// The files of an account that another node owns by now keep the people who are erased there:
// nothing here learns of it. So they are removed once the account has not been here for
// awayTime; until then it may come back, and its imports continue. Since when it is away is
// noted beside its uploads, so that a start does not begin that time anew.

// nameAway is the note in an account's directory, in Unix milliseconds. An account that is
// here has none. A note that a crash loses is written again.
const nameAway = "away"

func (s *Uploads) accountDir(account uint64) string {
	return filepath.Join(s.opts.Dir, strconv.FormatUint(account, 16))
}

// followOwners notes which accounts other nodes own, and removes the files of those that have
// not been here for long. An account that comes here, or that no node owns, stays as it is.
func (s *Uploads) followOwners() {
	if s.opts.OwnedElsewhere == nil {
		return
	}
	now := s.opts.Now().UnixMilli()
	s.mu.Lock()
	defer s.mu.Unlock()
	changed, removed := 0, 0
	var failed error
	for account := range s.mu.files {
		partition := s.opts.Node.PartitionOf(account)
		here := s.opts.Node.Owns(partition)
		since, away := s.mu.away[account]
		var err error
		switch {
		case here && away:
			changed++
			err = s.forgetAway(account)
		case here || !s.opts.OwnedElsewhere(partition):
		case !away || since > now: // the clock was wrong
			changed++
			err = s.noteAway(account, now)
		case since <= now-awayTime.Milliseconds():
			var n int
			n, err = s.forgetRows(account, awayPerLook-changed)
			changed, removed = changed+n, removed+n
		}
		failed = errors.Join(failed, err)
		if changed >= awayPerLook {
			break // the next look continues; callers wait for the lock
		}
	}
	if removed > 0 {
		s.opts.Logger.Info("uploads of accounts that other nodes have owned for a day were removed", "uploads", removed)
	}
	if failed != nil {
		s.opts.Logger.Error("uploads of accounts that other nodes own cannot be kept track of; it is tried again", "err", failed)
	}
}

func (s *Uploads) noteAway(account uint64, now int64) error {
	err := os.WriteFile(filepath.Join(s.accountDir(account), nameAway), strconv.AppendInt(nil, now, 10), 0o600)
	if err == nil {
		s.mu.away[account] = now
	}
	return err
}

// forgetAway removes the note of an account, if there is one.
func (s *Uploads) forgetAway(account uint64) error {
	if _, away := s.mu.away[account]; !away {
		return nil
	}
	if err := os.Remove(filepath.Join(s.accountDir(account), nameAway)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	delete(s.mu.away, account)
	return nil
}

// readAway takes in the note of an account. One that cannot be read is written again.
func (s *Uploads) readAway(account uint64) error {
	b, err := os.ReadFile(filepath.Join(s.accountDir(account), nameAway))
	if err != nil {
		return err
	}
	if since, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		s.mu.away[account] = since
	}
	return nil
}

// forgetRows removes an account's uploads that have rows, most at most, and returns how many
// that were. What is known of the others stays in the list for when the account comes back.
func (s *Uploads) forgetRows(account uint64, most int) (n int, err error) {
	for _, u := range s.mu.files[account] {
		if n == most {
			break
		}
		if u.busy || !u.hasRows() {
			continue
		}
		if err := s.forget(u); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
