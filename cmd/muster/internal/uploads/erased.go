package uploads

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/resolver"
)

// Erased people leave the stored files as well. The person of a row is named by the
// columns that stand for identifiers, and as long as none stands for e-mail addresses or
// phone numbers, whatever looks like one in any column: which columns are meant is said
// when the import is started. Such a row is overwritten in place, so that the others keep
// their lines and their numbers; it is refused then.

// textErased is the reason that a refused row of an erased person has.
const textErased = "the person of this row was erased"

// tidy looks through the files for erased people, and removes files whose import was not
// started.
func (s *Uploads) tidy(ctx context.Context) {
	s.mu.Lock()
	var all []*upload
	accounts := map[uint64]bool{}
	limit := s.opts.Now().Add(-unstartedTime).UnixMilli()
	for account, files := range s.mu.files {
		for _, u := range files {
			switch {
			case u.busy && !u.started():
			case (u.Status == api.ImportReceiving || u.Status == api.ImportReady) && u.CreatedMs < limit:
				if err := s.forget(u); err != nil {
					s.opts.Logger.Error("an upload that was not started cannot be removed", "upload", u.ID, "err", err)
				}
			case !u.hasRows():
			default:
				all = append(all, u)
				accounts[account] = true
			}
		}
	}
	s.mu.Unlock()
	for account := range accounts {
		erasedTo, err := s.erasedTo(ctx, account)
		if err != nil {
			continue // it is not here, or starting; the next look comes soon
		}
		for _, u := range all {
			if u.account != account || !s.claim(u, erasedTo) || erasedTo == 0 {
				continue
			}
			err := s.scrub(ctx, u)
			if err == nil {
				continue
			}
			s.mu.Lock()
			u.searchedTo = -1
			s.mu.Unlock()
			if ctx.Err() == nil {
				s.opts.Logger.Error("an upload cannot be rid of erased people; it is tried again", "upload", u.ID, "err", err)
			}
		}
	}
}

// claim notes that a file is searched for all who were erased below an offset, and reports
// whether it has to be. That is noted before the search, which takes seconds for a large file:
// a part or a plan that comes meanwhile asks for another one, which the end of this one must
// not undo.
func (s *Uploads) claim(u *upload, erasedTo int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.searchedTo == erasedTo {
		return false
	}
	u.searchedTo = erasedTo
	return true
}

// erasedTo is the offset behind the account's newest erasure. Each erasure changes it: the
// number of identifiers that are kept out may be the same after one was lifted.
func (s *Uploads) erasedTo(ctx context.Context, account uint64) (offset int64, err error) {
	err = s.opts.Node.Read(ctx, account, func(v *resolver.View) error { offset = v.Erasures().Newest(); return nil })
	return offset, err
}

// erasuresDue reports whether a person was erased since the account's files were looked
// through.
func (s *Uploads) erasuresDue(ctx context.Context, account uint64) bool {
	erasedTo, err := s.erasedTo(ctx, account)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.mu.files[account] {
		if u.searchedTo != erasedTo && u.hasRows() && (!u.busy || u.started()) {
			return true
		}
	}
	return false
}

