package uploads

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/resolver"
)

// damages are the ways in which a file is damaged. A nil result removes it.
var damages = []struct {
	name string
	do   func(b []byte) []byte
}{
	{"removed", func([]byte) []byte { return nil }},
	{"emptied", func([]byte) []byte { return []byte{} }},
	{"last byte lost", func(b []byte) []byte { return b[:len(b)-1] }},
	{"half lost", func(b []byte) []byte { return b[:len(b)/2] }},
	{"middle byte flipped", func(b []byte) []byte { return flipped(b, len(b)/2) }},
	{"zeros", func(b []byte) []byte { return make([]byte, len(b)) }},
}

func flipped(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 0x20
	return b
}

func damage(t *testing.T, path string, do func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	ok(t, err)
	if b = do(b); b == nil {
		ok(t, os.Remove(path))
		return
	}
	ok(t, os.WriteFile(path, b, 0o600))
}

func (w *world) file(id, name string) string {
	return filepath.Join(w.dir, fmt.Sprintf("%x", w.account), id, name)
}

// events is how many events of a type are stored.
func (w *world) events(key string) (n uint64) {
	w.read(func(v *resolver.View) {
		if typ := v.EventTypes().Get(key); typ != nil {
			n = typ.Count
		}
	})
	return n
}

// TestDamagedUploads: an upload one of whose files was damaged while the server was
// stopped stays in the list. It has failed and says so, or it is imported as it was
// uploaded; never are fewer rows stored than it says.
func TestDamagedUploads(t *testing.T) {
	t.Parallel()
	for _, name := range []string{nameSaved, nameContent} {
		for _, how := range damages {
			t.Run(name+" "+how.name, func(t *testing.T) {
				w := newWorld(t)
				rows := strings.Repeat("seen,a@people.example,2026-01-03T10:00:00Z\n", 9)
				x := w.upload(api.ImportEvents, "event,email,time\n"+rows+rows)
				y, err := w.Create(w.account, api.ImportFile{Name: "part.csv", Kind: api.ImportEvents, Text: "event,email,time\n" + rows, More: true})
				ok(t, err)
				w.Close()
				damage(t, w.file(x.ID, name), how.do)
				damage(t, w.file(y.ID, name), how.do)
				if _, damaged, err := Check(t.Context(), w.dir); err != nil || len(damaged) == 0 || damaged[0].Path != w.file(x.ID, name) && damaged[0].Path != w.file(y.ID, name) {
					t.Errorf("check found %v, %v", damaged, err)
				}
				w.open(16 << 20)
				list, err := w.List(w.account)
				ok(t, err)
				if len(list) != 2 {
					t.Fatalf("%d of 2 uploads are left", len(list))
				}
				for _, x := range list {
					if x.Status == api.ImportReceiving {
						continue // its end is not there: its sender finds out
					}
					if x.Status == api.ImportReady {
						w.begin(x.ID, api.ImportPlan{})
						x = w.until(x.ID, hasEnded)
					}
					switch {
					case x.Status == api.ImportFailed && x.Error != nil && strings.Contains(*x.Error, "damaged") && strings.Contains(*x.Error, "upload the file again"):
						if n := w.events("seen"); n != 0 || x.Taken != 0 {
							t.Errorf("%d events are stored of a damaged file", n)
						}
					case x.Status == api.ImportDone && x.Taken == 18 && w.events("seen") == 18:
					default:
						t.Errorf("%+v, %v", x, x.Error)
					}
				}
				w.Close()
				w.open(16 << 20)
				if again, err := w.List(w.account); err != nil || len(again) != 2 {
					t.Errorf("after another start: %v, %v", again, err)
				}
				if n := w.Uploads.mu.bytes; n != 0 && name == nameSaved {
					t.Errorf("%d bytes are taken", n)
				}
			})
		}
	}
}

