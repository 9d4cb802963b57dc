package datacheck

import (
	"fmt"
	"path/filepath"

	"github.com/musterhq/muster/messaging/capture"
)

// captured looks at the messages that were captured instead of sent. They are in no
// backup, and nothing follows from them.
func (r *Report) captured(dir string) error {
	path := filepath.Join(dir, "outbox")
	files, damaged, err := capture.Check(path)
	if err != nil {
		return err
	}
	for _, d := range damaged {
		r.Findings = append(r.Findings, Finding{Verdict: Lost, Beside: true, Path: d.Path, Text: d.Error()})
	}
	if files > len(damaged) {
		r.add(Whole, path, fmt.Sprintf("captured messages: %d files are whole", files-len(damaged)), "")
	}
	return nil
}
