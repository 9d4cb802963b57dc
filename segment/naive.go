package segment

import (
	"bytes"
	"encoding/json"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// This file is the oracle. It is written to be read beside the definition of
// the language, and shares no judgement with the rest of the package: JSON goes
// through encoding/json, arithmetic through math/big, times through package
// time.

// NaiveEvent is one event of a profile.
type NaiveEvent struct {
	TimeMs     int64 // Unix milliseconds
	Type       string
	Sent       bool            // to the service, where the type is one that it records itself
	Properties json.RawMessage // a JSON object; empty for none
}

// NaiveConsent is the consent of one channel.
type NaiveConsent struct {
	Status       string
	SubscribedMs *int64 // the last subscription, in Unix milliseconds
}

// NaiveProfile is everything that is known of a profile.
type NaiveProfile struct {
	Emails, Phones, ExternalIDs []string
	FirstName, LastName         string          // missing when empty
	Geo, Attributes             json.RawMessage // JSON objects; empty for none
	CreatedAtMs                 int64           // Unix milliseconds
	FirstSeenMs                 int64           // Unix milliseconds
	LastEventMs                 *int64          // Unix milliseconds; nil before the first
	Consents                    map[string]NaiveConsent
	Suppressions                map[string]string // why a channel is suppressed
	IsContact                   bool
	Anonymous                   bool // nothing but ids of devices says who it is
	NaiveEngagement
	PushDevices []string
	Lists       []string
	Events      []NaiveEvent // in any order
}

// NaiveEngagement is what a profile did with messages.
type NaiveEngagement struct {
	Sent, Opened, Clicked   uint64 // messages
	LastOpenMs, LastClickMs *int64 // Unix milliseconds; nil for never
}

// NaiveOf is the profile of which all that conditions look at is known. It
// keeps events; of the facts it has copies.
func NaiveOf(f *Facts, events []NaiveEvent) *NaiveProfile {
	texts := func(in [][]byte) (out []string) {
		for _, b := range in {
			out = append(out, string(b))
		}
		return out
	}
	x := &f.Fields
	p := &NaiveProfile{
		Emails: texts(x.Emails), Phones: texts(x.Phones), ExternalIDs: texts(x.ExternalIDs),
		FirstName: string(x.FirstName), LastName: string(x.LastName), CreatedAtMs: x.CreatedAtMs,
		Geo: bytes.Clone(x.Geo), Attributes: bytes.Clone(x.Attributes), FirstSeenMs: x.FirstSeenMs,
		Consents: map[string]NaiveConsent{}, Suppressions: map[string]string{}, Lists: slices.Clone(f.Lists), Events: events,
		IsContact: x.IsContact, Anonymous: x.Anonymous, PushDevices: slices.Clone(x.PushDevices),
		NaiveEngagement: NaiveEngagement{Sent: x.Engagement.Sent, Opened: x.Engagement.Opened, Clicked: x.Engagement.Clicked},
	}
	if last := x.LastEventMs; x.HasEvent {
		p.LastEventMs = &last
	}
	if at := x.Engagement.LastOpenMs; at != 0 {
		p.LastOpenMs = &at
	}
	if at := x.Engagement.LastClickMs; at != 0 {
		p.LastClickMs = &at
	}
	for _, b := range f.Suppressions {
		p.Suppressions[b.Channel] = b.Reason
	}
	for _, c := range f.Consents {
		consent := NaiveConsent{Status: c.Status}
		if c.HasDate {
			consent.SubscribedMs = &c.SubscribedMs
		}
		p.Consents[c.Channel] = consent
	}
	return p
}

// Facts is the profile as the state hands it over, the inverse of [NaiveOf].
func (p *NaiveProfile) Facts() *Facts {
	list := func(in []string) (out [][]byte) {
		for _, s := range in {
			out = append(out, []byte(s))
		}
		return out
	}
	f := &Facts{Lists: p.Lists, Fields: Fields{
		Emails: list(p.Emails), Phones: list(p.Phones), ExternalIDs: list(p.ExternalIDs),
		FirstName: []byte(p.FirstName), LastName: []byte(p.LastName), Geo: p.Geo, Attributes: p.Attributes,
		CreatedAtMs: p.CreatedAtMs, FirstSeenMs: p.FirstSeenMs, IsContact: p.IsContact, Anonymous: p.Anonymous, PushDevices: p.PushDevices,
		Engagement: Engagement{Sent: p.Sent, Opened: p.Opened, Clicked: p.Clicked},
	}}
	if p.LastEventMs != nil {
		f.Fields.LastEventMs, f.Fields.HasEvent = *p.LastEventMs, true
	}
	if p.LastOpenMs != nil {
		f.Fields.Engagement.LastOpenMs = *p.LastOpenMs
	}
	if p.LastClickMs != nil {
		f.Fields.Engagement.LastClickMs = *p.LastClickMs
	}
	for channel, reason := range p.Suppressions {
		f.Suppressions = append(f.Suppressions, SuppressionFact{Channel: channel, Reason: reason})
	}
	for channel, c := range p.Consents {
		x := ConsentFact{Channel: channel, Status: c.Status}
		if c.SubscribedMs != nil {
			x.SubscribedMs, x.HasDate = *c.SubscribedMs, true
		}
		f.Consents = append(f.Consents, x)
	}
	return f
}

// Naive reports whether the profile is a member of the definition at atMs, by scanning all its
// events for every activity. refs finds the segments the definition refers to;
// a segment that is not found, or that leads back to itself, has no members.
func (n *Node) Naive(p *NaiveProfile, atMs int64, refs func(segmentID string) (*Node, bool)) bool {
	if p.Anonymous && !n.IncludeAnonymous {
		return false
	}
	return n.naive(p, atMs, refs, nil)
}

// NaiveCondition is Naive of a node below the root: anonymous profiles are judged as others
// are.
func (n *Node) NaiveCondition(p *NaiveProfile, atMs int64, refs func(segmentID string) (*Node, bool)) bool {
	return n.naive(p, atMs, refs, nil)
}

func (n *Node) naive(p *NaiveProfile, atMs int64, refs func(string) (*Node, bool), within []string) bool {
	switch n.Kind {
	case KindActivity:
		return n.Activity.naive(p, atMs)
	case KindAttribute:
		return n.Attribute.naive(p, atMs)
	case KindConsent:
		return n.Consent.naive(p)
	case KindList:
		return slices.Contains(p.Lists, n.List.ListID) == n.List.Member
	case KindSegment:
		id := n.Segment.SegmentID
		member := false
		if !slices.Contains(within, id) {
			if other, ok := refs(id); ok && (other.IncludeAnonymous || !p.Anonymous) {
				member = other.naive(p, atMs, refs, append(within[:len(within):len(within)], id))
			}
		}
		return member == n.Segment.Member
	}
	holding := 0
	for _, c := range n.Conditions {
		if c.naive(p, atMs, refs, within) {
			holding++
		}
	}
	if n.Match == MatchAny {
		return holding > 0
	}
	return holding == len(n.Conditions)
}

func (a *Activity) naive(p *NaiveProfile, atMs int64) bool {
	var matching []any // the properties of the events that match
	for _, e := range p.Events {
		if e.TimeMs > atMs || a.Event != "*" && a.Event != e.Type || a.Event == "*" && !e.Sent && slices.Contains(OwnEvents(), e.Type) {
			continue
		}
		if a.WindowMs != 0 && e.TimeMs <= atMs-a.WindowMs {
			continue
		}
		properties := naiveJSON(e.Properties)
		all := true
		for i := range a.Where {
			value := naiveLookup(properties, a.Where[i].Path)
			all = all && a.Where[i].naive(value, atMs)
		}
		if all {
			matching = append(matching, properties)
		}
	}
	return a.naiveCompare(matching) == a.Did
}

func (a *Activity) naiveCompare(matching []any) bool {
	if a.Aggregate == nil {
		return a.Count.naive(big.NewRat(int64(len(matching)), 1))
	}
	g := a.Aggregate
	if g.Fn == FnDistinct {
		seen := map[any]bool{}
		for _, properties := range matching {
			switch v := naiveLookup(properties, g.Property).(type) {
			case string, bool:
				seen[v] = true
			case json.Number:
				seen[naiveFloat(v)] = true // 0 and -0 are one key of a map
			}
		}
		return g.Compare.naive(big.NewRat(int64(len(seen)), 1))
	}
	var values []*big.Rat
	for _, properties := range matching {
		number, ok := naiveLookup(properties, g.Property).(json.Number)
		if !ok {
			continue
		}
		if v := naiveMicros(naiveFloat(number)); v.Cmp(big.NewRat(1e12, 1)) < 0 && v.Cmp(big.NewRat(-1e12, 1)) > 0 {
			values = append(values, v)
		}
	}
	sum := new(big.Rat)
	for _, v := range values {
		sum.Add(sum, v)
	}
	if g.Fn == FnSum {
		return g.Compare.naive(sum)
	}
	if len(values) == 0 {
		return false
	}
	result := values[0]
	switch g.Fn {
	case FnAvg:
		result = sum.Quo(sum, big.NewRat(int64(len(values)), 1))
	case FnMin:
		for _, v := range values {
			if v.Cmp(result) < 0 {
				result = v
			}
		}
	case FnMax:
		for _, v := range values {
			if v.Cmp(result) > 0 {
				result = v
			}
		}
	}
	return g.Compare.naive(result)
}

// naiveMicros is the shortest decimal of f, rounded half to even at the sixth
// decimal.
func naiveMicros(f float64) *big.Rat {
	decimal, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'f', -1, 64))
	if !ok {
		panic("segment: a finite float64 has a decimal form")
	}
	scaled := new(big.Rat).Mul(decimal, big.NewRat(MicrosPerUnit, 1))
	// Div and Mod are Euclidean: the rest is never negative.
	whole, rest := new(big.Int).DivMod(scaled.Num(), scaled.Denom(), new(big.Int))
	twice := rest.Lsh(rest, 1)
	if c := twice.Cmp(scaled.Denom()); c > 0 || c == 0 && whole.Bit(0) == 1 {
		whole.Add(whole, big.NewInt(1))
	}
	return new(big.Rat).SetFrac(whole, big.NewInt(MicrosPerUnit))
}

