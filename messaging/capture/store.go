package capture

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/musterhq/muster/messaging/outcome"
)

// Message is a captured message.
type Message struct {
	// Seq orders messages; the newest has the highest. Set by Add.
	Seq uint64 `json:"seq"`
	// ID is the message's identity: a repeat has the same.
	ID string `json:"id"`
	// Channel is email, sms, im, whatsapp, push or in_app.
	Channel string `json:"channel"`
	To      string `json:"to"`
	From    string `json:"from,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Body is the text of channels with one text; HTML and Text are an e-mail's.
	Body    string            `json:"body,omitempty"`
	HTML    string            `json:"html,omitempty"`
	Text    string            `json:"text,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	SendID  string            `json:"send_id,omitempty"`
	// At is the time of the first attempt.
	At time.Time `json:"at"`
	// Truncated reports that a text was longer than MaxText.
	Truncated bool `json:"truncated,omitempty"`
	// Attempts counts how often it was added, LastAt when the last time; both are
	// kept beside the message and set by List and Get.
	Attempts int       `json:"attempts,omitempty"`
	LastAt   time.Time `json:"last_at,omitzero"`
}

const (
	// MaxText bounds each of Body, HTML and Text, in bytes; other fields have
	// MaxField.
	MaxText  = 256 << 10
	MaxField = 2 << 10
	// MaxHeaders bounds the headers kept.
	MaxHeaders = 64

	// PageBytes bounds a page of List: it ends early when its messages take more.
	PageBytes = 8 << 20
	// MaxPage is the largest limit of List, DefaultPage that of a limit of 0.
	MaxPage     = 500
	DefaultPage = 50
)

// Options configure a Store.
type Options struct {
	// Dir holds the segment files; it is created. It belongs to one process.
	Dir string
	// MaxMessages defaults to 10,000, MaxBytes to 64 MiB (at least 64 KiB).
	MaxMessages int
	MaxBytes    int64
	// Logger gets the errors of damaged files; nil is silent.
	Logger *slog.Logger
}

// Store is the ring. It may be used by many goroutines.
type Store struct {
	o       Options
	segSize int64

	mu struct {
		sync.RWMutex
		closed   bool
		failed   error // a write failed halfway and could not be undone
		next     uint64
		segments []*segment // in order; the last is written to
		entries  []*entry   // in order of Seq
		byID     map[string]*entry
		damaged  int64
	}
}

type segment struct {
	path string
	file *os.File
	size int64
}

type entry struct {
	seq         uint64
	id          string
	channel, to string
	seg         *segment
	offset      int64
	size        int
	attempts    int
	lastAt      time.Time
}

// ErrClosed is returned after Close.
var ErrClosed = errors.New("capture: the store is closed")

