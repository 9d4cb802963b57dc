// Package redact takes erased persons out of records of the log. It knows records and the
// rules by which their identifiers lead to profiles; what it must know of an account as it is
// now it asks of [People]. It changes no state.
package redact

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/forms"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/orders"
	"github.com/musterhq/muster/resolver/outbox"
)

// Prefix begins the name of a command that was redacted.
const Prefix = "redacted:"

// CommandRefused stands for a command that was refused because of its own arguments,
// of which nothing is left.
const CommandRefused = "refused"

// ErasedText stands for a text that is gone where one must be.
const ErasedText = "(erased)"

// Redactor takes erased persons of one account out of records. What replay needs
// stays, see package identifier: which identifiers belong together, when, and by which type
// of event; the texts go.
//
// An identifier belongs to one profile until it is erased, so the profile of an
// event follows from the present owners of its identifiers: it is the owner of the
// first one that has any.
type Redactor struct {
	account      uint64
	hasher       identifier.Hasher
	buf          []byte // scratch
	placeholders []string
	// placeholderSet is made of the placeholders when it is needed.
	placeholderSet *identifier.Placeholders
	people         People
	// below says up to which offset an identifier belonged to a profile that is erased
	// now, ordinals are those of the profiles.
	below    map[identifier.Hash]int64
	ordinals *roaring.Bitmap
	// err is an error of people, which ends everything: what is redacted cannot be undone.
	err error
	// rules are those of the record at hand.
	rules identrules.Identifiers
	// updates is the profile that the record at hand changes by its id, profile.NoOrdinal if it
	// does not. What that one shows is no erased person's there.
	updates uint32

	// Whether the newest record has an identifier that is kept out, and its kind.
	keptOut     bool
	keptOutKind identifier.Kind
	// invalid says that the command was refused because of its own arguments, and
	// might not be without what is taken out.
	invalid bool
}

// People is what is asked of the account's profiles as they are now.
type People struct {
	// Marked says behind which offset what has an identifier was refused.
	Marked func(h identifier.Hash) (at int64, ok bool)
	// Owner is the live profile that has an identifier, or profile.NoOrdinal.
	Owner func(h identifier.Hash) uint32
	// Shows reports whether the live profile that an ordinal leads to shows an
	// identifier, its own or another's.
	Shows func(ordinal uint32, kind identifier.Kind, h identifier.Hash) (bool, error)
	// Named is the profile that an id names, merged or erased; Erased reports whether an
	// ordinal is of one that was erased.
	Named  func(id string) (uint32, bool)
	Erased func(ordinal uint32) bool
}

// New returns one for the records of an account, with its hasher and its
// placeholders. It erases no profile yet, but keeps out the identifiers that are marked as erased.
func New(account uint64, hasher identifier.Hasher, placeholders []string, people People) *Redactor {
	return &Redactor{account: account, hasher: hasher, placeholders: placeholders, people: people, below: map[identifier.Hash]int64{}, ordinals: roaring.New()}
}

// Erase adds persons: the ordinals that they had, and for each of their identifiers the
// offset up to which it was theirs.
func (r *Redactor) Erase(ordinals []uint32, below map[identifier.Hash]int64) {
	r.ordinals.AddMany(ordinals)
	r.below = below
}

// KeptOut reports whether the newest record has an identifier of an erased person, so that it
// is kept out, and the kind of that identifier.
func (r *Redactor) KeptOut() (kind identifier.Kind, ok bool) { return r.keptOutKind, r.keptOut }

// Record returns what is to be taken out of a record, nil for nothing.
func (r *Redactor) Record(offset int64, data []byte) ([]eventlog.Splice, error) {
	env, body, err := eventlog.DecodeEnvelope(data)
	if err != nil || env.Account != r.account {
		return nil, err
	}
	r.keptOut = false
	switch env.Kind {
	case eventlog.KindEvents:
		return r.events(offset, data, body)
	case eventlog.KindImport:
		_, events, err := eventlog.DecodeImportHead(body)
		if err != nil {
			return nil, err
		}
		return r.events(offset, data, events)
	case eventlog.KindCommand:
		name, args, err := eventlog.DecodeCommand(body)
		if err != nil {
			return nil, err
		}
		name = strings.TrimPrefix(name, Prefix)
		r.invalid, r.rules, r.updates = false, identrules.Identifiers{}, profile.NoOrdinal
		now, changed, err := r.command(offset, name, args)
		if err = errors.Join(err, r.err); err != nil || !changed || bytes.Equal(now, args) && !r.invalid {
			return nil, err
		}
		if r.invalid {
			name, now = CommandRefused, []byte("{}")
		}
		return []eventlog.Splice{{At: eventlog.EnvelopeSize, Len: len(body), New: eventlog.AppendCommand(nil, Prefix+name, now)}}, nil
	}
	return nil, nil
}