func (c *Compare) naive(v *big.Rat) bool {
	constants := make([]*big.Rat, len(c.Micros))
	for i, m := range c.Micros {
		constants[i] = new(big.Rat).SetFrac(m.Big(), big.NewInt(MicrosPerUnit))
	}
	among := false
	for _, constant := range constants {
		among = among || v.Cmp(constant) == 0
	}
	switch c.Op {
	case OpEq, OpIn:
		return among
	case OpNe, OpNotIn:
		return !among
	case OpGt:
		return v.Cmp(constants[0]) > 0
	case OpGe:
		return v.Cmp(constants[0]) >= 0
	case OpLt:
		return v.Cmp(constants[0]) < 0
	case OpLe:
		return v.Cmp(constants[0]) <= 0
	case OpBetween:
		return v.Cmp(constants[0]) >= 0 && v.Cmp(constants[1]) <= 0
	}
	return false
}

func (a *Attribute) naive(p *NaiveProfile, atMs int64) bool {
	// Several identifiers of a kind are an array; none is a missing value.
	array := func(values []string, normal func(string) string) any {
		var elements []any
		for _, s := range values {
			elements = append(elements, normal(s))
		}
		if elements == nil {
			return nil
		}
		return elements
	}
	name := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	var value any
	switch a.Field {
	case FieldEmail:
		value = array(p.Emails, func(s string) string { return strings.ToLower(strings.TrimSpace(s)) })
	case FieldPhone:
		value = array(p.Phones, naivePhone)
	case FieldExternalID:
		value = array(p.ExternalIDs, func(s string) string { return s })
	case FieldFirstName:
		value = name(p.FirstName)
	case FieldLastName:
		value = name(p.LastName)
	case FieldCreatedAt:
		return a.naiveInstant(&p.CreatedAtMs, atMs)
	case FieldFirstSeen:
		return a.naiveInstant(&p.FirstSeenMs, atMs)
	case FieldLastEvent:
		return a.naiveInstant(p.LastEventMs, atMs)
	case FieldSubscribed:
		switch p.naiveStatus("email", atMs) {
		case "Pending", "Subscribed", "Engaged", "At risk":
			value = true
		case "":
			value = p.IsContact
		default:
			value = false
		}
	case FieldScore:
		value = json.Number(strconv.FormatInt(p.naiveScore(atMs), 10))
	case FieldPushDevices:
		value = array(p.PushDevices, func(s string) string { return s })
	default:
		if channel, ok := strings.CutPrefix(a.Field, "status."); ok {
			value = name(p.naiveStatus(channel, atMs))
			break
		}
		if channel, ok := strings.CutPrefix(a.Field, "suppressed."); ok {
			value = slices.Contains([]string{"bounced", "complained", "suppressed"}, p.Suppressions[channel])
			break
		}
		value = naiveLookup(map[string]any{
			FieldGeo:        naiveJSON(p.Geo),
			FieldAttributes: naiveJSON(p.Attributes),
		}, a.Predicate.Path)
	}
	return a.Predicate.naive(value, atMs)
}

