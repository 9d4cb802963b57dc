package uploads

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/cmd/muster/internal/importer"
)

// refusedLines is refused rows as refused.jsonl has them.
func refusedLines(list []api.ImportRefusal) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for i := range list {
		if err := e.Encode(&list[i]); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// eachRefused reads the refused rows of an import that has not ended.
func (u *upload) eachRefused(fn func(api.ImportRefusal) error) error {
	f, err := os.Open(u.path(nameRefused))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReader(io.LimitReader(f, u.RefusedBytes)))
	for {
		var x api.ImportRefusal
		switch err := d.Decode(&x); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if err := fn(x); err != nil {
			return err
		}
	}
}

var errEnough = errors.New("enough")

// firstRefusals reads the first refused rows of an upload, whether it has ended or not.
func firstRefusals(u *upload) (out []api.ImportRefusal, err error) {
	if u.Refused == 0 {
		return nil, nil
	}
	if !u.ended() {
		err = u.eachRefused(func(x api.ImportRefusal) error {
			if out = append(out, x); len(out) == showRefusals {
				return errEnough
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			err = nil
		}
		return out, err
	}
	f, err := os.Open(u.path(nameResult))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(bufio.NewReader(f))
	r.FieldsPerRecord, r.ReuseRecord = -1, true
	if _, err := r.Read(); err != nil {
		return nil, err
	}
	for len(out) < showRefusals {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		line, err := strconv.Atoi(cells[0])
		if err != nil || len(cells) < 2 {
			continue
		}
		if strings.Trim(cells[1], "-\n") == "" {
			cells[1] = textErased
		}
		out = append(out, api.ImportRefusal{Line: line, Reason: cells[1]})
	}
	return out, nil
}

// writeResult writes the refused rows with their cells, durably, or leaves the file as it
// was.
func (u *upload) writeResult() (err error) {
	// Of a damaged file the rows that can be read are there with their cells.
	content, err := os.Open(u.path(nameContent))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	defer content.Close() // of nil it does nothing
	temp := u.path(nameResult) + ".tmp"
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	out := bufio.NewWriter(f)
	w := csv.NewWriter(out)
	if err := w.Write(append([]string{"line", "reason"}, u.Header...)); err != nil {
		return err
	}
	var row importer.Row
	rows, readErr := importer.RawRows(content)
	err = u.eachRefused(func(x api.ImportRefusal) error {
		for readErr == nil && row.Line < x.Line {
			readErr = rows.Next(&row)
		}
		cells := []string{strconv.Itoa(x.Line), x.Reason}
		if readErr == nil && row.Line == x.Line {
			cells = append(cells, row.Cells...)
		}
		return w.Write(cells)
	})
	if err != nil && damagedBy(u.path(nameRefused), err) == nil {
		return err
	}
	w.Flush()
	if err := errors.Join(w.Error(), out.Flush(), f.Sync()); err != nil {
		return err
	}
	return os.Rename(temp, u.path(nameResult)) // durable with upload.json
}