// identifiers are those of one event or command.
type identifiers struct {
	raw    [identifier.Kinds][]byte
	hashes [identifier.Kinds]identifier.Hash
	has    [identifier.Kinds]bool // something to be hashed
	mine   [identifier.Kinds]bool // of an erased person
	out    [identifier.Kinds]bool // of an erased person before: it was refused, or left out
	any    bool                   // one is an erased person's
	some   bool                   // one was left out
	// whole says that what they stand in was an erased person's.
	whole bool
	// shown are those that identified an erased person, and that the contact which the
	// command made shows as its own.
	shown [identifier.Kinds]bool
	// refused says that it was refused because of one of the kind.
	refused bool
	kind    identifier.Kind
}

// look finds out whose identifiers are. public says that a browser's key sent them, under
// rules by which it claims.
func (r *Redactor) look(offset int64, raw [identifier.Kinds][]byte, public bool) (x identifiers) {
	x.raw = raw
	stands := false // an identifier that ranks higher says who the record is of
	for k := range identifier.Kinds {
		if len(raw[k]) == 0 {
			continue
		}
		if x.hashes[k], x.has[k] = r.hasher.HashIdentifier(k, raw[k], &r.buf); !x.has[k] {
			continue
		}
		at, marked := r.people.Marked(x.hashes[k])
		out, mine := marked && offset > at && !(k == identifier.Anonymous && r.rules.Calls), offset < r.below[x.hashes[k]]
		if (out || mine) && r.updates != profile.NoOrdinal {
			shows, err := r.people.Shows(r.updates, k, x.hashes[k])
			if r.err = errors.Join(r.err, err); shows {
				continue
			}
		}
		if out {
			switch x.out[k] = true; {
			case stands && r.rules.DropErased:
				x.some = true
			case !x.refused:
				x.refused, x.kind = true, k
			}
		} else if !stands {
			stands = !r.isPlaceholder(raw[k]) || r.rules.Optional && k == identifier.Email
		}
		if mine {
			x.mine[k], x.any = true, true
		}
	}
	if !x.any {
		return x
	}
	for k := range identifier.Kinds {
		if x.mine[k] {
			x.whole = !public || !r.othersToo(&x)
			return x
		}
		if !x.has[k] {
			continue
		}
		if o := r.people.Owner(x.hashes[k]); o != profile.NoOrdinal {
			for j := k + 1; r.rules.FirstOnly && j < identifier.Kinds; j++ {
				if x.mine[j] && r.err == nil {
					x.shown[j], r.err = r.people.Shows(o, j, x.hashes[j])
				}
			}
			return x
		}
	}
	return x
}

// othersToo reports whether an identifier beside those of erased persons is a live profile's.
// An event of a browser's key may have been that one's, whichever ranks higher: such a key
// attaches no second identifier of a kind, so an identifier of the event may have become
// another person's later. It is kept until the other one is erased, too.
func (r *Redactor) othersToo(x *identifiers) bool {
	for k := range identifier.Identifying {
		if x.has[k] && !x.mine[k] && r.people.Owner(x.hashes[k]) != profile.NoOrdinal {
			return true
		}
	}
	return false
}

// isPlaceholder reports whether a value is one of the account's. The set is made when it
// is needed: it has scratch memory, and the account's own is in use.
func (r *Redactor) isPlaceholder(raw []byte) bool {
	if r.placeholderSet == nil {
		set := identifier.NewPlaceholders(r.placeholders)
		r.placeholderSet = &set
	}
	return r.placeholderSet.Has(raw)
}