func naivePhone(s string) string {
	first := strings.IndexFunc(s, func(r rune) bool { return r >= '0' && r <= '9' })
	if first < 0 {
		return ""
	}
	digits := strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
	if strings.Contains(s[:first], "+") {
		return "+" + digits
	}
	return digits
}

// naiveStatus is the status on a channel, "" for people who never subscribed.
func (p *NaiveProfile) naiveStatus(channel string, atMs int64) string {
	reason, consent := p.Suppressions[channel], p.Consents[channel]
	if reason == "suppressed" {
		return "Suppressed"
	}
	if reason == "complained" {
		return "Complained"
	}
	if reason == "bounced" {
		return "Bounced"
	}
	if consent.Status == "unsubscribed" {
		return "Unsubscribed"
	}
	if consent.Status != "subscribed" {
		return ""
	}
	if reason == "pending" {
		return "Pending"
	}
	if channel != "email" {
		return "Subscribed"
	}
	reacted, since := false, int64(0) // quiet since
	if consent.SubscribedMs != nil {
		since = *consent.SubscribedMs
	}
	for _, at := range []*int64{p.LastOpenMs, p.LastClickMs} {
		if at != nil && (!reacted || *at > since) {
			reacted, since = true, *at
		}
	}
	days := func(n int) *big.Int {
		return big.NewInt(int64((time.Duration(n) * 24 * time.Hour) / time.Millisecond))
	}
	quiet := new(big.Int).Sub(big.NewInt(atMs), big.NewInt(since))
	if reacted && quiet.Cmp(days(30)) < 0 {
		return "Engaged"
	}
	if p.Sent >= 5 && quiet.Cmp(days(90)) >= 0 {
		return "At risk"
	}
	return "Subscribed"
}

