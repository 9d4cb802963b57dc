package segment

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// NaiveFacts is what the oracle's way of looking finds behind an activity
// condition.
type NaiveFacts struct {
	Matching, Values   int
	OldestMs, NewestMs int64
	Value              *big.Rat // nil when absent
}

// NaiveActivityFacts scans the events of a profile with the oracle's helpers.
func NaiveActivityFacts(a *Activity, p *NaiveProfile, atMs int64) NaiveFacts {
	var out NaiveFacts
	var numbers []*big.Rat
	distinct := map[any]bool{}
	for _, e := range p.Events {
		// One event at a time: it matches when it alone makes a count of one.
		alone := &Activity{Event: a.Event, Did: true, WindowMs: a.WindowMs, Where: a.Where, Count: atLeastOne()}
		if !alone.naive(&NaiveProfile{Events: []NaiveEvent{e}}, atMs) {
			continue
		}
		if out.Matching == 0 {
			out.OldestMs, out.NewestMs = e.TimeMs, e.TimeMs
		}
		out.Matching++
		out.OldestMs, out.NewestMs = min(out.OldestMs, e.TimeMs), max(out.NewestMs, e.TimeMs)
		if a.Aggregate == nil {
			continue
		}
		switch v := naiveLookup(naiveJSON(e.Properties), a.Aggregate.Property).(type) {
		case string, bool:
			if a.Aggregate.Fn == FnDistinct {
				distinct[v] = true
				out.Values++
			}
		case json.Number:
			f := naiveFloat(v)
			if a.Aggregate.Fn == FnDistinct {
				distinct[f] = true
				out.Values++
			} else if m := naiveMicros(f); new(big.Rat).Abs(m).Cmp(big.NewRat(1e12, 1)) < 0 {
				numbers = append(numbers, m)
				out.Values++
			}
		}
	}
	if a.Aggregate == nil {
		out.Value = big.NewRat(int64(out.Matching), 1)
		return out
	}
	sum := new(big.Rat)
	var low, high *big.Rat
	for _, v := range numbers {
		sum.Add(sum, v)
		if low == nil || v.Cmp(low) < 0 {
			low = v
		}
		if high == nil || v.Cmp(high) > 0 {
			high = v
		}
	}
	switch a.Aggregate.Fn {
	case FnDistinct:
		out.Value = big.NewRat(int64(len(distinct)), 1)
	case FnSum:
		out.Value = sum
	case FnAvg:
		if len(numbers) > 0 {
			out.Value = sum.Quo(sum, big.NewRat(int64(len(numbers)), 1))
		}
	case FnMin:
		out.Value = low
	case FnMax:
		out.Value = high
	}
	return out
}

// NaiveAttributeValue is what an attribute condition looks at, decoded.
func NaiveAttributeValue(a *Attribute, p *NaiveProfile, atMs int64) any {
	texts := func(values []string) any {
		var out []any
		for _, v := range values {
			out = append(out, v)
		}
		if out == nil {
			return nil
		}
		return out
	}
	switch a.Field {
	case FieldEmail:
		return texts(p.Emails)
	case FieldPhone:
		return texts(p.Phones)
	case FieldExternalID:
		return texts(p.ExternalIDs)
	case FieldFirstName, FieldLastName:
		name := map[string]string{FieldFirstName: p.FirstName, FieldLastName: p.LastName}[a.Field]
		if name == "" {
			return nil
		}
		return name
	case FieldCreatedAt:
		return string(AppendTime(nil, p.CreatedAtMs))
	case FieldFirstSeen:
		return string(AppendTime(nil, p.FirstSeenMs))
	case FieldLastEvent:
		if p.LastEventMs == nil {
			return nil
		}
		return string(AppendTime(nil, *p.LastEventMs))
	case FieldSubscribed:
		yes := Attribute{Field: FieldSubscribed, Predicate: Predicate{Op: OpEq, Values: []Value{{Kind: ValueBool, Bool: true}}}}
		return yes.naive(p, atMs)
	case FieldScore:
		return json.Number(fmt.Sprint(p.naiveScore(atMs)))
	case FieldPushDevices:
		return texts(p.PushDevices)
	}
	if channel, ok := strings.CutPrefix(a.Field, "status."); ok {
		if status := p.naiveStatus(channel, atMs); status != "" {
			return status
		}
		return nil
	}
	if channel, ok := strings.CutPrefix(a.Field, "suppressed."); ok {
		return p.Suppressions[channel] != "" && p.Suppressions[channel] != "pending"
	}
	return naiveLookup(map[string]any{FieldGeo: naiveJSON(p.Geo), FieldAttributes: naiveJSON(p.Attributes)}, a.Predicate.Path)
}

// NaiveDecode decodes JSON with numbers as they are written.
func NaiveDecode(raw []byte) any { return naiveJSON(raw) }

// FactsOf is a profile as the state hands it over.
func FactsOf(p *NaiveProfile) *Facts { return p.Facts() }

// The bounds of an explanation.
const (
	MaxNestedDepth  = maxNestedDepth
	MaxNestedNodes  = maxNestedNodes
	MaxNestedBytes  = maxNestedBytes
	MaxDistinctKept = maxDistinctKept
	MaxShownBytes   = maxShownBytes
)