// scrub overwrites the rows of erased people in an upload's file.
func (s *Uploads) scrub(ctx context.Context, u *upload) error {
	u.content.Lock()
	defer u.content.Unlock()
	s.mu.Lock()
	copied := &upload{saved: u.saved, account: u.account, dir: u.dir}
	s.mu.Unlock()
	name, skip := nameContent, 0
	if copied.ended() {
		name, skip = nameResult, 2 // line and reason are before the cells
	}
	f, err := os.OpenFile(copied.path(name), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it ended meanwhile, or was removed
	}
	if err != nil {
		return err
	}
	defer f.Close()
	rows, err := newPlaces(f)
	var malformed *csv.ParseError
	if errors.Is(err, io.EOF) || errors.As(err, &malformed) {
		return nil // it has no rows
	}
	if err != nil {
		return err
	}
	if len(copied.Header) == 0 {
		copied.Header = rows.header // parts are missing yet
	}
	r, err := copied.plan(&copied.Plan)
	if err != nil {
		return err
	}
	j := rowJudge{kinds: map[int]resolver.IdentityKind{}, first: skip}
	var mapped [3]bool
	for i, c := range r.columns {
		for kind, field := range []string{"email", "external_id", "phone"} {
			if c.field == field {
				j.kinds[i+skip], mapped[kind] = resolver.IdentityKind(kind), true
			}
		}
	}
	j.emails, j.phones = !mapped[resolver.IdentityEmail], !mapped[resolver.IdentityPhone]
	blank, err := s.blankRows(ctx, u.account, rows, &j)
	if err != nil || len(blank) == 0 {
		return err
	}
	summed := skip == 0 && copied.Hash != ""
	if summed {
		if err := s.saveSum(u, sumUnknown); err != nil {
			return err
		}
	}
	for _, b := range blank {
		if err := overwrite(f, b, skip > 0); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if summed {
		sum, err := sumOf(ctx, copied.path(name))
		if err == nil {
			err = s.saveSum(u, sum)
		}
		if err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range blank {
		if i := slices.IndexFunc(u.refusals, func(x api.ImportRefusal) bool { return x.Line == b.line }); skip > 0 && i >= 0 {
			u.refusals[i].Reason = textErased
		}
	}
	s.opts.Logger.Info("rows of erased people were blanked in an upload", "upload", u.ID, "rows", len(blank))
	return nil
}

// saveSum notes the checksum of the file of an upload, durably.
func (s *Uploads) saveSum(u *upload, sum string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.ended() || s.mu.files[u.account][u.ID] != u {
		return nil // the file goes
	}
	before := u.Sum
	u.Sum = sum
	if err := u.save(); err != nil {
		u.Sum = before
		return err
	}
	return nil
}

// blankRow is where a row of an erased person is.
type blankRow struct {
	from, to int64
	line     int // that the first cell names
}

// lookRows is how many rows are judged in one look at the state.
const lookRows = 512

// rowJudge says which rows are of erased people.
type rowJudge struct {
	kinds map[int]resolver.IdentityKind // of the cells that stand for identifiers
	first int                           // the first cell that the file had
	// emails and phones say that no cell stands for such an identifier, so that any may have one.
	emails, phones bool
}

func (j *rowJudge) erased(v *resolver.View, cells []string) bool {
	for i, cell := range cells {
		kind, known := j.kinds[i]
		switch {
		case i < j.first || cell == "":
		case known:
			if v.Profiles().Erased(kind, cell) {
				return true
			}
		case j.emails || j.phones:
			// The file may have been written with another separator.
			for text := range strings.FieldsFuncSeq(cell, func(c rune) bool { return strings.ContainsRune(";\t|", c) }) {
				text = strings.Trim(text, " \"'<>")
				if j.emails && strings.Contains(text, "@") && v.Profiles().Erased(resolver.IdentityEmail, text) || j.phones && looksLikePhone(text) && v.Profiles().Erased(resolver.IdentityPhone, text) {
					return true
				}
			}
		}
	}
	return false
}

// looksLikePhone reports whether a text may be a phone number: seven digits at least, and
// nothing else but what stands between them.
func looksLikePhone(text string) bool {
	digits := 0
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case !strings.ContainsRune("+-./() ", c):
			return false
		}
	}
	return digits >= 7
}

// blankRows finds the rows of erased people.
func (s *Uploads) blankRows(ctx context.Context, account uint64, rows *places, j *rowJudge) (out []blankRow, err error) {
	type found struct {
		cells []string
		blankRow
	}
	var window []found
	judge := func() error {
		err := s.opts.Node.Read(ctx, account, func(v *resolver.View) error {
			for _, x := range window {
				if j.erased(v, x.cells) {
					out = append(out, x.blankRow)
				}
			}
			return nil
		})
		window = window[:0]
		return err
	}
	for {
		cells, from, to, err := rows.next()
		if errors.Is(err, io.EOF) {
			return out, judge()
		}
		if err != nil {
			return nil, err
		}
		x := found{slices.Clone(cells), blankRow{from: from, to: to}}
		if len(cells) > 0 {
			x.line, _ = strconv.Atoi(cells[0]) // only refused rows begin with their line
		}
		if window = append(window, x); len(window) == lookRows {
			if err := judge(); err != nil {
				return nil, err
			}
		}
	}
}

// overwrite overwrites a row: all of it, or all behind its first cell, which is its line.
// The row keeps its length, and stays one row.
func overwrite(f *os.File, b blankRow, keepLine bool) error {
	text := make([]byte, b.to-b.from)
	if _, err := f.ReadAt(text, b.from); err != nil {
		return err
	}
	row := bytes.Trim(text, "\r\n")
	if keepLine {
		row = row[bytes.IndexByte(row, ',')+1:]
	}
	lines := bytes.IndexByte(row, '\n') >= 0
	for i := range row {
		if row[i] != '\n' {
			row[i] = '-'
		}
	}
	if lines { // one cell of several lines
		row[0], row[len(row)-1] = '"', '"'
	}
	_, err := f.WriteAt(text, b.from)
	return err
}
