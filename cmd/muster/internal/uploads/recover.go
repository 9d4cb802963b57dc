package uploads

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/musterhq/muster/api"
)

// What a start finds of uploads. One whose files were damaged while the server was stopped
// stays in the list as failed, and says to upload the file again: otherwise the loss would
// go unnoticed. Files that cannot be read for another reason refuse the start.

// damageError reports that a file of an upload is not as it was written.
type damageError struct {
	path, reason string
}

func (e *damageError) Error() string { return e.path + " is damaged: " + e.reason }

const (
	// textAgain is the remedy for all damage.
	textAgain = "upload the file again: rows that are stored are not stored twice"
	// removedPrefix begins the name of an upload's directory that is being removed.
	removedPrefix = ".removed-"
)

var uploadDir = regexp.MustCompile(`^imp_[0-9a-f]{32}$`)

// failure is what the upload says of damage of one of its files.
func (e *damageError) failure() string {
	return fmt.Sprintf("the stored %s is damaged (%s); %s", filepath.Base(e.path), e.reason, textAgain)
}

// readOne takes in what is in the directory of an account.
func (s *Uploads) readOne(account uint64, dir string) error {
	name := filepath.Base(dir)
	if strings.HasPrefix(name, removedPrefix) {
		return os.RemoveAll(dir)
	}
	if !uploadDir.MatchString(name) {
		s.opts.Logger.Warn("not an upload; it is passed over", "path", dir)
		return nil
	}
	u, err := load(account, dir)
	var damage *damageError
	switch {
	case errors.Is(err, errNothing):
		// Cut off while it was made: nothing of it was acknowledged.
		return (&upload{dir: dir}).remove()
	case errors.As(err, &damage):
		u = s.unknown(account, dir)
		if err := s.failed(u, damage); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	if u.ended() {
		if err := u.removeContent(); err != nil {
			return err
		}
	} else if err := s.resume(u); errors.As(err, &damage) {
		if err := s.failed(u, damage); err != nil {
			return err
		}
	} else if err != nil {
		return err
	} else {
		s.mu.bytes += u.Bytes
	}
	if u.refusals, err = firstRefusals(u); err != nil {
		damage = damagedBy(u.path(nameResult), err)
		if damage == nil {
			return err
		}
		s.opts.Logger.Error("the refused rows of an upload are damaged; "+textAgain, "file", damage.path, "reason", damage.reason)
		if err := os.Remove(damage.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	s.mu.queue = max(s.mu.queue, u.Queue)
	s.add(u)
	return nil
}

// errNothing reports that a directory has nothing of an upload that was acknowledged.
var errNothing = errors.New("nothing of an upload")

// load reads an upload's directory.
func load(account uint64, dir string) (*upload, error) {
	u := &upload{account: account, dir: dir, searchedTo: -1}
	path := u.path(nameSaved)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		for _, name := range []string{nameContent, nameRefused, nameResult} {
			if _, err := os.Lstat(u.path(name)); err == nil {
				return nil, &damageError{path, "it is missing"}
			}
		}
		return nil, errNothing
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &u.saved); err != nil {
		return nil, &damageError{path, err.Error()}
	}
	if u.ID != filepath.Base(dir) {
		return nil, &damageError{path, fmt.Sprintf("it is of the upload %.50q", u.ID)}
	}
	if u.Bytes < 0 || u.RefusedBytes < 0 || u.Kind != api.ImportPeople && u.Kind != api.ImportEvents {
		return nil, &damageError{path, "it has values that are not written"}
	}
	if u.Bytes == 0 && u.Status == api.ImportReceiving {
		return nil, errNothing
	}
	return u, nil
}

// unknown is an upload of which only the id is known, and its kind if that can be read.
func (s *Uploads) unknown(account uint64, dir string) *upload {
	u := &upload{account: account, dir: dir, searchedTo: -1, saved: saved{ID: filepath.Base(dir), Kind: api.ImportPeople, CreatedMs: s.opts.Now().UnixMilli()}}
	u.Name = u.ID
	if b, err := os.ReadFile(u.path(nameSaved)); err == nil && bytes.Contains(b, []byte(`"kind":"`+api.ImportEvents)) {
		u.Kind = api.ImportEvents
	}
	return u
}

// resume checks the files of an upload that has not ended, and drops what came behind the
// last acknowledged part.
func (s *Uploads) resume(u *upload) error {
	if err := u.checkSizes(); err != nil {
		return err
	}
	if u.Bytes == 0 {
		return nil
	}
	return os.Truncate(u.path(nameContent), u.Bytes)
}

// checkSizes reports files of an upload that has not ended which are shorter than what was
// acknowledged, and refused rows that cannot be read.
func (u *upload) checkSizes() error {
	for _, x := range []struct {
		name string
		size int64
	}{{nameContent, u.Bytes}, {nameRefused, u.RefusedBytes}} {
		if x.size == 0 {
			continue
		}
		info, err := os.Stat(u.path(x.name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return &damageError{u.path(x.name), "it is missing"}
		case err != nil:
			return err
		case info.Size() < x.size:
			return &damageError{u.path(x.name), fmt.Sprintf("it has %d bytes instead of %d", info.Size(), x.size)}
		}
	}
	n := uint64(0)
	err := u.eachRefused(func(api.ImportRefusal) error { n++; return nil })
	switch damage := damagedBy(u.path(nameRefused), err); {
	case damage != nil:
		return damage
	case err != nil:
		return err
	case n != u.Refused:
		return &damageError{u.path(nameRefused), fmt.Sprintf("it has %d rows instead of %d", n, u.Refused)}
	}
	return nil
}

// checkContent compares the file of a complete upload with its checksum.
func (u *upload) checkContent(ctx context.Context) error {
	want := u.Sum
	if want == "" {
		want = u.Hash
	}
	if want == "" || want == sumUnknown {
		return nil
	}
	got, err := sumOf(ctx, u.path(nameContent))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &damageError{u.path(nameContent), "it is missing"}
	case err != nil:
		return err
	case got != want:
		return &damageError{u.path(nameContent), "its checksum does not match"}
	}
	return nil
}

// sumOf is the SHA-256 of a file, in hex.
func sumOf(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	for {
		if _, err := io.CopyN(h, f, 4<<20); errors.Is(err, io.EOF) {
			return hex.EncodeToString(h.Sum(nil)), nil
		} else if err != nil {
			return "", err
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
	}
}

// damagedBy is the damage of a file that an error of reading it means: all that is not the
// operating system's.
func damagedBy(path string, err error) *damageError {
	var damage *damageError
	var system *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &damage):
		return damage
	case errors.Is(err, fs.ErrNotExist):
		return &damageError{path, "it is missing"}
	case errors.As(err, &system):
		return nil
	}
	return &damageError{path, err.Error()}
}

// failed ends an upload that was read at the start, because of damage.
func (s *Uploads) failed(u *upload, damage *damageError) error {
	s.opts.Logger.Error("an upload is damaged and has failed; "+textAgain, "file", damage.path, "reason", damage.reason)
	if u.Refused > 0 {
		if err := u.writeResult(); err != nil {
			return err
		}
	}
	u.Status, u.Error, u.EndedMs, u.Cancel = api.ImportFailed, damage.failure(), s.opts.Now().UnixMilli(), false
	s.mu.ended[api.ImportFailed]++
	if err := u.save(); err != nil {
		return err
	}
	return u.removeContent()
}

// remove removes all of an upload, so that a crash between leaves nothing that would be
// taken for a damaged one.
func (u *upload) remove() error {
	aside := filepath.Join(filepath.Dir(u.dir), removedPrefix+filepath.Base(u.dir))
	switch err := os.Rename(u.dir, aside); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return os.RemoveAll(aside)
}

// Damage is a file of an upload that is not as it was written.
type Damage struct {
	Path, Text string
}

// Check reads the uploads of a directory that no process serves, and returns how many are
// whole and what is damaged. It changes nothing. A directory that is not there is whole.
func Check(ctx context.Context, dir string) (whole int, damaged []Damage, err error) {
	dirs, err := filepath.Glob(filepath.Join(dir, "*", "imp_*"))
	if err != nil {
		return 0, nil, fmt.Errorf("uploads: %w", err)
	}
	for _, path := range dirs {
		if !uploadDir.MatchString(filepath.Base(path)) {
			continue
		}
		u, err := load(0, path)
		if errors.Is(err, errNothing) {
			continue
		}
		if err == nil && !u.ended() {
			if err = u.checkSizes(); err == nil && u.Status != api.ImportReceiving {
				err = u.checkContent(ctx)
			}
		}
		if err == nil && u.ended() {
			if _, e := firstRefusals(u); e != nil {
				err = e
				if damage := damagedBy(u.path(nameResult), e); damage != nil {
					err = damage
				}
			}
		}
		var damage *damageError
		switch {
		case err == nil:
			whole++
		case errors.As(err, &damage):
			damaged = append(damaged, Damage{damage.path, damage.Error()})
		default:
			return whole, damaged, fmt.Errorf("uploads: %w", err)
		}
	}
	return whole, damaged, nil
}