// masked are the identifiers with those of erased persons masked, and in their
// records those without an owner.
func (r *Redactor) masked(x *identifiers) (out [identifier.Kinds][]byte) {
	out = x.raw
	for k := range identifier.Kinds {
		switch {
		case len(x.raw[k]) == 0, r.isPlaceholder(x.raw[k]): // no person's, and refused or left out for what it is
		case x.shown[k]: // it is the contact's too, since a contact shows what another profile has
		case x.mine[k], x.out[k], x.whole && x.has[k] && r.people.Owner(x.hashes[k]) == profile.NoOrdinal:
			out[k] = r.hasher.Mask(k, x.raw[k], &r.buf)
		case x.whole && !x.has[k] && k == identifier.Phone:
			out[k] = []byte("-") // no number either, and refused alike
		}
	}
	return out
}

func (r *Redactor) events(offset int64, data, body []byte) (out []eventlog.Splice, err error) {
	list, err := eventlog.NewEventsReader(body)
	if err != nil {
		return nil, err
	}
	r.rules, r.updates = identrules.Event{Version: list.Rules()}.Identifiers(), profile.NoOrdinal
	var ev eventlog.Event
	for {
		begin := len(data) - list.Rest()
		if !list.Next(&ev) {
			return out, list.Err()
		}
		if ev.Refused {
			continue
		}
		x := r.look(offset, identrules.Of(&ev), ev.Public && r.rules.Calls)
		alias := r.previous(offset, &ev)
		switch {
		case x.refused:
			ev = eventlog.Event{Type: ev.Type, HasTime: ev.HasTime, TimeMs: ev.TimeMs, Refused: true, RefusedKind: uint8(x.kind)}
		case x.any, x.some, alias:
			m := r.masked(&x)
			ev.Email, ev.ExternalID, ev.Phone, ev.AnonymousID = m[identifier.Email], m[identifier.ExternalID], m[identifier.Phone], m[identifier.Anonymous]
			if alias || x.whole && r.nobodysPrevious(&ev) {
				ev.PreviousID = r.maskPrevious(ev.PreviousID)
			}
			if x.whole {
				ev.Properties = r.properties(&ev, list.Rules())
				ev.FirstName, ev.LastName, ev.Redacted = nil, nil, true
				ev.Geo, ev.Attributes = profile.MaskObject(r.hasher, ev.Geo), profile.MaskObject(r.hasher, ev.Attributes)
				ev.IdempotencyKey = r.key(&ev)
			}
		default:
			continue
		}
		end := len(data) - list.Rest()
		if now := eventlog.AppendEvent(nil, &ev); !bytes.Equal(now, data[begin:end]) {
			out = append(out, eventlog.Splice{At: begin, Len: end - begin, New: now})
		}
	}
}

// properties are what stays of those of an event: what figures of orders are made of.
func (r *Redactor) properties(ev *eventlog.Event, rules uint8) []byte {
	if !(identrules.Event{Version: rules}).Read() {
		return nil
	}
	return orders.Mask(orders.KindOf(ev.Type), ev.Properties, ev.Redacted, func(id string) string {
		return string(identifier.Masked(identifier.MaskIdempotencyKey, orders.HashID(r.hasher, id, &r.buf)))
	})
}

// key masks an idempotency key.
func (r *Redactor) key(ev *eventlog.Event) []byte {
	if len(ev.IdempotencyKey) == 0 || identifier.IsMasked(ev.IdempotencyKey) {
		return ev.IdempotencyKey
	}
	return identifier.Masked(identifier.MaskIdempotencyKey, identrules.KeyHash(r.hasher, ev, &r.buf))
}

// previous reports whether the previous id of an alias was an erased person's, of either
// kind that it may be of.
func (r *Redactor) previous(offset int64, ev *eventlog.Event) bool {
	if len(ev.PreviousID) == 0 || identifier.IsMasked(ev.PreviousID) {
		return false
	}
	p, ok := r.hasher.HashPrevious(ev.PreviousID, &r.buf)
	if !ok {
		return false
	}
	out := func(h identifier.Hash) bool {
		at, marked := r.people.Marked(h)
		return marked && offset > at
	}
	return offset < max(r.below[p.Anonymous], r.below[p.External]) || out(p.External) || !r.rules.Calls && out(p.Anonymous)
}

