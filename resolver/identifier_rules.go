package resolver

// eventRules are the rules that an event was made under.
type eventRules struct {
	version uint8 // eventlog.EventRules of its body
	live    bool  // it was sent when it happened or soon after, and not imported
}

// identifiers are the rules for the event's identifiers.
func (r eventRules) identifiers() identifierRules {
	return identifierRules{drop: r.version >= 1, dropErased: r.version >= 1, noteSecond: r.version >= 1, noteEarlier: r.version >= 1, keepAddress: r.version >= 4, keepMerged: r.version >= 5, calls: r.version >= rulesCalls, yields: r.version >= rulesYield}
}

// aged reports whether an event with a time of its own is judged by its age.
func (r eventRules) aged() bool { return r.live && r.version >= 1 }

// sent reports whether an event counts as sent whatever its type. Earlier ones count as
// the service's own where their type is one of its own.
func (r eventRules) sent() bool { return r.version >= 3 }

// identifierRules say how a record's identifiers lead to a profile. Records of
// different kinds and ages have different ones.
type identifierRules struct {
	// optional: there may be none, and any text is an e-mail. A contact may be made so.
	optional bool
	// drop: what is no identifier is left out beside one that is. Else it is a refusal.
	drop bool
	// dropErased: an identifier of an erased person is left out beside one that ranks
	// higher and says who the record is of. Else it is a refusal.
	dropErased bool
	// noteSecond: a conflict is noted where a lower-ranked identifier attaches a second
	// value of a kind.
	noteSecond bool
	// noteEarlier: an event from before its profile was made is noted as the instant
	// when the person was first seen.
	noteEarlier bool
	// keepAddress: the newest e-mail or phone of somebody who is subscribed to a channel
	// that goes there stays the newest, since the consent is of that address. A word of the
	// operator changes it.
	keepAddress bool
	// keepMerged: likewise when profiles become one, and only the one merged is subscribed.
	keepMerged bool
	// firstOnly: the highest-ranked identifier alone says whose the record is. Nobody is
	// merged, and the others stay with whom they identify, see share.go.
	firstOnly bool
	// calls: the rules for what SDKs send that came with version 7. What a browser's key
	// attaches is a claim, see claims.go; a profile gives up its oldest anonymous ids, and
	// those of erased persons are free, see anonymous.go.
	calls bool
	// yields: claims yield to what servers say, and where one has kept an identifier from a
	// person, that person is joined with nobody by what else is known. See claims.go.
	yields bool
}

// rulesCalls is the version of the rules for events from which on [identifierRules.calls]
// holds, and browsers' keys have a share of the event types.
const rulesCalls = 7

// rulesYield is that of [identifierRules.yields].
const rulesYield = 8

// noIdentifier says why a value identifies nobody, nil if it may.
func (m *Machine) noIdentifier(a *account, p *prepared, k IdentityKind, raw []byte, how identifierRules) *Refusal {
	if p.blank[k] {
		return emptyIdentifier(k)
	}
	if p.junk[k] || m.isPlaceholder(a, k, raw, p.hashes[k]) && (!how.optional || k != IdentityEmail) {
		return invalid("user."+k.String(), "user.%s %q is a placeholder, not an identifier; leave it out when the person is not known", k, raw)
	}
	return nil
}

// leftOut are the identifiers of an event that are none, and those of erased persons.
func (m *Machine) leftOut(a *account, p *prepared, how identifierRules) (dropped, erased KindSet) {
	for k, raw := range identifiersOf(&p.ev) {
		switch k := IdentityKind(k); {
		case len(raw) == 0:
		case how.drop && m.noIdentifier(a, p, k, raw, how) != nil:
			dropped.add(k)
		case how.dropErased && a.keepsOut(k, p.hashes[k], how):
			erased.add(k)
		}
	}
	return dropped, erased
}
