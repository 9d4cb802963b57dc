package uploads

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/cmd/muster/internal/importer"
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver"
)

// Uploads is the uploads of a data directory; it is an [api.Imports].
type Uploads struct {
	opts Options
	wake chan struct{} // has room for one; sent to when there is something to do
	stop context.CancelFunc
	done chan struct{}

	mu struct {
		sync.Mutex
		// files has the uploads of an account by id.
		files map[uint64]map[string]*upload
		bytes int64 // stored content
		// started counts imports that were started, ended those that ended, by status, and
		// rows what became of rows: since the process began.
		started uint64
		ended   map[string]uint64
		rows    windowCount
		queue   int64 // the place in the queue given last
		// away is since when accounts have not been here, in Unix milliseconds: see away.go.
		away map[uint64]int64
	}
}

// Open reads the uploads of a directory and continues with those that were cut off.
func Open(o Options) (*Uploads, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	s := &Uploads{opts: o, wake: make(chan struct{}, 1), done: make(chan struct{})}
	s.mu.files = map[uint64]map[string]*upload{}
	s.mu.ended = map[string]uint64{}
	s.mu.away = map[uint64]int64{}
	if err := s.readAll(); err != nil {
		return nil, fmt.Errorf("uploads: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.run(ctx)
	return s, nil
}

// Close stops the import under way after the window at hand; the next start continues.
func (s *Uploads) Close() {
	s.stop()
	<-s.done
}

func (s *Uploads) readAll() error {
	accounts, err := os.ReadDir(s.opts.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, a := range accounts {
		account, err := strconv.ParseUint(a.Name(), 16, 64)
		if err != nil {
			continue
		}
		dir := filepath.Join(s.opts.Dir, a.Name())
		list, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, x := range list {
			if x.Name() == nameAway {
				err = s.readAway(account)
			} else {
				err = s.readOne(account, filepath.Join(dir, x.Name()))
			}
			if err != nil {
				return err
			}
		}
		if s.mu.files[account] == nil { // a crash came between the last upload and its note
			if err := s.forgetAway(account); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Uploads) add(u *upload) {
	if s.mu.files[u.account] == nil {
		s.mu.files[u.account] = map[string]*upload{}
	}
	s.mu.files[u.account][u.ID] = u
}

// refuse is an error of a caller.
func refuse(status int, field, format string, args ...any) error {
	return &api.Refusal{Status: status, Field: field, Message: fmt.Sprintf(format, args...)}
}

var errUnknown = refuse(404, "", "there is no import with this id")

func (s *Uploads) find(account uint64, id string) (*upload, error) {
	if u := s.mu.files[account][id]; u != nil {
		return u, nil
	}
	return nil, errUnknown
}

// Create implements [api.Imports].
func (s *Uploads) Create(account uint64, f api.ImportFile) (x api.Import, err error) {
	switch {
	case strings.TrimSpace(f.Name) == "" || len(f.Name) > 200 || !utf8.ValidString(f.Name):
		return x, refuse(400, "name", "name must have 1 to 200 bytes")
	case f.Kind != api.ImportPeople && f.Kind != api.ImportEvents:
		return x, refuse(400, "kind", "kind must be people or events")
	case f.Text == "":
		return x, refuse(400, "text", "text is empty; send the file, whose first row names the columns")
	}
	var id [16]byte
	if _, err := io.ReadFull(s.opts.Rand, id[:]); err != nil {
		return x, fmt.Errorf("source of randomness: %w", err)
	}
	u := &upload{account: account, searchedTo: -1, saved: saved{
		ID: "imp_" + hex.EncodeToString(id[:]), Name: f.Name, Kind: f.Kind, Status: api.ImportReceiving, CreatedMs: s.opts.Now().UnixMilli(),
	}}
	u.dir = filepath.Join(s.accountDir(account), u.ID)
	s.mu.Lock()
	unfinished := 0
	for _, other := range s.mu.files[account] {
		if !other.ended() {
			unfinished++
		}
	}
	if unfinished >= maxUnfinished {
		s.mu.Unlock()
		return x, refuse(409, "", "this account has %d uploads that have not ended, the most it can have; start, cancel or remove one first", maxUnfinished)
	}
	u.busy = true
	s.add(u)
	s.mu.Unlock()

	err = os.MkdirAll(u.dir, 0o700)
	if err == nil {
		err = u.save()
	}
	if err == nil {
		err = errors.Join(syncDir(filepath.Dir(u.dir)), syncDir(s.opts.Dir))
	}
	if err == nil {
		err = s.take(u, f.Text, f.More)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u.busy = false
	if err != nil {
		delete(s.mu.files[account], u.ID)
		s.mu.bytes -= u.Bytes
		return x, eventlog.OutOfSpace(errors.Join(err, u.remove()))
	}
	return s.show(u), nil
}

// Append implements [api.Imports].
func (s *Uploads) Append(account uint64, id string, p api.ImportPart) (x api.Import, err error) {
	s.mu.Lock()
	u, err := s.find(account, id)
	switch {
	case err != nil:
	case u.Status != api.ImportReceiving:
		err = refuse(409, "", "the file is complete already; upload another")
	case u.busy:
		err = refuse(409, "", "a part of this file is being stored; send this one after it")
	case p.Offset != u.Bytes:
		err = refuse(409, "offset", "offset must be %d, the bytes received so far", u.Bytes)
	default:
		u.busy = true
	}
	s.mu.Unlock()
	if err != nil {
		return x, err
	}
	err = s.take(u, p.Text, p.More)
	s.mu.Lock()
	defer s.mu.Unlock()
	u.busy = false
	return s.show(u), eventlog.OutOfSpace(err)
}

// take stores a part of the file of an upload that is busy, and looks at all of it when
// it is complete.
func (s *Uploads) take(u *upload, text string, more bool) error {
	n := int64(len(text))
	s.mu.Lock()
	var err error
	switch {
	case u.Bytes+n > s.opts.Bytes/4:
		err = refuse(413, "text", "the file is longer than %d bytes; split it, or use muster import", s.opts.Bytes/4)
	case s.mu.bytes+n > s.opts.Bytes:
		err = refuse(409, "text", "all uploads together have more than %d bytes; try again when some have been imported", s.opts.Bytes)
	default:
		s.mu.bytes += n
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	u.content.Lock()
	defer u.content.Unlock()
	next := u.saved
	next.Bytes += n
	err = appendFile(u.path(nameContent), u.Bytes, []byte(text))
	if err == nil && !more {
		err = s.look(u, &next)
	}
	if err == nil {
		err = (&upload{saved: next, dir: u.dir}).save()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.mu.bytes -= n
		return err
	}
	u.saved, u.searchedTo = next, -1
	return nil
}

// look reads the whole file of an upload that is complete.
func (s *Uploads) look(u *upload, next *saved) error {
	f, err := os.Open(u.path(nameContent))
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	t, err := importer.ReadTable(context.Background(), io.TeeReader(f, h), 0)
	switch {
	case err != nil:
		return refuse(400, "text", "the file is not CSV: %s", err)
	case len(t.Header) > maxColumns:
		return refuse(400, "text", "the file has %d columns; at most %d are taken", len(t.Header), maxColumns)
	case t.Rows == 0:
		return refuse(400, "text", "the file has no rows behind the one that names the columns")
	}
	for i, name := range t.Header {
		name = strings.TrimSpace(name)
		switch {
		case name == "":
			return refuse(400, "text", "column %d has no name in the first row; give it one", i+1)
		case slices.ContainsFunc(t.Header[:i], func(other string) bool { return strings.TrimSpace(other) == name }):
			return refuse(400, "text", "column %q stands twice in the first row; remove one", name)
		}
		next.Header = append(next.Header, name)
	}
	next.Hash, next.Rows, next.Types, next.Status = hex.EncodeToString(h.Sum(nil)), t.Rows, t.Types, api.ImportReady
	return nil
}

// List implements [api.Imports].
func (s *Uploads) List(account uint64) ([]api.Import, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []api.Import{}
	for _, u := range s.mu.files[account] {
		out = append(out, s.show(u))
	}
	slices.SortFunc(out, func(x, y api.Import) int { return cmp.Compare(y.CreatedAt+y.ID, x.CreatedAt+x.ID) })
	return out, nil
}

// Get implements [api.Imports].
func (s *Uploads) Get(account uint64, id string) (api.Import, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.find(account, id)
	if err != nil {
		return api.Import{}, err
	}
	return s.show(u), nil
}

// show is an upload as it is answered.
func (s *Uploads) show(u *upload) api.Import {
	x := api.Import{
		ID: u.ID, Name: u.Name, Kind: u.Kind, Status: u.Status, Bytes: u.Bytes, Read: u.Read, Taken: u.Taken, Duplicates: u.Duplicates, Refused: u.Refused, Rate: u.rate,
		Refusals: slices.Clone(u.refusals), CreatedAt: instant(u.CreatedMs), ListID: orNull(u.Plan.ListID), Error: orNull(u.Error),
	}
	if x.Refusals == nil {
		x.Refusals = []api.ImportRefusal{}
	}
	if u.Status != api.ImportReceiving {
		rows := u.Rows
		x.Rows = &rows
	}
	if u.StartedMs != 0 {
		x.StartedAt = orNull(instant(u.StartedMs))
	}
	if u.EndedMs != 0 {
		x.EndedAt = orNull(instant(u.EndedMs))
	}
	return x
}

func instant(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Start implements [api.Imports].
func (s *Uploads) Start(ctx context.Context, account uint64, id string, p api.ImportPlan) (x api.Import, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.find(account, id)
	switch {
	case err != nil:
		return x, err
	case u.Status == api.ImportReceiving || u.busy:
		return x, refuse(409, "", "the file is not complete; send the rest of it by POST /imports/{id}/parts")
	case u.Status != api.ImportReady:
		return x, refuse(409, "", "the import was started before; upload the file again to import it again")
	}
	c, err := u.plan(&p)
	if err != nil {
		return x, err
	}
	if c.fault != "" {
		return x, refuse(400, "columns", "%s", c.fault)
	}
	if p.ListID != "" {
		err = s.opts.Node.Read(ctx, account, func(v *resolver.View) error {
			if _, ok := v.Contacts().Find(p.ListID); !ok {
				return refuse(404, "list_id", "list_id: there is no such list")
			}
			return nil
		})
		if err != nil {
			return x, err
		}
	}
	before := u.saved
	s.mu.queue++
	u.Plan, u.Status, u.Queue = p, api.ImportQueued, s.mu.queue
	if err := u.save(); err != nil {
		u.saved = before
		return x, eventlog.OutOfSpace(err)
	}
	u.searchedTo = -1 // the columns that stand for identifiers are others now
	s.mu.started++
	s.wakeUp()
	return s.show(u), nil
}

func (s *Uploads) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Cancel implements [api.Imports].
func (s *Uploads) Cancel(account uint64, id string) (x api.Import, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.find(account, id)
	switch {
	case err != nil:
		return x, err
	case u.ended():
		return x, refuse(409, "", "the import has ended already")
	case u.busy && u.Status == api.ImportReceiving:
		return x, refuse(409, "", "a part of this file is being stored; cancel it after that")
	case u.Status == api.ImportRunning || u.busy:
		before := u.saved
		u.Cancel = true
		if err := u.save(); err != nil {
			u.saved = before
			return x, eventlog.OutOfSpace(err)
		}
		s.wakeUp()
		return s.show(u), nil
	}
	err = s.end(u, api.ImportCancelled, "")
	return s.show(u), eventlog.OutOfSpace(err)
}

// Delete implements [api.Imports].
func (s *Uploads) Delete(account uint64, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.find(account, id)
	switch {
	case err != nil:
		return err
	case u.Status == api.ImportRunning || u.busy:
		return refuse(409, "", "the import is running; cancel it first")
	}
	return s.forget(u)
}

// forget removes all of an upload.
func (s *Uploads) forget(u *upload) error {
	if err := u.remove(); err != nil {
		return err
	}
	if !u.ended() {
		s.mu.bytes -= u.Bytes
	}
	delete(s.mu.files[u.account], u.ID)
	if len(s.mu.files[u.account]) == 0 {
		delete(s.mu.files, u.account)
		if err := s.forgetAway(u.account); err != nil {
			s.opts.Logger.Error("the note that an account is away cannot be removed; the next start tries again", "err", err)
		}
	}
	return nil
}

// end ends an import whose refused rows were written, and removes the file. The lock is
// held.
func (s *Uploads) end(u *upload, status, why string) error {
	before := u.saved
	u.Status, u.Error, u.EndedMs, u.Cancel = status, why, s.opts.Now().UnixMilli(), false
	if err := u.save(); err != nil {
		u.saved = before
		return err
	}
	s.mu.bytes -= u.Bytes
	s.mu.ended[status]++
	u.rate = 0
	err := u.removeContent()
	// The oldest that have ended are forgotten.
	var ended []*upload
	for _, other := range s.mu.files[u.account] {
		if other.ended() {
			ended = append(ended, other)
		}
	}
	slices.SortFunc(ended, func(x, y *upload) int { return cmp.Compare(y.EndedMs, x.EndedMs) })
	for _, old := range ended[min(len(ended), maxEnded):] {
		err = errors.Join(err, s.forget(old))
	}
	return err
}

// Refused implements [api.Imports].
func (s *Uploads) Refused(account uint64, id string) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.find(account, id)
	switch {
	case err != nil:
		return nil, err
	case !u.ended():
		return nil, refuse(409, "", "the import has not ended; its first refused rows are in refusals")
	case u.Refused == 0:
		return io.NopCloser(bytes.NewReader([]byte("line,reason\n"))), nil
	}
	f, err := os.Open(u.path(nameResult))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refuse(404, "", "the list of the refused rows is damaged; to have it again, "+textAgain)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}
