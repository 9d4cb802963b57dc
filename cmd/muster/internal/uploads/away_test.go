package uploads

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/api"
)

// leave has another node own the account, or no node at first.
func (w *world) leave(elsewhere bool) {
	w.t.Helper()
	ok(w.t, w.node.Release(context.Background(), 0))
	w.elsewhere.Store(elsewhere)
}

// TestFilesOfAnAccountThatLeft: files with rows of an account that another node has owned for
// a day are removed, whatever starts come between. They stay while no node owns it, and where
// it was back within the day.
func TestFilesOfAnAccountThatLeft(t *testing.T) {
	t.Parallel()
	const restart, back = "restart", "back"
	for _, x := range []struct {
		name      string
		elsewhere bool
		hours     []int
		between   string // what happens between two hours
		stays     bool
	}{
		{"for less than a day", true, []int{23}, "", true},
		{"for a day", true, []int{24}, "", false},
		{"for a day, with starts", true, []int{10, 10, 4}, restart, false},
		{"for less than a day, with starts", true, []int{10, 10, 3}, restart, true},
		{"and came back", true, []int{23, 2}, back, true},
		{"and no node owns it", false, []int{48, 48}, restart, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.begin(w.upload(api.ImportPeople, "email\nann@people.example\n").ID, api.ImportPlan{})
			w.begin(w.upload(api.ImportPeople, "email\nnobody\n").ID, api.ImportPlan{})
			for _, u := range w.list() {
				w.until(u.ID, hasEnded)
			}
			w.Close() // no look comes but those below
			w.begin(w.upload(api.ImportPeople, "email\nbob@people.example\n").ID, api.ImportPlan{})
			w.leave(x.elsewhere)
			w.followOwners()
			for i, hours := range x.hours {
				switch {
				case i > 0 && x.between == restart:
					w.open(1 << 20)
					w.Close()
				case i > 0 && x.between == back:
					ok(t, w.node.Take(t.Context(), 0))
					w.followOwners()
					w.leave(true)
					w.followOwners()
				}
				w.clock.Advance(time.Duration(hours) * time.Hour)
				w.followOwners()
			}
			left, want := len(w.list()), 1 // the import that is done has no rows
			if x.stays {
				want = 3
			}
			if logged := strings.Count(w.log.String(), "were removed"); left != want || logged != 1-want/3 {
				t.Errorf("%d uploads are left, want %d; %d lines say that some were removed", left, want, logged)
			}
			files, err := os.ReadDir(w.accountDir(w.account))
			ok(t, err)
			if stored := len(files); stored != want+1 && x.elsewhere {
				t.Errorf("the directory has %d entries: %v", stored, files)
			}
		})
	}
}

// TestReturnOfAnAccountIsNoted: the note that an account was away goes when it is back, and
// with its last upload.
func TestReturnOfAnAccountIsNoted(t *testing.T) {
	t.Parallel()
	for _, returns := range []bool{true, false} {
		w := newWorld(t)
		w.Close()
		w.begin(w.upload(api.ImportPeople, "email\nann@people.example\n").ID, api.ImportPlan{})
		w.leave(true)
		w.followOwners()
		if returns {
			ok(t, w.node.Take(t.Context(), 0))
		} else {
			w.clock.Advance(awayTime)
		}
		w.followOwners()
		files, err := os.ReadDir(w.accountDir(w.account))
		ok(t, err)
		want := 0
		if returns {
			want = 1
		}
		if len(files) != want || len(w.Uploads.mu.away) != 0 {
			t.Errorf("back %t: %v, away %v", returns, files, w.Uploads.mu.away)
		}
	}
}

// TestNoteWithoutUploadsGoes: a kill between the removal of an account's last upload and that of
// the note leaves a note, which must not count for uploads that come later.
func TestNoteWithoutUploadsGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Close()
	ok(t, os.MkdirAll(w.accountDir(w.account), 0o700))
	ok(t, os.WriteFile(filepath.Join(w.accountDir(w.account), nameAway), []byte("1"), 0o600))
	w.open(1 << 20)
	w.Close()
	files, err := os.ReadDir(w.accountDir(w.account))
	ok(t, err)
	if len(files) != 0 || len(w.Uploads.mu.away) != 0 {
		t.Errorf("%v, away %v", files, w.Uploads.mu.away)
	}
}

func (w *world) list() []api.Import {
	w.t.Helper()
	list, err := w.List(w.account)
	ok(w.t, err)
	return list
}
