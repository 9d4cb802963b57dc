package editor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// browserScript types into the console and opens its pages, from the repository's root.
const browserScript = "console/web/measure/keystrokes.mjs"

const browserLimit = 10 * time.Minute

// seen is what the script prints, in milliseconds.
type seen struct {
	// Keystrokes are from each key in the builder until the exact counts are painted.
	Keystrokes []float64 `json:"keystrokes"`
	// Pages are from opening one until its content is there.
	Pages struct {
		Segment []float64 `json:"segment"`
		People  []float64 `json:"people"`
		Person  []float64 `json:"person"`
	} `json:"pages"`
}

// keystrokes measures what a user sees while typing into the builder in Chromium.
func (r *run) keystrokes(ctx context.Context) error {
	if r.o.Browser == "" {
		return nil
	}
	r.o.Logf("typing into the builder, in %s", r.o.Browser)
	ctx, cancel := context.WithTimeout(ctx, browserLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", filepath.Base(browserScript))
	cmd.Dir = filepath.Dir(browserScript)
	cmd.Env = append(os.Environ(), "MUSTER_URL="+strings.TrimSuffix(r.credentials.BaseURL, "/api/v1"), "MUSTER_CREDENTIALS="+r.credentialsFile, "MUSTER_CHROMIUM="+r.o.Browser)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", browserScript, err, said.String())
	}
	var s seen
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		return fmt.Errorf("%s printed %q: %w", browserScript, out.String(), err)
	}
	for _, x := range []struct {
		name             string
		target, quantile float64
		times            []float64
	}{
		{"key in the builder until painted", keyTarget, 0.95, s.Keystrokes},
		{"segment page", pageTarget, 1, s.Pages.Segment},
		{"people page", pageTarget, 1, s.Pages.People},
		{"person page", pageTarget, 1, s.Pages.Person},
	} {
		if len(x.times) == 0 {
			return fmt.Errorf("%s measured nothing of %q", browserScript, x.name)
		}
		r.report.add(x.name, x.target, x.quantile, x.times)
	}
	return nil
}
