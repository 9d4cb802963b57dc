package resolver

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/resolution"
)

// naive is the oracle of resolution: the rules of DESIGN written for
// obviousness, with plain maps and decoded JSON.
type naive struct {
	logTime    int64
	profiles   []*naiveProfile
	owner      map[string]int  // kind and normal form → profile
	suppressed map[string]bool // likewise: of erased profiles
	keys       map[string]naiveKey
	counts     map[string]uint64
	rows       []naiveRow
	settings   Settings
	// rules is the version of the rules for events.
	rules uint8
	// publicTypes are the event types that only browsers' keys have sent.
	publicTypes map[string]bool
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
	conflicts       []int // with which profile, -1 for none
	erased          bool
	subscribed      [identifier.Kinds]bool // to e-mail, and to what goes to a phone
	shared          map[string]bool        // of idents by kind and normal form: another's, who had it first
	mergedAnonymous int                    // of merged: those with nothing but anonymous ids
	claimed         map[string]bool        // of idents: attached by a browser's key, and not confirmed
	previous        map[string]bool        // of anonymous ids: by an alias, before anything else
	said            map[string]int64       // when traits were said, by calls
	givenUp         []string               // anonymous ids that made room
	inDoubt         []naiveDoubt           // what a server gave, and another profile has as a claim
}

// naiveDoubt is an identifier that a claim of another profile kept from a person.
type naiveDoubt struct {
	kind  IdentityKind
	norm  string
	other int
}

// doubts reports whether a person lacks an identifier that is not known to be the other's.
func (n *naive) doubts(p, other *naiveProfile) bool {
	return slices.ContainsFunc(p.inDoubt, func(x naiveDoubt) bool {
		own := p.has(x.kind, x.norm) && !p.shared[x.norm]
		certain := other.has(x.kind, x.norm) && !other.shared[x.norm] && !other.claimed[x.norm]
		return !own && !certain && !n.profiles[n.profiles[x.other].winner].erased
	})
}

// known is how many identifiers identify the person.
func (p *naiveProfile) known() int { return len(p.idents[0]) + len(p.idents[1]) + len(p.idents[2]) }

// saidByOthers notes that others than SDKs said a trait.
func (p *naiveProfile) saidByOthers(trait string, at int64) {
	if len(p.said) > 0 {
		p.said[trait] = at
	}
}

// claimDevices makes claims of all anonymous ids.
func (p *naiveProfile) claimDevices() {
	for _, v := range p.idents[IdentityAnonymous] {
		p.claimed["anonymous_id\x00"+v] = true
	}
}

// claimedLink says of an event's identifiers that are the profile's whether they are one
// claim alone; with rules that yield, claims alone. With confirm others confirm them.
func (p *naiveProfile) claimedLink(confirm, yields bool, who int, owner [identifier.Kinds]int, norm [identifier.Kinds]string) bool {
	links, claims := 0, 0
	for k := range identifier.Kinds {
		if norm[k] != "" && owner[k] == who {
			links++
			if p.claimed[norm[k]] && p.has(k, norm[k]) {
				claims++
			}
		}
	}
	if yields && claims == links {
		return claims > 0
	}
	if claims == 0 || links == 1 || !confirm {
		return claims == 1 && links == 1
	}
	for k := range identifier.Kinds {
		if norm[k] != "" && owner[k] == who {
			delete(p.claimed, norm[k])
		}
	}
	return false
}

