package chaos

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/anishathalye/porcupine"
)

// A group of probes has people of its own, whose events are of a type of its own,
// and a segment of the people with at least so many of them. Of a round, people and
// keys are new; what earlier rounds have left is known, and changes no more.
const (
	groups  = 2 // of a company
	people  = 6 // of a group and round
	keys    = 4 // of a person, with which each may post
	levels  = 3 // segments of a group: one event or more, two, three
	clients = 3 // of a group
)

// probe is what a client asks for.
type probe struct {
	kind   probeKind
	group  int
	person int // of post and whois
	key    int // of post
	level  int // of count, less one
}

type probeKind uint8

const (
	post  probeKind = iota // an event with a key; the answer is a profile id
	count                  // people with at least so many events
	whois                  // the profile id of a person
)

// answer is the server's answer to a client.
type answer struct {
	// none reports that there was none: what was asked may have been done at any time
	// since, or not at all.
	none    bool
	profile string // empty when there is no such person
	count   int
}

// never is when something returns that had no answer.
const never = math.MaxInt64

// state is what a group's people of a round have posted.
type state struct {
	posted   [people]uint8 // a bit for each key
	profiles [people]string
}

// atLeast counts the people with so many events.
func (s *state) atLeast(events int) (n int) {
	for _, p := range s.posted {
		if bits.OnesCount8(p) >= events {
			n++
		}
	}
	return n
}

// base is how many people of earlier rounds each segment holds, by group and
// level.
type base [groups][levels]int

// model says what a round's probes may be answered: a key counts from one instant
// on, once, and a person keeps the profile that was first answered.
func model(b base) porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			parts := make([][]porcupine.Operation, groups)
			for _, o := range history {
				g := o.Input.(probe).group
				parts[g] = append(parts[g], o)
			}
			return parts
		},
		Init: func() any { return state{} },
		Step: func(was, input, output any) (bool, any) {
			return step(b, was.(state), input.(probe), output.(answer))
		},
		DescribeOperation: func(input, output any) string { return describe(input.(probe), output.(answer)) },
		DescribeState:     func(s any) string { return fmt.Sprintf("%04b", s.(state).posted) },
	}
}

func step(b base, s state, p probe, a answer) (bool, state) {
	switch p.kind {
	case post:
		s.posted[p.person] |= 1 << p.key
		if a.none {
			return true, s
		}
		if before := s.profiles[p.person]; before != "" && before != a.profile || a.profile == "" {
			return false, s
		}
		s.profiles[p.person] = a.profile
		return true, s
	case count:
		return a.count == b[p.group][p.level]+s.atLeast(p.level+1), s
	default:
		switch known := s.profiles[p.person]; {
		case (a.profile != "") != (s.posted[p.person] != 0):
			return false, s
		case a.profile == "":
			return true, s
		case known != "" && known != a.profile:
			return false, s
		}
		s.profiles[p.person] = a.profile
		return true, s
	}
}

func describe(p probe, a answer) string {
	switch {
	case p.kind == count:
		return fmt.Sprintf("%d or more: %d", p.level+1, a.count)
	case p.kind == whois:
		return fmt.Sprintf("profile of person %d: %q", p.person, a.profile)
	case a.none:
		return fmt.Sprintf("post %d/%d: no answer", p.person, p.key)
	}
	return fmt.Sprintf("post %d/%d: %q", p.person, p.key, a.profile)
}

// checkTime bounds the check of a round's history.
const checkTime = 30 * time.Second

// linearizable checks a round's history. When there is no order that explains it,
// file is written, which shows what could be explained.
func linearizable(b base, history []porcupine.Operation, file string) error {
	m := model(b)
	result, info := porcupine.CheckOperationsVerbose(m, history, checkTime)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("whether %d posts and reads are linearizable could not be told within %v", len(history), checkTime)
	}
	err := fmt.Errorf("%d posts and reads are not linearizable: no order of them explains what was answered", len(history))
	if drawn := porcupine.VisualizePath(m, info, file); drawn != nil {
		return fmt.Errorf("%w (%w)", err, drawn)
	}
	return fmt.Errorf("%w; see %s", err, file)
}