// TestDamagedRefusals: a damaged list of refused rows costs neither the import that has
// ended nor what it says of itself; one that is under way ends.
func TestDamagedRefusals(t *testing.T) {
	t.Parallel()
	for _, how := range damages {
		t.Run(how.name, func(t *testing.T) {
			w := newWorld(t)
			x := w.upload(api.ImportEvents, "event,email,time\nseen,a@people.example,2026-01-03T10:00:00Z\nseen,b@people.example,never\nseen,,2026-01-03T10:00:00Z\n")
			w.begin(x.ID, api.ImportPlan{})
			x = w.until(x.ID, hasEnded)
			w.Close()
			damage(t, w.file(x.ID, nameResult), how.do)
			w.open(16 << 20)
			y, err := w.Get(w.account, x.ID)
			ok(t, err)
			if y.Status != api.ImportDone || y.Taken != x.Taken || y.Refused != x.Refused {
				t.Errorf("%+v, was %+v", y, x)
			}
			f, err := w.Refused(w.account, x.ID)
			var r *api.Refusal
			if err == nil {
				ok(t, f.Close())
			} else if !errors.As(err, &r) || !strings.Contains(r.Message, "upload the file again") {
				t.Error(err)
			}
		})
	}
}

// TestDamagedRefusalsOnTheWay: an import whose refused rows were damaged before it ended
// ends all the same, and says it.
func TestDamagedRefusalsOnTheWay(t *testing.T) {
	t.Parallel()
	for _, how := range damages {
		t.Run(how.name, func(t *testing.T) {
			w := newWorld(t)
			x := w.upload(api.ImportEvents, "event,email,time\nseen,b@people.example,never\n"+strings.Repeat("seen,a@people.example,2026-01-03T10:00:00Z\n", 20_000))
			w.begin(x.ID, api.ImportPlan{})
			w.until(x.ID, func(x api.Import) bool { return x.Read > 0 })
			w.Close()
			if b, err := os.ReadFile(w.file(x.ID, nameRefused)); err != nil || len(b) == 0 {
				t.Skip("it ended before it was stopped")
			}
			damage(t, w.file(x.ID, nameRefused), how.do)
			w.open(16 << 20)
			if x = w.until(x.ID, hasEnded); x.Refused != 1 || x.Status == api.ImportFailed && !strings.Contains(*x.Error, "damaged") || x.Status == api.ImportDone && x.Taken != 20_000 {
				t.Errorf("%+v", x)
			}
		})
	}
}

// TestUploadsThatCannotBeRead: what is no damage refuses the start, and costs nothing; what
// is no upload is left alone.
func TestUploadsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.upload(api.ImportPeople, "email\nann@people.example\n")
	w.Close()
	notes := filepath.Join(filepath.Dir(filepath.Dir(w.file(x.ID, ""))), "notes.txt")
	ok(t, os.WriteFile(notes, []byte("x"), 0o600))
	saved := w.file(x.ID, nameSaved)
	ok(t, os.Rename(saved, saved+".away"))
	ok(t, os.Mkdir(saved, 0o700))
	if u, err := Open(Options{Dir: w.dir, Node: w.node, Now: w.clock.Now, Rand: w.opts.Rand, Bytes: 1 << 20}); err == nil || !strings.Contains(err.Error(), saved) {
		t.Errorf("%v", err)
		if err == nil {
			u.Close()
		}
	}
	ok(t, os.RemoveAll(saved))
	ok(t, os.Rename(saved+".away", saved))
	w.open(16 << 20)
	if _, err := w.Get(w.account, x.ID); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(notes); err != nil {
		t.Error(err)
	}
}

// TestUploadsCutOff: what a crash leaves of an upload that was being made or removed goes
// at the next start, and is in no list.
func TestUploadsCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.upload(api.ImportPeople, "email\nann@people.example\n")
	y := w.upload(api.ImportPeople, "email\nbob@people.example\n")
	w.Close()
	dir := filepath.Dir(filepath.Dir(w.file(x.ID, nameSaved)))
	removed := filepath.Join(dir, removedPrefix+x.ID)
	ok(t, os.Rename(filepath.Join(dir, x.ID), removed))
	ok(t, os.Remove(filepath.Join(removed, nameSaved)))
	made := filepath.Join(dir, "imp_00112233445566778899aabbccddeeff")
	ok(t, os.Mkdir(made, 0o700))
	if whole, damaged, err := Check(t.Context(), w.dir); err != nil || whole != 1 || len(damaged) != 0 {
		t.Errorf("%d, %v, %v", whole, damaged, err)
	}
	w.open(16 << 20)
	list, err := w.List(w.account)
	if err != nil || len(list) != 1 || list[0].ID != y.ID {
		t.Errorf("%v, %v", list, err)
	}
	for _, path := range []string{removed, made} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is there: %v", path, err)
		}
	}
}
