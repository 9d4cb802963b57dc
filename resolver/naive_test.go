package resolver

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/internal/identifier"
)

// naive is the oracle of resolution: the rules of DESIGN written for
// obviousness, with plain maps and decoded JSON.
type naive struct {
	logTime  int64
	profiles []*naiveProfile
	owner    map[string]int  // kind and normal form → profile
	barred   map[string]bool // likewise: of erased persons
	keys     map[string]naiveKey
	counts   map[string]uint64
	rows     []naiveRow
	settings Settings
	// rules is the version of the rules for events.
	rules uint8
}

type naiveProfile struct {
	winner          int
	idents          [identifier.Kinds][]string // as given, the newest last
	first           string
	last            string
	geo, attrs      map[string]any
	created         int64
	lastEvent       int64
	firstSeen       int64
	merged          []int
	conflicts       []int // with whom, -1 for nobody
	erased          bool
	subscribed      [identifier.Kinds]bool // to e-mail, and to what goes to a phone
	shared          map[string]bool        // of idents by kind and normal form: another's, who had it first
	mergedAnonymous int                    // of merged: those with nothing but anonymous ids
}

// anonymous reports whether the profile has anonymous ids and no other identifier.
func (p *naiveProfile) anonymous() bool {
	return len(p.idents[0])+len(p.idents[1])+len(p.idents[2]) == 0 && len(p.idents[IdentityAnonymous]) > 0
}

// drop takes out a value, however it is written.
func (p *naiveProfile) drop(k IdentityKind, norm string) {
	p.idents[k] = slices.DeleteFunc(p.idents[k], func(v string) bool { return k.String()+"\x00"+normal(k, v) == norm })
	delete(p.shared, norm)
}

