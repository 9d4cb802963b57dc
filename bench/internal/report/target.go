package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Target is a number to reach and what was reached.
type Target struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	// Want is the bound: Value must not fall below it if AtLeast is set, and not
	// exceed it if AtMost is. One of the two is set.
	Want    float64 `json:"want"`
	AtLeast bool    `json:"at_least"`
	AtMost  bool    `json:"at_most"`
	Met     bool    `json:"met"`
}

// AtLeast returns a target that value must not fall below.
func AtLeast(name string, value, want float64) Target {
	return Target{Name: name, Value: value, Want: want, AtLeast: true, Met: value >= want}
}

// AtMost returns a target that value must not exceed.
func AtMost(name string, value, want float64) Target {
	return Target{Name: name, Value: value, Want: want, AtMost: true, Met: value <= want}
}

// Bound says what value has to be.
func (t Target) Bound() string {
	if t.AtLeast {
		return fmt.Sprintf("at least %g", t.Want)
	}
	return fmt.Sprintf("at most %g", t.Want)
}

// Verdict is "met" or "missed".
func (t Target) Verdict() string {
	if t.Met {
		return "met"
	}
	return "missed"
}

// PrintTargets returns a section with a line for each target.
func PrintTargets(targets []Target) func(io.Writer) {
	return func(w io.Writer) {
		if len(targets) > 0 {
			fmt.Fprintln(w)
		}
		for _, t := range targets {
			fmt.Fprintf(w, "%s: %s: %.4g, %s\n", strings.ToUpper(t.Verdict()), t.Name, t.Value, t.Bound())
		}
	}
}

// PrintTables writes sections of tab-separated cells, each aligned on its own.
func PrintTables(out io.Writer, sections ...func(io.Writer)) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, section := range sections {
		section(w)
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}