// anonymous reports whether the profile has anonymous ids and no other identifier.
func (p *naiveProfile) anonymous() bool {
	return p.known() == 0 && len(p.idents[IdentityAnonymous]) > 0
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
	return &naive{owner: map[string]int{}, suppressed: map[string]bool{}, keys: map[string]naiveKey{}, counts: map[string]uint64{}, publicTypes: map[string]bool{}, settings: s, rules: eventlog.EventRules}
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
	if k, ok := n.keys[key]; ok && key != "" && n.logTime-k.at < n.settings.IdempotencyMs() {
		return k.profile, EventDuplicate
	}
	raw := [identifier.Kinds]string{string(ev.Email), string(ev.ExternalID), string(ev.Phone), string(ev.AnonymousID)}
	var norm [identifier.Kinds]string
	owner := [identifier.Kinds]int{-1, -1, -1, -1}
	calls, yields := n.rules >= identrules.VersionCalls, n.rules >= identrules.VersionYield
	calledBefore := false
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
		if _, owned := n.owner[norm[k]]; !owned && n.suppressed[norm[k]] && !(calls && k == IdentityAnonymous) {
			if n.rules == 0 || first == identifier.Kinds {
				return -1, EventRefused
			}
			norm[k] = "" // left out beside one that ranks higher
			continue
		}
		first = min(first, k)
		o, ok := n.owner[norm[k]]
		if !ok && k == IdentityExternalID && calls {
			if o, ok = n.owner["anonymous_id\x00"+raw[k]]; ok {
				ok = n.profiles[o].previous["anonymous_id\x00"+raw[k]]
			}
			calledBefore = ok
		}
		if !ok {
			continue
		}
		if owner[k] = o; winner < 0 {
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
	var apart bool // another e-mail keeps the names of an alias apart, or that only a browser's key gave one of them
	if previous >= 0 {
		o, known := n.owner[norm[IdentityEmail]]
		p := n.profiles[previous]
		apart = norm[IdentityEmail] != "" && len(p.idents[IdentityEmail]) > 0 || p.claimed[n.previousBy(ev, previous)]
		apart = apart && !(norm[IdentityEmail] != "" && known && o == previous)
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
	weak := ev.Public && calls
	contradicts := func(all bool) bool {
		for k := range min(by, IdentityAnonymous) {
			if norm[k] != "" && (all || owner[k] < 0) && len(n.profiles[winner].idents[k]) > 0 {
				return true
			}
		}
		return false
	}
	for winner >= 0 && !ev.Public && (apart || winner != previous) {
		if weak = n.profiles[winner].claimedLink(true, yields, winner, owner, norm); !weak {
			break
		}
		if yields {
			if next, nextBy := n.insteadOf(winner, by, previous, apart, owner, norm); next != winner {
				winner, by, weak = next, nextBy, false
				continue
			}
			break
		}
		if !contradicts(false) {
			break
		}
		// The claim was wrong.
		not := winner
		winner, weak = -1, false
		if previous >= 0 && !apart {
			winner, by = previous, IdentityExternalID
			break
		}
		for k := by + 1; k < identifier.Kinds; k++ {
			if owner[k] >= 0 && owner[k] != not {
				if winner, by = owner[k], k; k == IdentityAnonymous && contradicts(true) {
					winner = -1
				}
				break
			}
		}
	}
	created := winner < 0
	if created {
		winner = n.create()
		if by == identifier.Kinds {
			by = 0
		}
	}
	w := n.profiles[winner]
	if previous >= 0 && previous != winner && (apart || !n.merge(w, winner, previous, IdentityExternalID, weak)) {
		w.conflicts = append(w.conflicts, previous)
		n.profiles[previous].conflicts = append(n.profiles[previous].conflicts, winner)
	}
	known := w.known() > 0
	older := func(k IdentityKind) bool {
		if ev.Call {
			return k != IdentityAnonymous && at < w.said["identifier "+k.String()]
		}
		return ev.HasTime && at < w.lastEvent
	}
	saidNow := func(k IdentityKind) {
		if k != IdentityAnonymous && (ev.Call || len(w.said) > 0) {
			w.said["identifier "+k.String()] = max(at, w.said["identifier "+k.String()])
		}
	}
	for k := range identifier.Kinds {
		if norm[k] == "" {
			continue
		}
		o := owner[k]
		via := calledBefore && k == IdentityExternalID
		if o >= 0 {
			o = n.profiles[o].winner
		}
		if yields && o >= 0 && o != winner && !ev.Public && !weak && k != IdentityAnonymous && n.profiles[o].claimedLink(false, yields, o, owner, norm) {
			w.conflicts = append(w.conflicts, o)
			n.profiles[o].conflicts = append(n.profiles[o].conflicts, winner)
			w.inDoubt = append(w.inDoubt, naiveDoubt{k, norm[k], o})
			continue
		}
		if via && o != winner {
			if created && calls || !n.merge(w, winner, o, k, ev.Public || weak || n.profiles[o].claimedLink(false, yields, o, owner, norm)) {
				w.conflicts = append(w.conflicts, o)
				n.profiles[o].conflicts = append(n.profiles[o].conflicts, winner)
				continue
			}
		}
		if o < 0 || via {
			if k != IdentityAnonymous && n.total(w) >= n.settings.IdentifierCap || k == IdentityAnonymous && !calls && len(w.idents[k]) >= resolution.MaxAnonymousIDs {
				w.conflicts = append(w.conflicts, -1)
				continue
			}
			if weak && known && k != IdentityAnonymous && len(w.idents[k]) > 0 && !via {
				w.conflicts = append(w.conflicts, -1)
				continue
			}
			// The first identifier of a person is no claim: the external id, if it is new.
			newID := norm[IdentityExternalID] != "" && owner[IdentityExternalID] < 0
			first := !known && k != IdentityAnonymous && (k == IdentityExternalID || !newID && w.known() == 0)
			if weak && first {
				w.claimDevices()
			}
			if weak && !first && (k != IdentityAnonymous || w.known() > 0) {
				w.claimed[norm[k]] = true
			}
			if n.rules >= 1 && k < by && len(w.idents[k]) > 0 {
				w.conflicts = append(w.conflicts, -1) // a second value, by a lower-ranked identifier
			}
			n.owner[norm[k]] = winner
			w.drop(k, norm[k])
			if older(k) || n.keeps(w, k, norm[k]) {
				w.idents[k] = append([]string{raw[k]}, w.idents[k]...)
			} else {
				w.idents[k] = append(w.idents[k], raw[k])
				saidNow(k)
			}
			continue
		}
		merged := o != winner
		if merged && (created && calls || !n.merge(w, winner, o, k, ev.Public || weak || n.profiles[o].claimedLink(false, yields, o, owner, norm))) {
			w.conflicts = append(w.conflicts, o)
			n.profiles[o].conflicts = append(n.profiles[o].conflicts, winner)
			continue
		}
		if !older(k) && !n.keeps(w, k, norm[k]) {
			have := w.idents[k]
			changes := have[len(have)-1] != raw[k]
			w.drop(k, norm[k])
			w.idents[k] = append(w.idents[k], raw[k])
			if merged || changes || ev.Call && (k == IdentityEmail || k == IdentityPhone) {
				saidNow(k)
			}
		}
	}
	if attachPrevious {
		n.owner["anonymous_id\x00"+string(ev.PreviousID)] = winner
		w.idents[IdentityAnonymous] = append(w.idents[IdentityAnonymous], string(ev.PreviousID))
		if calls {
			w.previous["anonymous_id\x00"+string(ev.PreviousID)] = true
		}
	}
	if ids := w.idents[IdentityAnonymous]; calls && len(ids) > resolution.MaxAnonymousIDs {
		n := len(ids) - resolution.MaxAnonymousIDs
		w.givenUp, w.idents[IdentityAnonymous] = append(w.givenUp, ids[:n]...), slices.Clone(ids[n:])
	}
	past := ev.HasTime && at < w.lastEvent
	says := func(trait string) bool { // whether a call may set a trait
		if was, known := w.said[trait]; known && at < was {
			return false
		}
		if !past || ev.Call {
			if ev.Call || len(w.said) > 0 {
				w.said[trait] = at
			}
		}
		return true
	}
	set := func(dst *string, src []byte, name string) {
		if len(src) > 0 && (ev.Call && says(name) || !ev.Call && (!past || *dst == "")) {
			*dst = string(src)
			if !ev.Call {
				says(name)
			}
		}
	}
	set(&w.first, ev.FirstName, "first name")
	set(&w.last, ev.LastName, "last name")
	for _, x := range []struct {
		dst map[string]any
		src []byte
		of  string
	}{{w.geo, ev.Geo, "geo "}, {w.attrs, ev.Attributes, "attribute "}} {
		src := decodeObject(x.src)
		if !ev.Call {
			naiveMerge(x.dst, src, past)
			for key := range src {
				if !past {
					says(x.of + key)
				}
			}
			continue
		}
		for key, value := range src {
			if says(x.of + key) {
				delete(x.dst, key)
				naiveMerge(x.dst, map[string]any{key: value}, false)
			}
		}
	}
	w.lastEvent = max(w.lastEvent, at)
	if n.rules >= 1 {
		w.firstSeen = min(w.firstSeen, at)
	}
	if key != "" {
		n.keys[key] = naiveKey{n.logTime, winner}
	}
	if t := string(ev.Type); !ev.Public {
		delete(n.publicTypes, t)
	} else if n.counts[t] == 0 && calls {
		n.publicTypes[t] = true
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
	if ev.Public || len(ev.ExternalID) == 0 && (n.rules < identrules.VersionCalls || len(ev.Email) == 0) || n.isNone(IdentityAnonymous, id) {
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
	case knownA || n.suppressed[anonymous] && n.rules < identrules.VersionCalls || n.suppressed[external]:
		return -1, false, true
	}
	return -1, norm[IdentityAnonymous] != anonymous, true
}

// previousBy is the identifier by which a previous id led to a profile.
func (n *naive) previousBy(ev *eventlog.Event, profile int) string {
	if anonymous := "anonymous_id\x00" + string(ev.PreviousID); n.profiles[profile].has(IdentityAnonymous, anonymous) {
		return anonymous
	}
	return "external_id\x00" + string(ev.PreviousID)
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
		geo: map[string]any{}, attrs: map[string]any{}, shared: map[string]bool{}, claimed: map[string]bool{}, previous: map[string]bool{}, said: map[string]int64{}})
	return len(n.profiles) - 1
}

// contact makes a contact and returns its profile, -1 when it is refused: the first
// identifier that it has says who it is, and what is another's stays with that one and is
// shown here, too.
func (n *naive) contact(c contacts.Create) int {
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
		if n.suppressed[norm[k]] {
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
	// What led here may be a claim of a browser's key, as with an event.
	owner := [identifier.Kinds]int{-1, -1, -1, -1}
	for k := range identifier.Kinds {
		if o, known := n.owner[norm[k]]; known && raw[k] != "" {
			owner[k] = o
		} else if raw[k] == "" {
			norm[k] = ""
		}
	}
	weak := w.claimedLink(true, false, who, owner, norm)
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
			if have := w.idents[k]; have[len(have)-1] != raw[k] {
				w.saidByOthers("identifier "+k.String(), n.logTime)
			}
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
		case weak && len(w.idents[k]) > 0:
			w.conflicts = append(w.conflicts, -1)
		default:
			w.drop(k, norm[k])
			n.owner[norm[k]] = who
			if weak {
				w.claimed[norm[k]] = true
			}
			w.idents[k] = append(w.idents[k], raw[k])
			w.saidByOthers("identifier "+k.String(), n.logTime)
		}
	}
	if c.FirstName != "" {
		w.first = c.FirstName
		w.saidByOthers("first name", n.logTime)
	}
	if c.LastName != "" {
		w.last = c.LastName
		w.saidByOthers("last name", n.logTime)
	}
	return who
}

