package datacheck

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/musterhq/muster/cmd/muster/internal/engine"
	"github.com/musterhq/muster/cmd/muster/internal/uploads"
)

// uploads looks at the files that people uploaded. They are in no backup, and nothing
// follows from them.
func (r *Report) uploads(ctx context.Context, dir string) error {
	path := filepath.Join(dir, engine.UploadsDir)
	whole, damaged, err := uploads.Check(ctx, path)
	if err != nil {
		return err
	}
	for _, d := range damaged {
		r.Findings = append(r.Findings, Finding{Verdict: Lost, Beside: true, Path: d.Path, Text: d.Text, Remedy: "The import fails at the next start; upload the file again"})
	}
	if whole > 0 {
		r.add(Whole, path, fmt.Sprintf("uploads: %d are whole", whole), "")
	}
	return nil
}
