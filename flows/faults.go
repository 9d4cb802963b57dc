package flows

import (
	"fmt"
	"strings"
)

// Fault is one thing that keeps a flow from going live.
type Fault struct {
	Step string // the id of the step, empty for the flow itself
	// Path is the JSON path of what is at fault.
	Path string
	// Message continues a sentence that begins with the path: "is missing".
	Message string
}

// Faults are in the order of the definition.
type Faults []Fault

// maxFaultsListed bounds the message, which people read.
const maxFaultsListed = 50

// String is one message for all of them: "trigger is missing; steps[1] (welcome):
// subject is missing; body is missing".
func (fs Faults) String() string {
	var b strings.Builder
	step := ""
	for i, f := range fs {
		if i > 0 {
			b.WriteString("; ")
		}
		if i == maxFaultsListed {
			fmt.Fprintf(&b, "and %d more", len(fs)-i)
			break
		}
		path := f.Path
		if f.Step != "" {
			head, rest, _ := strings.Cut(path, "]")
			if path = strings.TrimPrefix(rest, "."); f.Step != step {
				fmt.Fprintf(&b, "%s] (%s): ", head, f.Step)
			}
		}
		step = f.Step
		if path != "" {
			b.WriteString(path + " ")
		}
		b.WriteString(f.Message)
	}
	return b.String()
}