// patch gives a profile a phone; it returns whether that is refused. The profile must
// show the phone already if another profile has it, or an erased one had it.
func (n *naive) patch(profile int, phone string) bool {
	norm := IdentityPhone.String() + "\x00" + normal(IdentityPhone, phone)
	w := n.profiles[n.profiles[profile].winner]
	if w.erased || n.isNone(IdentityPhone, phone) {
		return false
	}
	o, known := n.owner[norm]
	switch {
	case w.has(IdentityPhone, norm):
		delete(w.claimed, norm)
		if w.idents[IdentityPhone][len(w.idents[IdentityPhone])-1] == phone {
			return true
		}
		w.saidByOthers("identifier "+IdentityPhone.String(), n.logTime)
		shared := w.shared[norm]
		w.drop(IdentityPhone, norm)
		if w.shared[norm] = shared && (known || n.suppressed[norm]); !w.shared[norm] {
			delete(w.shared, norm)
			n.owner[norm] = w.winner
		}
	case known && o != w.winner, n.suppressed[norm], n.total(w) >= n.settings.IdentifierCap:
		return false
	default:
		n.owner[norm] = w.winner
		w.subscribed[IdentityPhone] = true
		w.saidByOthers("identifier "+IdentityPhone.String(), n.logTime)
	}
	w.idents[IdentityPhone] = append(w.idents[IdentityPhone], phone)
	return true
}