// nobodysPrevious reports whether the previous id of an alias is no live profile's.
func (r *Redactor) nobodysPrevious(ev *eventlog.Event) bool {
	p, ok := r.hasher.HashPrevious(ev.PreviousID, &r.buf)
	return ok && r.people.Owner(p.Anonymous) == profile.NoOrdinal && r.people.Owner(p.External) == profile.NoOrdinal
}

// maskPrevious masks the previous id of an alias.
func (r *Redactor) maskPrevious(raw []byte) []byte {
	if len(raw) == 0 || identifier.IsMasked(raw) || r.isPlaceholder(raw) {
		return raw
	}
	p, ok := r.hasher.HashPrevious(raw, &r.buf)
	if !ok {
		return raw
	}
	return identifier.Masked(identifier.MaskPrevious, p.Anonymous, p.External)
}

// erased reports whether an id names an erased person.
func (r *Redactor) erased(id string) bool {
	o, ok := r.people.Named(id)
	return ok && r.isErased(o)
}

func (r *Redactor) isErased(ordinal uint32) bool {
	return r.ordinals.Contains(ordinal) || r.people.Erased(ordinal)
}

// rewrite reads a command's arguments and writes them again where fn says that it has
// changed them.
func rewrite[T any](args []byte, fn func(*T) bool) ([]byte, bool, error) {
	var c T
	if err := json.Unmarshal(args, &c); err != nil {
		return nil, false, err
	}
	if !fn(&c) {
		return args, false, nil
	}
	return must.JSON(c), true, nil
}

// command takes erased persons out of a command's arguments.
func (r *Redactor) command(offset int64, name string, args []byte) (out []byte, changed bool, err error) {
	switch name {
	case contacts.CommandCreate, identrules.CommandContactCreate1:
		return rewrite(args, func(c *contacts.Create) bool { return r.contact(offset, name, c) })
	case contacts.CommandListAdd, identrules.CommandListAdd1:
		return rewrite(args, func(c *contacts.ListAdd) bool { return r.contact(offset, name, &c.Create) })
	case contacts.CommandUpdate:
		return rewrite(args, func(c *contacts.Update) bool { return r.update(offset, c) })
	case contacts.CommandConsentSet:
		return rewrite(args, func(c *contacts.ConsentSet) bool { return r.erased(c.ID) && r.source(&c.Source) })
	case contacts.CommandSuppressionSet:
		return rewrite(args, func(c *contacts.SuppressionSet) bool { return r.erased(c.ID) && r.source(&c.Source) })
	case contacts.CommandDeviceAdd:
		return rewrite(args, func(c *contacts.DeviceAdd) bool { return r.erased(c.Profile) && r.device(c) })
	case contacts.CommandDeviceRemove:
		return rewrite(args, func(c *contacts.DeviceRemove) bool {
			c.Device = r.hasher.MaskText(identifier.MaskDevice, c.Device)
			return r.erased(c.Profile)
		})
	case messages.CommandEmailSend, messages.CommandEmailSend1, messages.CommandEmailSend2:
		return rewrite(args, func(c *messages.EmailSend) bool { return r.mail(offset, c) })
	case automation.CommandTrigger:
		return rewrite(args, func(c *automation.Trigger) bool { return r.call(offset, c) })
	case messages.CommandEngagement, messages.CommandEngagement1:
		return rewrite(args, func(c *messages.EngagementRecord) bool { return r.engagement(c) })
	case messages.CommandPreferences:
		return rewrite(args, func(c *messages.Preferences) bool { return r.preferences(c) })
	case forms.CommandSubmit:
		return rewrite(args, func(c *forms.Submit) bool { return r.submission(offset, c) })
	case messages.CommandOutboxDone, messages.CommandOutboxDone1:
		return rewrite(args, func(c *outbox.Done) bool { return r.outboxDone(offset, c) })
	case campaigns.CommandResult, campaigns.CommandResult1:
		return rewrite(args, func(c *campaigns.Result) bool { return r.result(offset, c) })
	case campaigns.CommandFinish:
		return rewrite(args, func(c *campaigns.Finish) bool { return !c.Anonymous && r.text(offset, &c.Stopped) })
	case erasure.CommandLift:
		return rewrite(args, func(c *erasure.Lift) bool { return r.lift(offset, c) })
	}
	return args, false, nil
}