// Open reads what is there and cuts a torn tail off. Damage is passed over, and logged.
func Open(o Options) (*Store, error) {
	if o.Dir == "" {
		return nil, errors.New("capture: directory is missing")
	}
	if o.MaxMessages == 0 {
		o.MaxMessages = 10_000
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 64 << 20
	}
	if o.MaxMessages < 1 || o.MaxBytes < 64<<10 {
		return nil, fmt.Errorf("capture: max messages %d and max bytes %d must be at least 1 and 65536", o.MaxMessages, o.MaxBytes)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	s := &Store{o: o, segSize: o.MaxBytes / 16}
	s.mu.byID = map[string]*entry{}
	s.mu.next = 1
	if err := s.load(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

const namePrefix, nameSuffix = "capture-", ".seg"

func (s *Store) load() error {
	names, err := os.ReadDir(s.o.Dir)
	if err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	var paths []string // sorted by name, which is by sequence
	for _, n := range names {
		first, is := segmentName(n.Name())
		if !is {
			continue
		}
		s.mu.next = max(s.mu.next, first)
		paths = append(paths, filepath.Join(s.o.Dir, n.Name()))
	}
	for i, p := range paths {
		if err := s.loadSegment(p, i == len(paths)-1); err != nil {
			return err
		}
	}
	s.trim()
	return nil
}

// segmentName reads the first sequence number out of a segment file's name.
func segmentName(name string) (first uint64, is bool) {
	hex, ok := strings.CutPrefix(name, namePrefix)
	hex, ok2 := strings.CutSuffix(hex, nameSuffix)
	if !ok || !ok2 || len(hex) != 16 {
		return 0, false
	}
	first, err := strconv.ParseUint(hex, 16, 64)
	return first, err == nil
}

func (s *Store) loadSegment(path string, last bool) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	seg := &segment{path: path, file: file}
	// Larger than any segment this store writes is not of its making.
	b, err := io.ReadAll(io.LimitReader(file, max(s.o.MaxBytes, 64<<20)+2*maxRecord))
	if err != nil {
		file.Close()
		return fmt.Errorf("capture: reading %s: %w", path, err)
	}
	found := scan(b, func(m *Message, offset, size int) {
		s.index(m, seg, int64(offset), size)
	}, func(r *repeat) {
		if e := s.mu.byID[r.ID]; e != nil {
			e.attempts++
			e.lastAt = r.At
		}
	})
	seg.size = int64(len(b))
	if found.damage >= 0 {
		s.mu.damaged++
		s.o.Logger.Error("captured messages are damaged; the file stays as it is, and what can be read of it is shown",
			"error", Damage{path, int64(found.damage), int64(found.lost)})
	}
	switch {
	case found.sound == 0: // nothing but a torn beginning
		file.Close()
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("capture: %w", err)
		}
		return nil
	case found.sound < len(b) && last:
		// What is appended comes behind the last whole record.
		if err := file.Truncate(int64(found.sound)); err != nil {
			file.Close()
			return fmt.Errorf("capture: cutting %s at %d: %w", path, found.sound, err)
		}
		seg.size = int64(found.sound)
	}
	s.mu.segments = append(s.mu.segments, seg)
	return nil
}

// index enters a message. An id that is there already is met only at a start:
// the ring had let go of it when it was added again, so the newer one counts.
// A number that does not follow the one before is met only in a file that was put
// there from elsewhere: the message gets the next number, since entries are in order.
func (s *Store) index(m *Message, seg *segment, offset int64, size int) {
	seq := m.Seq
	if n := len(s.mu.entries); n > 0 {
		seq = max(seq, s.mu.entries[n-1].seq+1)
	}
	s.mu.next = max(s.mu.next, seq+1)
	if old := s.mu.byID[m.ID]; old != nil {
		i := s.position(old.seq)
		s.mu.entries = slices.Delete(s.mu.entries, i, i+1)
	}
	e := &entry{seq: seq, id: m.ID, channel: m.Channel, to: m.To, seg: seg, offset: offset, size: size, attempts: 1, lastAt: m.At}
	s.mu.byID[m.ID] = e
	s.mu.entries = append(s.mu.entries, e)
}

// Add keeps m and returns how often it was added, this time included. Of a
// message that is there already only the count and the time change.
func (s *Store) Add(m Message) (attempts int, err error) {
	if m.ID == "" || len(m.ID) > MaxField || !utf8.ValidString(m.ID) {
		return 0, fmt.Errorf("capture: message id is empty, longer than %d bytes or not UTF-8", MaxField)
	}
	m.bound()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return 0, ErrClosed
	}
	if s.mu.failed != nil {
		return 0, s.mu.failed
	}
	if e := s.mu.byID[m.ID]; e != nil {
		if _, _, err := s.write(kindRepeat, repeat{ID: m.ID, At: m.At}); err != nil {
			return 0, err
		}
		e.attempts++
		e.lastAt = m.At
		n := e.attempts
		s.trim() // the record may have begun a segment
		return n, nil
	}
	m.Seq, m.Attempts, m.LastAt = s.mu.next, 0, time.Time{}
	seg, size, err := s.write(kindMessage, m)
	if err != nil {
		return 0, err
	}
	s.index(&m, seg, seg.size-int64(size), size)
	s.trim()
	return 1, nil
}