// naiveScore is 5 for each open and 15 for each click, at most 100 in all, halved
// for every 30 days since the last of them.
func (p *NaiveProfile) naiveScore(atMs int64) int64 {
	points := new(big.Int).Mul(new(big.Int).SetUint64(p.Opened), big.NewInt(5))
	points.Add(points, new(big.Int).Mul(new(big.Int).SetUint64(p.Clicked), big.NewInt(15)))
	score := int64(100)
	if points.Cmp(big.NewInt(score)) < 0 {
		score = points.Int64()
	}
	last := int64(0)
	for _, at := range []*int64{p.LastOpenMs, p.LastClickMs} {
		if at != nil && *at > last {
			last = *at
		}
	}
	for at := last + 30*86_400_000; at <= atMs && score > 0; at += 30 * 86_400_000 {
		score /= 2
	}
	return score
}

// naiveInstant judges a field that is a time; nil is none.
func (a *Attribute) naiveInstant(value *int64, atMs int64) bool {
	if value == nil {
		return a.Predicate.Op == OpNe || a.Predicate.Op == OpNotExists || a.Predicate.Op == OpNotInLastDays
	}
	ms := *value
	constants := make([]int64, len(a.Predicate.Values))
	for i, v := range a.Predicate.Values {
		constants[i], _ = naiveTime(v.Str)
	}
	windowMs := a.Predicate.WindowMs
	switch a.Predicate.Op {
	case OpEq:
		return ms == constants[0]
	case OpNe:
		return ms != constants[0]
	case OpGt, OpAfter:
		return ms > constants[0]
	case OpGe:
		return ms >= constants[0]
	case OpLt, OpBefore:
		return ms < constants[0]
	case OpLe:
		return ms <= constants[0]
	case OpBetween:
		return ms >= constants[0] && ms <= constants[1]
	case OpInLastDays:
		return ms > atMs-windowMs && ms <= atMs
	case OpNotInLastDays:
		return ms <= atMs-windowMs || ms > atMs
	case OpExists:
		return true
	}
	return false
}

func (c *Consent) naive(p *NaiveProfile) bool {
	consent := p.Consents[c.Channel]
	if consent.Status == "" {
		consent.Status = StatusNeverSubscribed
	}
	if c.Status == "pending" {
		if consent.Status != "subscribed" || p.Suppressions[c.Channel] != "pending" {
			return false
		}
	} else if consent.Status != c.Status {
		return false
	}
	if c.SinceMs == nil && c.UntilMs == nil {
		return true
	}
	if consent.SubscribedMs == nil {
		return false
	}
	return (c.SinceMs == nil || *consent.SubscribedMs >= *c.SinceMs) &&
		(c.UntilMs == nil || *consent.SubscribedMs < *c.UntilMs)
}