// source takes out who or what said something.
func (r *Redactor) source(text *string) bool {
	r.invalid = len(*text) > contacts.MaxSourceBytes
	return blank(text)
}

// blank empties texts; it returns whether there was any.
func blank(texts ...*string) (changed bool) {
	for _, t := range texts {
		changed = changed || *t != ""
		*t = ""
	}
	return changed
}

// erase puts [ErasedText] in the place of a text, if there is one.
func erase(text *string) bool {
	if *text == "" || *text == ErasedText {
		return false
	}
	*text = ErasedText
	return true
}

// named looks at the identifiers of a command, and masks them. It returns whether
// the command was an erased person's, or was refused as one's; but one counts as
// another person's only where others says so.
func (r *Redactor) named(offset int64, others bool, email, externalID, phone *string) (whole, changed bool) {
	texts := [identifier.Kinds]*string{email, externalID, phone}
	var raw [identifier.Kinds][]byte
	for k, t := range texts {
		if t != nil {
			raw[k] = []byte(*t)
		}
	}
	x := r.look(offset, raw, false)
	if x.refused && !x.any {
		x.mine, x.any, x.whole = x.out, true, true
		for k := range identifier.Kinds {
			if others && x.has[k] && r.people.Owner(x.hashes[k]) != profile.NoOrdinal {
				x.whole = false
			}
		}
		r.keptOut, r.keptOutKind = x.whole, x.kind
	}
	if !x.any && !x.some {
		return false, false
	}
	for k, v := range r.masked(&x) {
		if texts[k] != nil && *texts[k] != string(v) {
			*texts[k], changed = string(v), true
		}
	}
	return x.whole, changed
}

func (r *Redactor) contact(offset int64, command string, c *contacts.Create) bool {
	invalid := c.Check(true) != nil
	r.rules = identrules.OfContact(command)
	whole, changed := r.named(offset, false, &c.Email, &c.ExternalID, &c.Phone)
	if whole {
		changed = blank(&c.FirstName, &c.LastName) || changed
	}
	r.invalid = changed && invalid
	return changed
}

func (r *Redactor) update(offset int64, c *contacts.Update) bool {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	invalid := (&contacts.Create{Email: text(c.Email), Phone: text(c.Phone), ExternalID: text(c.ExternalID), FirstName: text(c.FirstName), LastName: text(c.LastName)}).Check(true) != nil
	if !r.erased(c.ID) {
		if o, ok := r.people.Named(c.ID); ok {
			r.updates = o
		}
		_, changed := r.named(offset, true, c.Email, c.ExternalID, c.Phone)
		r.keptOut, r.invalid = false, invalid && changed
		return changed
	}
	r.invalid = invalid
	for k, t := range [identifier.Kinds]*string{c.Email, c.ExternalID, c.Phone} {
		if t == nil || *t == "" {
			continue
		}
		// What another has was refused, and is not this person's.
		switch h, ok := r.hasher.HashIdentifier(identifier.Kind(k), []byte(*t), &r.buf); {
		case !ok && identifier.Kind(k) == identifier.Phone:
			*t = "-" // no number either, and refused alike
		case !ok || r.people.Owner(h) == profile.NoOrdinal:
			*t = string(r.hasher.Mask(identifier.Kind(k), []byte(*t), &r.buf))
		}
	}
	for _, t := range []*string{c.FirstName, c.LastName} {
		if t != nil {
			*t = ""
		}
	}
	for i := range c.Consents {
		source := &c.Consents[i].Source
		r.invalid = r.invalid || len(*source) > contacts.MaxSourceBytes
		*source = ""
	}
	for _, o := range []*json.RawMessage{&c.Geo, &c.Attributes} {
		switch {
		case len(*o) == 0:
		case contacts.CanonicalObject("", o) == nil:
			*o = profile.MaskObject(r.hasher, *o)
		case !bytes.Contains(*o, []byte(profile.MaskedKey)): // it was refused, and is again
			*o = must.JSON(ErasedText)
		}
	}
	return true
}