// bound cuts what is too long.
func (m *Message) bound() {
	for _, f := range []*string{&m.Body, &m.HTML, &m.Text} {
		if len(*f) > MaxText {
			*f, m.Truncated = strings.ToValidUTF8((*f)[:MaxText], ""), true
		}
	}
	for _, f := range []*string{&m.Channel, &m.To, &m.From, &m.Subject, &m.SendID} {
		if len(*f) > MaxField {
			*f, m.Truncated = outcome.Clean(*f, MaxField), true
		}
	}
	long := len(m.Headers) > MaxHeaders
	for name, value := range m.Headers {
		long = long || len(name)+len(value) > MaxField
	}
	if long {
		kept := map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
			if len(kept) < MaxHeaders && len(name)+len(m.Headers[name]) <= MaxField {
				kept[name] = m.Headers[name]
			}
		}
		m.Headers, m.Truncated = kept, true
	}
}

// write appends a record to the last segment, or a new one when that is full.
func (s *Store) write(kind byte, payload any) (*segment, int, error) {
	rec, err := encodeRecord(kind, payload)
	if err != nil {
		return nil, 0, err
	}
	var seg *segment
	if n := len(s.mu.segments); n > 0 {
		seg = s.mu.segments[n-1]
	}
	if seg == nil || seg.size+int64(len(rec)) > s.segSize && seg.size > int64(len(segmentMagic)) {
		if seg, err = s.begin(); err != nil {
			return nil, 0, err
		}
	}
	if _, err := seg.file.WriteAt(rec, seg.size); err != nil {
		// A part of it may be there; the next record overwrites it, and at a
		// start it is cut off. Only when it cannot be is the store unusable.
		if terr := seg.file.Truncate(seg.size); terr != nil {
			s.mu.failed = fmt.Errorf("capture: writing %s failed and its tail cannot be cut: %w", seg.path, errors.Join(err, terr))
		}
		return nil, 0, fmt.Errorf("capture: writing %s: %w", seg.path, err)
	}
	seg.size += int64(len(rec))
	return seg, len(rec), nil
}

