package resolver

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/musterhq/muster/eventlog"
)

// naive is the oracle of resolution: the rules of DESIGN written for
// obviousness, with plain maps and decoded JSON.
type naive struct {
	logTime  int64
	profiles []*naiveProfile
	owner    map[string]int // kind and normal form → profile
	keys     map[string]naiveKey
	counts   map[string]uint64
	rows     []naiveRow
	settings Settings
}

type naiveProfile struct {
	winner     int
	idents     [identityKinds][]string // as given, the newest last
	first      string
	last       string
	geo, attrs map[string]any
	created    int64
	lastEvent  int64
	firstSeen  int64
	merged     []int
	conflicts  int
}

type naiveKey struct {
	at      int64
	profile int
}

type naiveRow struct {
	profile int
	at      int64
	event   string
}

func newNaive(s Settings) *naive {
	return &naive{owner: map[string]int{}, keys: map[string]naiveKey{}, counts: map[string]uint64{}, settings: s}
}

func normal(kind IdentityKind, raw string) string {
	switch kind {
	case IdentityEmail:
		return strings.ToLower(strings.TrimSpace(raw))
	case IdentityPhone:
		var b strings.Builder
		for i, c := range strings.TrimSpace(raw) {
			if c >= '0' && c <= '9' || c == '+' && i == 0 {
				b.WriteRune(c)
			}
		}
		if strings.Trim(b.String(), "+") == "" {
			return ""
		}
		return b.String()
	}
	return raw
}

func (n *naive) total(p *naiveProfile) int {
	return len(p.idents[0]) + len(p.idents[1]) + len(p.idents[2])
}

// event applies one event and returns the profile it was recorded against,
// -1 when it was refused.
func (n *naive) event(ev *eventlog.Event) (profile int, status EventStatus) {
	at := n.logTime
	if ev.HasTime {
		if at = ev.TimeMs; at > n.logTime {
			return -1, EventRefused
		}
	}
	key := string(ev.IdempotencyKey)
	if k, ok := n.keys[key]; ok && key != "" && n.logTime-k.at < n.settings.idempotencyMs() {
		return k.profile, EventDuplicate
	}
	raw := [identityKinds]string{string(ev.Email), string(ev.ExternalID), string(ev.Phone)}
	var norm [identityKinds]string
	winner := -1
	for k := range identityKinds {
		if raw[k] == "" {
			continue
		}
		if slices.Contains(n.settings.Placeholders, strings.ToLower(strings.TrimSpace(raw[k]))) {
			return -1, EventRefused
		}
		norm[k] = normal(k, raw[k])
		if norm[k] == "" {
			return -1, EventRefused
		}
		norm[k] = k.String() + "\x00" + norm[k]
		if o, ok := n.owner[norm[k]]; ok && winner < 0 {
			winner = o
		}
	}
	if norm == [identityKinds]string{} {
		return -1, EventRefused
	}
	if winner < 0 {
		winner = len(n.profiles)
		n.profiles = append(n.profiles, &naiveProfile{winner: winner, created: n.logTime, firstSeen: n.logTime, lastEvent: -1 << 63,
			geo: map[string]any{}, attrs: map[string]any{}})
	}
	w := n.profiles[winner]
	for k := range identityKinds {
		if norm[k] == "" {
			continue
		}
		past := ev.HasTime && at < w.lastEvent
		o, known := n.owner[norm[k]]
		if !known {
			if n.total(w) >= n.settings.IdentifierCap {
				w.conflicts++
				continue
			}
			n.owner[norm[k]] = winner
			if past {
				w.idents[k] = append([]string{raw[k]}, w.idents[k]...)
			} else {
				w.idents[k] = append(w.idents[k], raw[k])
			}
			continue
		}
		if o != winner && !n.merge(w, winner, o, k) {
			w.conflicts++
			n.profiles[o].conflicts++
			continue
		}
		past = ev.HasTime && at < w.lastEvent
		if !past {
			w.idents[k] = slices.DeleteFunc(w.idents[k], func(v string) bool { return k.String()+"\x00"+normal(k, v) == norm[k] })
			w.idents[k] = append(w.idents[k], raw[k])
		}
	}
	past := ev.HasTime && at < w.lastEvent
	set := func(dst *string, src []byte) {
		if len(src) > 0 && (!past || *dst == "") {
			*dst = string(src)
		}
	}
	set(&w.first, ev.FirstName)
	set(&w.last, ev.LastName)
	naiveMerge(w.geo, decodeObject(ev.Geo), past)
	naiveMerge(w.attrs, decodeObject(ev.Attributes), past)
	w.lastEvent = max(w.lastEvent, at)
	w.firstSeen = min(w.firstSeen, at)
	if key != "" {
		n.keys[key] = naiveKey{n.logTime, winner}
	}
	n.counts[string(ev.Type)]++
	n.rows = append(n.rows, naiveRow{winner, at, string(ev.Type)})
	return winner, EventAccepted
}

func (n *naive) merge(w *naiveProfile, winner, loser int, by IdentityKind) bool {
	l := n.profiles[loser]
	for k := range by {
		if len(w.idents[k]) > 0 && len(l.idents[k]) > 0 {
			return false
		}
	}
	if n.total(w)+n.total(l) > n.settings.IdentifierCap || len(w.merged)+len(l.merged)+1 > n.settings.IdentifierCap {
		return false
	}
	for k := range identityKinds {
		w.idents[k] = append(slices.Clone(l.idents[k]), w.idents[k]...)
	}
	if w.first == "" {
		w.first = l.first
	}
	if w.last == "" {
		w.last = l.last
	}
	naiveMerge(w.geo, l.geo, true)
	naiveMerge(w.attrs, l.attrs, true)
	w.created = min(w.created, l.created)
	w.firstSeen = min(w.firstSeen, l.firstSeen)
	w.lastEvent = max(w.lastEvent, l.lastEvent)
	w.conflicts += l.conflicts
	w.merged = append(append(w.merged, l.merged...), loser)
	for k, o := range n.owner {
		if o == loser {
			n.owner[k] = winner
		}
	}
	for _, p := range n.profiles {
		if p.winner == loser {
			p.winner = winner
		}
	}
	return true
}

func decodeObject(b []byte) map[string]any {
	out := map[string]any{}
	if len(b) > 0 {
		if err := json.Unmarshal(b, &out); err != nil {
			panic(err)
		}
	}
	return out
}

func naiveMerge(dst, src map[string]any, fill bool) {
	for k, v := range src {
		have, ok := dst[k]
		child, isObject := v.(map[string]any)
		if haveObject, both := have.(map[string]any); both && isObject {
			naiveMerge(haveObject, child, fill)
			continue
		}
		switch {
		case v == nil:
			if !fill {
				delete(dst, k)
			}
		case ok && fill:
		case isObject:
			fresh := map[string]any{}
			naiveMerge(fresh, child, false)
			dst[k] = fresh
		default:
			dst[k] = v
		}
	}
}