func (r *Redactor) device(c *contacts.DeviceAdd) bool {
	was := *c
	kind := slices.Index(profile.DeviceKinds, c.Kind)
	if identifier.IsMasked(c.Address) {
		return false
	}
	if contacts.CheckDevice(c) != nil {
		r.invalid = true
		return true
	}
	c.Device = r.hasher.MaskText(identifier.MaskDevice, c.Device)
	c.Address = string(identifier.Masked(identifier.MaskDevice, r.hasher.HashDevice(byte(kind), []byte(c.Address), &r.buf)))
	return *c != was
}

func (r *Redactor) mail(offset int64, c *messages.EmailSend) bool {
	invalid := c.CheckLengths() != nil
	whole, changed := r.named(offset, false, &c.To, nil, nil)
	if !whole {
		return changed
	}
	if r.invalid = invalid; invalid {
		return true
	}
	if c.Key != "" && !identifier.IsMasked(c.Key) {
		var parts [identifier.SendKeyParts]identifier.Hash
		for i := range parts {
			parts[i] = r.hasher.HashSendKey(c.Key, byte(i), &r.buf)
		}
		c.Key, changed = string(identifier.Masked(identifier.MaskIdempotencyKey, parts[:]...)), true
	}
	changed = changed || len(c.Data)+len(c.Event) > 0
	c.Data, c.Event = nil, nil
	return blank(&c.Subject, &c.SenderName, &c.HTML, &c.Text, &c.ReplyTo) || changed
}

func (r *Redactor) call(offset int64, c *automation.Trigger) bool {
	invalid := c.CheckLengths() != nil
	whole, changed := r.named(offset, true, &c.Email, &c.ExternalID, &c.Phone)
	if !whole {
		return changed
	}
	if r.invalid = invalid; invalid {
		return true
	}
	if c.Key != "" && !identifier.IsMasked(c.Key) {
		c.Key, changed = string(identifier.Masked(identifier.MaskIdempotencyKey, r.hasher.HashFlowKey(c.ID, c.Key, &r.buf))), true
	}
	changed = changed || len(c.Data) > 0
	c.Data = nil
	return changed
}

func (r *Redactor) engagement(c *messages.EngagementRecord) bool {
	mine := c.Profile != "" && r.erased(c.Profile)
	if _, o, _, ok := c.Send.Campaign(); ok && r.isErased(o) {
		mine = true
	}
	if _, o, ok := c.Send.Outbox(); ok && r.isErased(o) {
		mine = true
	}
	if !mine {
		return false
	}
	changed := blank(&c.URL, &c.Reason, &c.Source)
	if c.Key != "" && !identifier.IsMasked(c.Key) {
		c.Key, changed = string(identifier.Masked(identifier.MaskIdempotencyKey, r.hasher.HashReportKey(c.Key, &r.buf))), true
	}
	return changed
}

func (r *Redactor) preferences(c *messages.Preferences) bool {
	if !r.erased(c.Profile) {
		return false
	}
	r.invalid = c.Check() != nil
	changed := blank(&c.Client)
	for i := range c.Channels {
		changed = blank(&c.Channels[i].Wording) || changed
	}
	for i := range c.Topics {
		changed = blank(&c.Topics[i].Wording) || changed
	}
	return changed
}

// submission is of the owner of its e-mail, or of its phone where it has no e-mail. A phone
// that is another's beside an e-mail was left out.
func (r *Redactor) submission(offset int64, c *forms.Submit) bool {
	invalid := c.Check(true) != nil
	r.rules = identrules.OfContact(contacts.CommandCreate)
	whole, changed := r.named(offset, false, &c.Email, nil, &c.Phone)
	if whole {
		changed = blank(&c.FirstName, &c.LastName, &c.Wording, &c.Client) || changed
		switch o := &c.Attributes; {
		case len(*o) == 0:
		case contacts.CanonicalObject("attributes", o) == nil:
			*o, changed = profile.MaskObject(r.hasher, *o), true
		case !bytes.Contains(*o, []byte(profile.MaskedKey)): // it was refused
			invalid, changed = true, true
		}
	}
	r.invalid = changed && invalid
	return changed
}