// has reports whether a value is among the identifiers, however it is written.
func (p *naiveProfile) has(k IdentityKind, norm string) bool {
	return slices.ContainsFunc(p.idents[k], func(v string) bool { return k.String()+"\x00"+normal(k, v) == norm })
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
	return &naive{owner: map[string]int{}, barred: map[string]bool{}, keys: map[string]naiveKey{}, counts: map[string]uint64{}, settings: s, rules: eventlog.EventRules}
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
	if ev.MessageID && key != "" {
		key = "message id " + key
	}
	if k, ok := n.keys[key]; ok && key != "" && n.logTime-k.at < n.settings.idempotencyMs() {
		return k.profile, EventDuplicate
	}
	raw := [identifier.Kinds]string{string(ev.Email), string(ev.ExternalID), string(ev.Phone), string(ev.AnonymousID)}
	var norm [identifier.Kinds]string
	winner, by := -1, identifier.Kinds
	first := identifier.Kinds
	for k := range identifier.Kinds {
		if raw[k] == "" {
			continue
		}
		if n.isNone(k, raw[k]) {
			if n.rules == 0 {
				return -1, EventRefused
			}
			continue // left out
		}
		norm[k] = k.String() + "\x00" + normal(k, raw[k])
		if n.barred[norm[k]] {
			if n.rules == 0 || first == identifier.Kinds {
				return -1, EventRefused
			}
			norm[k] = "" // left out beside one that ranks higher
			continue
		}
		first = min(first, k)
		if o, ok := n.owner[norm[k]]; ok && winner < 0 {
			winner, by = o, k
		}
	}
	if norm == [identifier.Kinds]string{} {
		return -1, EventRefused
	}
	previous, attachPrevious, ok := n.previous(ev, winner, norm)
	if !ok {
		return -1, EventRefused
	}
	var apart bool // another e-mail keeps the names of an alias apart
	if previous >= 0 {
		o, known := n.owner[norm[IdentityEmail]]
		apart = norm[IdentityEmail] != "" && len(n.profiles[previous].idents[IdentityEmail]) > 0 && !(known && o == previous)
	}
	if winner < 0 || by == IdentityAnonymous {
		if previous >= 0 && !apart {
			winner, by = previous, IdentityExternalID
		} else if winner >= 0 {
			for k := range IdentityAnonymous {
				if norm[k] != "" && len(n.profiles[winner].idents[k]) > 0 {
					winner = -1 // the second person on a device
					break
				}
			}
		}
	}
	if winner < 0 {
		winner, by = n.create(), 0
	}
	w := n.profiles[winner]
	if previous >= 0 && previous != winner && (apart || !n.merge(w, winner, previous, IdentityExternalID, ev.Public)) {
		w.conflicts = append(w.conflicts, previous)
		n.profiles[previous].conflicts = append(n.profiles[previous].conflicts, winner)
	}
	for k := range identifier.Kinds {
		if norm[k] == "" {
			continue
		}
		past := ev.HasTime && at < w.lastEvent
		o, known := n.owner[norm[k]]
		if !known {
			if k != IdentityAnonymous && n.total(w) >= n.settings.IdentifierCap || k == IdentityAnonymous && len(w.idents[k]) >= maxAnonymousIDs {
				w.conflicts = append(w.conflicts, -1)
				continue
			}
			if n.rules >= 1 && k < by && len(w.idents[k]) > 0 {
				w.conflicts = append(w.conflicts, -1) // a second value, by a lower-ranked identifier
			}
			n.owner[norm[k]] = winner
			w.drop(k, norm[k])
			if past || n.keeps(w, k, norm[k]) {
				w.idents[k] = append([]string{raw[k]}, w.idents[k]...)
			} else {
				w.idents[k] = append(w.idents[k], raw[k])
			}
			continue
		}
		if o != winner && !n.merge(w, winner, o, k, ev.Public) {
			w.conflicts = append(w.conflicts, o)
			n.profiles[o].conflicts = append(n.profiles[o].conflicts, winner)
			continue
		}
		past = ev.HasTime && at < w.lastEvent
		if !past && !n.keeps(w, k, norm[k]) {
			w.drop(k, norm[k])
			w.idents[k] = append(w.idents[k], raw[k])
		}
	}
	if attachPrevious {
		n.owner["anonymous_id\x00"+string(ev.PreviousID)] = winner
		w.idents[IdentityAnonymous] = append(w.idents[IdentityAnonymous], string(ev.PreviousID))
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
	if n.rules >= 1 {
		w.firstSeen = min(w.firstSeen, at)
	}
	if key != "" {
		n.keys[key] = naiveKey{n.logTime, winner}
	}
	n.counts[string(ev.Type)]++
	n.rows = append(n.rows, naiveRow{winner, at, string(ev.Type)})
	return winner, EventAccepted
}

// previous is the profile that the previous id of an alias names, -1 for none, and whether
// it becomes an anonymous id.
func (n *naive) previous(ev *eventlog.Event, winner int, norm [identifier.Kinds]string) (profile int, attach, ok bool) {
	id := string(ev.PreviousID)
	if id == "" {
		return -1, false, true
	}
	if ev.Public || len(ev.ExternalID) == 0 || n.isNone(IdentityAnonymous, id) {
		return -1, false, false
	}
	anonymous, external := "anonymous_id\x00"+id, "external_id\x00"+id
	a, knownA := n.owner[anonymous]
	x, knownX := n.owner[external]
	switch {
	case knownA && a != winner:
		return a, false, true
	case knownX:
		return x, false, true
	case knownA || n.barred[anonymous] || n.barred[external]:
		return -1, false, true
	}
	return -1, norm[IdentityAnonymous] != anonymous, true
}

// keeps reports whether a subscribed profile keeps its newest e-mail or phone beside another one.
func (n *naive) keeps(w *naiveProfile, k IdentityKind, norm string) bool {
	have := w.idents[k]
	return n.rules >= 4 && w.subscribed[k] && len(have) > 0 && k.String()+"\x00"+normal(k, have[len(have)-1]) != norm
}

// isNone reports whether a value is not an identifier.
func (n *naive) isNone(k IdentityKind, raw string) bool {
	return slices.Contains(n.settings.Placeholders, strings.ToLower(strings.TrimSpace(raw))) || normal(k, raw) == "" || strings.TrimSpace(raw) == ""
}

func (n *naive) create() int {
	n.profiles = append(n.profiles, &naiveProfile{winner: len(n.profiles), created: n.logTime, firstSeen: n.logTime, lastEvent: -1 << 63,
		geo: map[string]any{}, attrs: map[string]any{}, shared: map[string]bool{}})
	return len(n.profiles) - 1
}

// contact makes a contact and returns its profile, -1 when it is refused: the first
// identifier that it has says who it is, and what is another's stays with that one and is
// shown here, too.
func (n *naive) contact(c ContactCreate) int {
	raw := [identifier.Kinds]string{c.Email, c.ExternalID, c.Phone}
	var norm [identifier.Kinds]string
	who, first := -1, true
	for k := range identifier.Kinds {
		if raw[k] == "" {
			continue
		}
		if k != IdentityEmail && n.isNone(k, raw[k]) {
			return -1
		}
		norm[k] = k.String() + "\x00" + normal(k, raw[k])
		if n.barred[norm[k]] {
			if first {
				return -1
			}
			raw[k] = "" // left out
			continue
		}
		o, known := n.owner[norm[k]]
		if known && k == IdentityEmail {
			return -1
		}
		if known && first {
			who = o
		}
		first = false
	}
	if who < 0 {
		who = n.create()
	}
	w := n.profiles[who]
	for _, k := range []IdentityKind{IdentityEmail, IdentityPhone} {
		w.subscribed[k] = w.subscribed[k] || raw[k] != ""
	}
	for k := range identifier.Kinds {
		if raw[k] == "" {
			continue
		}
		o, known := n.owner[norm[k]]
		switch {
		case known && o == who:
			w.drop(k, norm[k])
			w.idents[k] = append(w.idents[k], raw[k])
		case known:
			w.conflicts = append(w.conflicts, o)
			n.profiles[o].conflicts = append(n.profiles[o].conflicts, who)
			if w.has(k, norm[k]) || n.total(w) < n.settings.IdentifierCap {
				w.drop(k, norm[k])
				w.idents[k] = append(w.idents[k], raw[k])
				w.shared[norm[k]] = true
			}
		case n.total(w) >= n.settings.IdentifierCap:
			w.conflicts = append(w.conflicts, -1)
		default:
			w.drop(k, norm[k])
			n.owner[norm[k]] = who
			w.idents[k] = append(w.idents[k], raw[k])
		}
	}
	if c.FirstName != "" {
		w.first = c.FirstName
	}
	if c.LastName != "" {
		w.last = c.LastName
	}
	return who
}

// patch gives a profile a phone; it returns whether that is refused. What another has, or
// had who is erased, it must show already.
func (n *naive) patch(profile int, phone string) bool {
	norm := IdentityPhone.String() + "\x00" + normal(IdentityPhone, phone)
	w := n.profiles[n.profiles[profile].winner]
	if w.erased || n.isNone(IdentityPhone, phone) {
		return false
	}
	o, known := n.owner[norm]
	switch {
	case w.has(IdentityPhone, norm):
		if w.idents[IdentityPhone][len(w.idents[IdentityPhone])-1] == phone {
			return true
		}
		shared := w.shared[norm]
		w.drop(IdentityPhone, norm)
		if w.shared[norm] = shared && (known || n.barred[norm]); !w.shared[norm] {
			delete(w.shared, norm)
			n.owner[norm] = w.winner
		}
	case known && o != w.winner, n.barred[norm], n.total(w) >= n.settings.IdentifierCap:
		return false
	default:
		n.owner[norm] = w.winner
		w.subscribed[IdentityPhone] = true
	}
	w.idents[IdentityPhone] = append(w.idents[IdentityPhone], phone)
	return true
}

// erase forgets a profile and bars what identified it.
func (n *naive) erase(profile int) bool {
	w := n.profiles[n.profiles[profile].winner]
	if w.erased {
		return false
	}
	for norm, o := range n.owner {
		if o == w.winner {
			delete(n.owner, norm)
			n.barred[norm] = true
		}
	}
	w.erased = true
	return true
}

// conflictsOf are with whom a profile has conflicts, as things are now.
func (n *naive) conflictsOf(p *naiveProfile) (out []int) {
	for _, o := range p.conflicts {
		if o >= 0 {
			if o = n.profiles[o].winner; o == p.winner || n.profiles[o].erased {
				continue
			}
		}
		out = append(out, o)
	}
	return out
}

func (n *naive) merge(w *naiveProfile, winner, loser int, by IdentityKind, public bool) bool {
	l := n.profiles[loser]
	for k := range by {
		inCommon := slices.ContainsFunc(l.idents[k], func(v string) bool { return w.has(k, k.String()+"\x00"+normal(k, v)) })
		if len(w.idents[k]) > 0 && len(l.idents[k]) > 0 && (!inCommon || by == IdentityAnonymous) {
			return false
		}
	}
	if public && n.total(w) > 0 && n.total(l) > 0 {
		return false
	}
	merged := len(w.merged) - w.mergedAnonymous + len(l.merged) - l.mergedAnonymous
	if !l.anonymous() {
		merged++
	}
	if n.total(w)+n.total(l) > n.settings.IdentifierCap || merged > n.settings.IdentifierCap || len(w.idents[IdentityAnonymous])+len(l.idents[IdentityAnonymous]) > maxAnonymousIDs {
		return false
	}
	w.mergedAnonymous += l.mergedAnonymous
	if l.anonymous() {
		w.mergedAnonymous++
	}
	for k := range identifier.Kinds {
		var older []string
		for _, v := range l.idents[k] {
			norm := k.String() + "\x00" + normal(k, v)
			switch {
			case !w.has(k, norm):
				older = append(older, v)
				if l.shared[norm] {
					w.shared[norm] = true
				}
			case !l.shared[norm]:
				delete(w.shared, norm)
			}
		}
		newest := ""
		if len(l.idents[k]) > 0 && n.rules >= 5 && l.subscribed[k] && (len(w.idents[k]) == 0 || !w.subscribed[k]) {
			newest = k.String() + "\x00" + normal(k, l.idents[k][len(l.idents[k])-1])
		}
		w.idents[k] = append(older, w.idents[k]...)
		for i, v := range w.idents[k] { // the address that subscribed
			if k.String()+"\x00"+normal(k, v) == newest {
				w.idents[k] = append(slices.Delete(slices.Clone(w.idents[k]), i, i+1), v)
				break
			}
		}
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
	w.conflicts = append(w.conflicts, l.conflicts...)
	w.merged = append(append(w.merged, l.merged...), loser)
	for k := range w.subscribed {
		w.subscribed[k] = w.subscribed[k] || l.subscribed[k]
	}
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