// naive judges a decoded JSON value; nil is null or missing.
func (p *Predicate) naive(value any, atMs int64) bool {
	// A negative operator is the complement of its positive.
	switch p.Op {
	case OpNe:
		return !p.naiveAny(OpEq, value, atMs)
	case OpNotIn:
		return !p.naiveAny(OpIn, value, atMs)
	case OpNotContains:
		return !p.naiveAny(OpContains, value, atMs)
	case OpNotExists:
		return !p.naiveAny(OpExists, value, atMs)
	case OpNotInLastDays:
		return !p.naiveAny(OpInLastDays, value, atMs)
	}
	return p.naiveAny(p.Op, value, atMs)
}

func (p *Predicate) naiveAny(op Op, value any, atMs int64) bool {
	if op == OpExists {
		return value != nil
	}
	if array, ok := value.([]any); ok {
		for _, element := range array {
			if p.naiveScalar(op, element, atMs) {
				return true
			}
		}
		return false
	}
	return p.naiveScalar(op, value, atMs)
}

func (p *Predicate) naiveScalar(op Op, value any, atMs int64) bool {
	text, isText := value.(string)
	switch op {
	case OpEq, OpIn:
		for _, constant := range p.Values {
			if c, ok := naiveOrder(value, constant); ok && c == 0 {
				return true
			}
		}
		return false
	case OpGt:
		c, ok := naiveOrder(value, p.Values[0])
		return ok && c > 0
	case OpGe:
		c, ok := naiveOrder(value, p.Values[0])
		return ok && c >= 0
	case OpLt:
		c, ok := naiveOrder(value, p.Values[0])
		return ok && c < 0
	case OpLe:
		c, ok := naiveOrder(value, p.Values[0])
		return ok && c <= 0
	case OpBetween:
		low, ok := naiveOrder(value, p.Values[0])
		high, _ := naiveOrder(value, p.Values[1])
		return ok && low >= 0 && high <= 0
	case OpContains:
		return isText && strings.Contains(text, p.Values[0].Str)
	case OpStartsWith:
		return isText && strings.HasPrefix(text, p.Values[0].Str)
	case OpEndsWith:
		return isText && strings.HasSuffix(text, p.Values[0].Str)
	case OpBefore, OpAfter, OpInLastDays:
		ms, ok := naiveTime(text)
		if !isText || !ok {
			return false
		}
		switch op {
		case OpBefore:
			constant, _ := naiveTime(p.Values[0].Str)
			return ms < constant
		case OpAfter:
			constant, _ := naiveTime(p.Values[0].Str)
			return ms > constant
		}
		return ms > atMs-p.WindowMs && ms <= atMs
	}
	return false
}

// naiveOrder compares a value with a constant of the same type; ok is false
// for different types and for what is no scalar.
func naiveOrder(value any, constant Value) (order int, ok bool) {
	switch v := value.(type) {
	case string:
		return strings.Compare(v, constant.Str), constant.Kind == ValueString
	case json.Number:
		return big.NewFloat(naiveFloat(v)).Cmp(big.NewFloat(constant.Num)), constant.Kind == ValueNumber
	case bool:
		if v == constant.Bool {
			return 0, constant.Kind == ValueBool
		}
	}
	return 0, false
}

func naiveFloat(n json.Number) float64 {
	f, err := n.Float64()
	if err != nil {
		panic("segment: stored numbers fit float64: " + n.String())
	}
	return f
}

var naiveTimes = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2}))?$`)

// naiveTime is the time of a text in Unix milliseconds, rounded down.
func naiveTime(text string) (ms int64, ok bool) {
	if !naiveTimes.MatchString(text) || strings.HasPrefix(text, "0000") {
		return 0, false
	}
	// Package time takes offsets of 24 hours and beyond in some versions.
	if i := len(text) - 6; len(text) > 10 && !strings.HasSuffix(text, "Z") &&
		(text[i+1:i+3] > "23" || text[i+4:] > "59") {
		return 0, false
	}
	layout := time.RFC3339Nano
	if len(text) == len(time.DateOnly) {
		layout = time.DateOnly
	}
	t, err := time.Parse(layout, text)
	if err != nil {
		return 0, false
	}
	// Unix rounds seconds down and Nanosecond counts up from there.
	return t.Unix()*1000 + int64(t.Nanosecond()/1e6), true
}

// naiveJSON decodes a stored object; no object is nil.
func naiveJSON(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		panic("segment: stored JSON is valid: " + err.Error())
	}
	return v
}

// naiveLookup follows a path through objects; nil when there is nothing.
func naiveLookup(value any, path []string) any {
	for _, key := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[key]
	}
	return value
}