func (r *Redactor) outboxDone(offset int64, c *outbox.Done) bool {
	if !r.isErased(c.Ordinal) {
		changed := r.text(offset, &c.Reason)
		return c.Log != nil && r.text(offset, &c.Log.Answer) || changed
	}
	// A relay or provider may repeat what it was sent. Some ids of providers hold the number
	// that a text went to.
	changed := false
	if c.Log == nil {
		changed = erase(&c.Reason)
	} else { // of a webhook, which is Muster's own and part of what its endpoint shows
		changed = r.text(offset, &c.Reason)
	}
	changed = blank(&c.ProviderID) || changed
	changed = r.devices(&c.Retired) || changed
	changed = maskCard(&c.InApp) || changed
	return c.Log != nil && blank(&c.Log.Answer) || changed
}

func (r *Redactor) result(offset int64, c *campaigns.Result) bool {
	if !r.isErased(c.Ordinal) {
		return !c.Anonymous && r.text(offset, &c.Reason)
	}
	changed := !c.Anonymous && erase(&c.Reason)
	changed = maskCard(&c.InApp) || changed
	return r.devices(&c.Retired) || changed
}

// maskCard takes the texts out of an in-app message, which may name the person.
func maskCard(raw *json.RawMessage) bool {
	var c card.Card
	if len(*raw) == 0 || json.Unmarshal(*raw, &c) != nil || c.Title == ErasedText && c.Body+c.Link+c.Image == "" {
		return false
	}
	c.Title, c.Body, c.Link, c.Image = ErasedText, "", "", ""
	*raw = must.PlainJSON(c)
	return true
}

// devices masks the addresses of devices. Their kinds are not known: there is a mask for
// each.
func (r *Redactor) devices(addresses *[]string) (changed bool) {
	var masked []string
	for _, address := range *addresses {
		if identifier.IsMasked(address) {
			masked = append(masked, address)
			continue
		}
		for kind := range profile.DeviceKinds {
			masked = append(masked, string(identifier.Masked(identifier.MaskDevice, r.hasher.HashDevice(byte(kind), []byte(address), &r.buf))))
		}
		changed = true
	}
	*addresses = masked
	return changed
}

func (r *Redactor) lift(offset int64, c *erasure.Lift) bool {
	for k := range identifier.Kinds {
		if c.Value == "" || identifier.IsMasked(c.Value) || c.Kind != "" && c.Kind != k.String() {
			continue
		}
		h, ok := r.hasher.HashIdentifier(k, []byte(c.Value), &r.buf)
		if !ok || offset >= r.below[h] {
			continue
		}
		c.Hash, c.Kind, c.Value = hex.EncodeToString(h[:]), "", ""
		return true
	}
	return false
}

// text takes the addresses of erased persons out of a text, such as what a relay
// answered. What stands between signs that an address may have itself, as in
// mailbox=a@b.example, is looked at as well.
func (r *Redactor) text(offset int64, text *string) bool {
	const around = `<>()[]{}"',;:!?`
	changed := r.words(offset, text, around)
	return r.words(offset, text, around+"=/|*`") || changed
}

func (r *Redactor) words(offset int64, text *string, around string) bool {
	changed := false
	out := splitWords(*text, around, func(word string) string {
		kind := identifier.Email
		switch {
		case strings.Contains(word, "@"):
		case len(word) > 6 && strings.IndexFunc(word, func(c rune) bool { return !unicode.IsDigit(c) && c != '+' }) < 0:
			kind = identifier.Phone
		case len(word) > 2:
			kind = identifier.ExternalID
		default:
			return word
		}
		h, ok := r.hasher.HashIdentifier(kind, []byte(word), &r.buf)
		if !ok || offset >= r.below[h] {
			return word
		}
		changed = true
		return ErasedText
	})
	if changed {
		*text = out
	}
	return changed
}

// splitWords calls fn for the words of a text, without the punctuation around them,
// and puts in their place what it returns.
func splitWords(text, around string, fn func(string) string) string {
	isBreak := func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune(around, c) }
	var out strings.Builder
	for text != "" {
		i := strings.IndexFunc(text, isBreak)
		if i < 0 {
			i = len(text)
		}
		word := strings.TrimRight(text[:i], ".")
		out.WriteString(fn(word))
		out.WriteString(text[len(word):i])
		n := strings.IndexFunc(text[i:], func(c rune) bool { return !isBreak(c) })
		if n < 0 {
			n = len(text) - i
		}
		out.WriteString(text[i : i+n])
		text = text[i+n:]
	}
	return out.String()
}