// erase erases a profile and suppresses its identifiers.
func (n *naive) erase(profile int) bool {
	w := n.profiles[n.profiles[profile].winner]
	if w.erased {
		return false
	}
	for norm, o := range n.owner {
		if o == w.winner {
			delete(n.owner, norm)
			id, device := strings.CutPrefix(norm, "anonymous_id\x00")
			n.suppressed[norm] = !device || !slices.Contains(w.givenUp, id)
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

// insteadOf is the profile of an event of a server to which claims of a profile alone led.
func (n *naive) insteadOf(claiming int, by IdentityKind, previous int, apart bool, owner [identifier.Kinds]int, norm [identifier.Kinds]string) (int, IdentityKind) {
	contradicts, device := false, owner[IdentityAnonymous]
	for k := range identifier.Identifying {
		if norm[k] == "" || owner[k] == claiming {
			continue
		}
		contradicts = contradicts || len(n.profiles[claiming].idents[k]) > 0
		if o := owner[k]; o >= 0 && !n.profiles[o].claimedLink(false, true, o, owner, norm) {
			return o, k // another profile, for certain
		}
	}
	if previous >= 0 && !apart {
		return previous, IdentityExternalID
	}
	if device >= 0 && device != claiming && !n.profiles[device].claimedLink(false, true, device, owner, norm) && (contradicts || n.profiles[device].known() > 0) {
		another := false
		for k := range identifier.Identifying {
			another = another || norm[k] != "" && len(n.profiles[device].idents[k]) > 0
		}
		if !another {
			return device, IdentityAnonymous
		}
	}
	if contradicts {
		return -1, by
	}
	return claiming, by
}

func (n *naive) merge(w *naiveProfile, winner, mergedProfile int, by IdentityKind, public bool) bool {
	l := n.profiles[mergedProfile]
	for k := range by {
		inCommon := slices.ContainsFunc(l.idents[k], func(v string) bool { return w.has(k, k.String()+"\x00"+normal(k, v)) })
		if len(w.idents[k]) > 0 && len(l.idents[k]) > 0 && (!inCommon || by == IdentityAnonymous) {
			return false
		}
	}
	if public && n.total(w) > 0 && n.total(l) > 0 {
		return false
	}
	if n.rules >= identrules.VersionYield && n.total(w) > 0 && n.total(l) > 0 && (n.doubts(w, l) || n.doubts(l, w)) {
		return false
	}
	merged := len(w.merged) - w.mergedAnonymous + len(l.merged) - l.mergedAnonymous
	devices := w.mergedAnonymous + l.mergedAnonymous
	if l.anonymous() {
		devices++
	} else {
		merged++
	}
	if n.total(w)+n.total(l) > n.settings.IdentifierCap || merged > n.settings.IdentifierCap {
		return false
	}
	if n.rules < identrules.VersionCalls && len(w.idents[IdentityAnonymous])+len(l.idents[IdentityAnonymous]) > resolution.MaxAnonymousIDs || n.rules >= identrules.VersionCalls && devices > resolution.MaxMergedAnonymous {
		return false
	}
	if public && n.rules >= identrules.VersionCalls {
		l.claimDevices()
	}
	w.givenUp = append(w.givenUp, l.givenUp...)
	for v := range l.claimed {
		w.claimed[v] = true
	}
	for v := range l.previous {
		w.previous[v] = true
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
		if trait := "identifier " + k.String(); newest == "" && k != IdentityAnonymous && !w.subscribed[k] && len(w.idents[k]) > 0 && len(l.idents[k]) > 0 {
			mine, know := w.said[trait]
			theirs, theyKnow := l.said[trait]
			if know && theyKnow && theirs > mine {
				newest = k.String() + "\x00" + normal(k, l.idents[k][len(l.idents[k])-1])
			}
		}
		w.idents[k] = append(older, w.idents[k]...)
		for i, v := range w.idents[k] { // the address that subscribed
			if k.String()+"\x00"+normal(k, v) == newest {
				w.idents[k] = append(slices.Delete(slices.Clone(w.idents[k]), i, i+1), v)
				break
			}
		}
	}
	// later reports whether what the other has, or has not, of a trait stands.
	later := func(trait string, has, other bool) bool {
		mine, know := w.said[trait]
		theirs, theyKnow := l.said[trait]
		switch {
		case know && theyKnow:
			return theirs > mine
		case know:
			return false
		}
		return !has && other
	}
	if later("first name", w.first != "", l.first != "") {
		w.first = l.first
	}
	if later("last name", w.last != "", l.last != "") {
		w.last = l.last
	}
	if len(w.said)+len(l.said) == 0 {
		naiveMerge(w.geo, l.geo, true)
		naiveMerge(w.attrs, l.attrs, true)
	} else {
		for _, x := range []struct {
			dst, src map[string]any
			of       string
		}{{w.geo, l.geo, "geo "}, {w.attrs, l.attrs, "attribute "}} {
			keys := map[string]bool{}
			for key := range x.dst {
				keys[key] = true
			}
			for key := range x.src {
				keys[key] = true
			}
			for key := range keys {
				_, has := x.dst[key]
				value, other := x.src[key]
				if later(x.of+key, has, other) {
					delete(x.dst, key)
					if other {
						x.dst[key] = value
					}
				}
			}
		}
	}
	for trait, ms := range l.said {
		w.said[trait] = max(ms, w.said[trait])
	}
	w.created = min(w.created, l.created)
	w.firstSeen = min(w.firstSeen, l.firstSeen)
	w.lastEvent = max(w.lastEvent, l.lastEvent)
	w.conflicts = append(w.conflicts, l.conflicts...)
	w.inDoubt = append(w.inDoubt, l.inDoubt...)
	w.merged = append(append(w.merged, l.merged...), mergedProfile)
	for k := range w.subscribed {
		w.subscribed[k] = w.subscribed[k] || l.subscribed[k]
	}
	for k, o := range n.owner {
		if o == mergedProfile {
			n.owner[k] = winner
		}
	}
	for _, p := range n.profiles {
		if p.winner == mergedProfile {
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