func (s *Store) begin() (*segment, error) {
	// A segment is named by the next sequence number. One that holds only
	// repeats would get the name of the one before it, so a number is spent.
	path := filepath.Join(s.o.Dir, fmt.Sprintf("%s%016x%s", namePrefix, s.mu.next, nameSuffix))
	if n := len(s.mu.segments); n > 0 && s.mu.segments[n-1].path >= path {
		s.mu.next++
		path = filepath.Join(s.o.Dir, fmt.Sprintf("%s%016x%s", namePrefix, s.mu.next, nameSuffix))
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	if _, err := file.Write(segmentMagic[:]); err != nil {
		file.Close()
		os.Remove(path)
		return nil, fmt.Errorf("capture: writing %s: %w", path, err)
	}
	seg := &segment{path: path, file: file, size: int64(len(segmentMagic))}
	s.mu.segments = append(s.mu.segments, seg)
	return seg, nil
}

// trim drops the oldest beyond the bounds. Files go when nothing in them is
// shown any more, or for their bytes.
func (s *Store) trim() {
	if over := len(s.mu.entries) - s.o.MaxMessages; over > 0 {
		s.forget(over)
	}
	var total int64
	for _, seg := range s.mu.segments {
		total += seg.size
	}
	for len(s.mu.segments) > 1 {
		oldest := s.mu.segments[0]
		empty := len(s.mu.entries) == 0 || s.mu.entries[0].seg != oldest
		if total <= s.o.MaxBytes && !empty {
			return
		}
		n := 0
		for n < len(s.mu.entries) && s.mu.entries[n].seg == oldest {
			n++
		}
		s.forget(n)
		oldest.file.Close()
		os.Remove(oldest.path) // if it stays, the next start takes it into account again
		total -= oldest.size
		s.mu.segments = s.mu.segments[1:]
	}
}

// forget drops the n oldest entries.
func (s *Store) forget(n int) {
	for i := range n {
		delete(s.mu.byID, s.mu.entries[i].id)
		s.mu.entries[i] = nil
	}
	s.mu.entries = s.mu.entries[n:]
}

// Filter chooses messages; empty fields choose all.
type Filter struct {
	Channel, To string
}

// List returns messages, the newest first. limit of 0 is DefaultPage; cursor is
// 0 for the beginning or what the page before returned. The next cursor is 0
// when there are no more.
func (s *Store) List(f Filter, limit int, cursor uint64) (page []Message, next uint64, err error) {
	if limit == 0 {
		limit = DefaultPage
	}
	if limit < 1 || limit > MaxPage {
		return nil, 0, fmt.Errorf("capture: limit %d is out of range 1 to %d", limit, MaxPage)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.mu.closed {
		return nil, 0, ErrClosed
	}
	end := len(s.mu.entries)
	if cursor != 0 {
		end = s.position(cursor)
	}
	var bytes int
	for i := end - 1; i >= 0; i-- {
		e := s.mu.entries[i]
		if f.Channel != "" && e.channel != f.Channel || f.To != "" && !strings.EqualFold(e.to, f.To) {
			continue
		}
		if len(page) == limit || len(page) > 0 && bytes+e.size > PageBytes {
			return page, page[len(page)-1].Seq, nil
		}
		m, err := e.read()
		if err != nil {
			return nil, 0, err
		}
		bytes += e.size
		page = append(page, m)
	}
	return page, 0, nil
}

// position returns the index of the first entry with that number or a higher one.
func (s *Store) position(seq uint64) int {
	i, _ := slices.BinarySearchFunc(s.mu.entries, seq, func(e *entry, seq uint64) int { return cmp.Compare(e.seq, seq) })
	return i
}

// Get returns the message of an id and whether it is there.
func (s *Store) Get(id string) (m Message, ok bool, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.mu.closed {
		return m, false, ErrClosed
	}
	e := s.mu.byID[id]
	if e == nil {
		return m, false, nil
	}
	m, err = e.read()
	return m, err == nil, err
}

func (e *entry) read() (m Message, err error) {
	b := make([]byte, e.size)
	if _, err := e.seg.file.ReadAt(b, e.offset); err != nil {
		return m, fmt.Errorf("capture: reading %s at %d: %w", e.seg.path, e.offset, err)
	}
	kind, payload, _, err := nextRecord(b)
	if err != nil || kind != kindMessage {
		return m, fmt.Errorf("capture: %s at %d: %w", e.seg.path, e.offset, errDamaged)
	}
	if err := json.Unmarshal(payload, &m); err != nil {
		return m, fmt.Errorf("capture: %s at %d: %w", e.seg.path, e.offset, err)
	}
	m.Seq, m.Attempts, m.LastAt = e.seq, e.attempts, e.lastAt
	return m, nil
}

// Stats are what the store holds.
type Stats struct {
	Messages int
	// Bytes is the size of all files.
	Bytes int64
	// Damaged counts segments with damage at Open.
	Damaged int64
}

// Stats returns the figures of this moment.
func (s *Store) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := Stats{Messages: len(s.mu.entries), Damaged: s.mu.damaged}
	for _, seg := range s.mu.segments {
		st.Bytes += seg.size
	}
	return st
}

// Close syncs and closes the files.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return nil
	}
	s.mu.closed = true
	var errs []error
	for i, seg := range s.mu.segments {
		if i == len(s.mu.segments)-1 {
			errs = append(errs, seg.file.Sync())
		}
		errs = append(errs, seg.file.Close())
	}
	s.mu.segments, s.mu.entries, s.mu.byID = nil, nil, nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("capture: closing: %w", err)
	}
	return nil
}
