package messaging

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/messaging/push"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/credentials"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/view"
)

// pushKinds are the push services by what the state calls their devices.
var pushKinds = map[string]push.Kind{"webpush": push.KindWeb, "fcm": push.KindFCM, "apns": push.KindAPNs}

// PushKind is the push service of a kind of device.
func PushKind(device string) (push.Kind, bool) {
	k, ok := pushKinds[device]
	return k, ok
}

// pushMedium sends notifications to the devices of profiles.
type pushMedium struct {
	senders map[string]push.Sender // by kind of device
	capture Capture                // set: nothing is sent
}

// newPushMedium opens an account's push services by its credentials. An account that has set up
// none is in development: its messages are captured.
func newPushMedium(o push.Options, to Capture, list []credentials.Credential) (*pushMedium, error) {
	m := &pushMedium{senders: map[string]push.Sender{}}
	if len(list) == 0 {
		m.capture = to
	}
	for _, c := range list {
		s, err := push.Open(pushKinds[c.Name], c.Config, o)
		if err != nil {
			m.close()
			return nil, fmt.Errorf("push credentials of %s: %w", c.Name, err)
		}
		m.senders[c.Name] = s
	}
	return m, nil
}

func (x *pushMedium) close() {
	for _, s := range x.senders {
		s.Close()
	}
}

// missingPush names what a kind of device needs and is not there.
func missingPush(kinds ...string) string {
	return "no push credentials are set for " + strings.Join(kinds, ", ") + "; set them with PUT /push-credentials/" + kinds[0] + " of the console, or remove these devices"
}

// notification makes the message of one recipient.
func (m *outgoing) notification() (*push.Notification, error) {
	n := &push.Notification{ID: compose.SendText(m.links.Account, m.send), Collapse: hex.EncodeToString(m.send[:])}
	if o := m.content.Push; o != nil {
		n.Image, n.TTL, n.Collapse = o.Image, time.Duration(o.TTLSeconds)*time.Second, cmp.Or(o.Collapse, n.Collapse)
	}
	values := m.values()
	var err error
	for _, f := range []struct {
		dst    *string
		render func(func([]string) (string, bool)) (string, error)
	}{
		{&n.Title, func(v func([]string) (string, bool)) (string, error) { return m.content.SubjectTemplate.Render(v) }},
		{&n.Body, func(v func([]string) (string, bool)) (string, error) { return m.content.TextTemplate.Render(v) }},
		{&n.Link, func(v func([]string) (string, bool)) (string, error) { return m.content.LinkTemplate.Render(v) }},
	} {
		if *f.dst, err = f.render(values); err != nil {
			return nil, err
		}
	}
	switch {
	case len(m.content.Links) == 0 || m.content.NoLinks:
	case m.links.Flow != "":
		n.Link = m.content.Click(len(m.content.Links)-1, m.links, m.send, values)
	default:
		n.Link = m.links.URL(tracking.Click, m.send, len(m.content.Links)-1) // behind those that are kept
	}
	return n, nil
}

// deliver sends to all devices of a profile. It was sent when one device's
// service took it. A repeat replaces what a device has got already, by its
// collapse id.
func (x *pushMedium) deliver(ctx context.Context, m *outgoing) (delivery, error) {
	n, err := m.notification()
	if err != nil {
		return delivery{result: outbox.ResultFailed, reason: err.Error()}, nil
	}
	d := delivery{result: outbox.ResultFailed, reason: "the contact has no device any more"}
	refused := false
	for _, v := range m.profile.Devices {
		d.devices++
		o, err := x.device(ctx, m, n, v)
		if err != nil {
			return d, err
		}
		switch o.Class {
		case outcome.Accepted:
			d.accepted++
			continue
		case outcome.Retired:
			d.retired = append(d.retired, v.Address)
		case outcome.Refused:
			refused = true
		case outcome.Temporary:
			d.err = o.Err()
		case outcome.Ambiguous:
			d.handed = true
		}
		d.reason = v.Kind + ": " + o.Err().Error()
	}
	switch {
	case d.accepted > 0:
		d.result, d.reason, d.err, d.handed = outbox.ResultSent, "", nil, false
	case refused:
		d.result = outbox.ResultRefused
	}
	return d, nil
}

// device sends to one device.
func (x *pushMedium) device(ctx context.Context, m *outgoing, n *push.Notification, v view.Device) (outcome.Result, error) {
	if x.capture != nil {
		kept := capture.Message{
			ID: n.ID + "." + v.Kind + "." + v.ID, Channel: compose.MediumPush, To: v.Address, Subject: n.Title, Body: n.Body, SendID: n.ID, At: m.at,
			Headers: map[string]string{"Device": v.ID, "Kind": v.Kind, "Link": n.Link, "Image": n.Image},
		}
		return m.try(ctx, func(context.Context) outcome.Result { return keep(x.capture, kept) })
	}
	s := x.senders[v.Kind]
	if s == nil {
		return outcome.New(outcome.Refused, "no_credentials", missingPush(v.Kind)), nil
	}
	if err := s.CheckToken(v.Address); err != nil {
		return outcome.Failed(outcome.Permanent, "invalid_token", err), nil
	}
	if pushKinds[v.Kind] == push.KindWeb && compose.IsAppLink(n.Link) {
		// A browser cannot open the app; the message opens the site.
		site := *n
		site.Link, n = "", &site
	}
	if err := s.Check(n); err != nil {
		return outcome.Failed(outcome.Permanent, "invalid_message", err), nil
	}
	return m.try(ctx, func(ctx context.Context) outcome.Result { return s.Send(ctx, v.Address, n) })
}

// PushPlan is whom a push message would go to now.
type PushPlan struct {
	Members   uint64 // of the segment; without one, those with a device
	Reachable uint64 // of them, those with a device who may be sent to, and for whom no merge tag is empty
	Devices   uint64
	// Hole is why the content leaves out a contact who could be reached, "" where it does not.
	Hole string

	// samples are devices whose service can check a message, maxPushSamples at most.
	samples []pushSample
}

// PlanPush works out whom a push message to a segment, or to all with an empty
// id, would go to, and tells what is missing to send it. Those for whom a merge tag of the
// content has no value are not reached. A refusal is a *[resolver.Refusal].
func (d *Dispatcher) PlanPush(ctx context.Context, account uint64, segment string, content campaigns.Content) (plan PushPlan, err error) {
	holes := compose.HolesOf(compose.MediumPush, content)
	kinds := map[string]bool{}
	var list []uint32
	captured := false
	have := map[string]bool{}
	err = d.opts.Node.Read(ctx, account, func(v *resolver.View) error {
		if _, ok := v.Segments().Get(segment); !ok && segment != "" {
			return &resolver.Refusal{Code: "not_found", Field: "segmentId", Message: fmt.Sprintf("segmentId: there is no segment with the id %q", segment)}
		}
		audience, members, live := v.Reach().PushAudience(segment)
		if !live {
			return &resolver.Refusal{Code: "conflict", Field: "segmentId", Message: "segmentId: the segment is still being built; try again when it is live"}
		}
		plan.Members, list = members, audience.ToArray()
		for _, c := range v.Credentials().Of(credentials.Push) {
			have[c.Name] = true
		}
		captured = len(have) == 0 && d.opts.Capture != nil
		return nil
	})
	for err == nil && len(list) > 0 {
		n := min(loadedAtOnce, len(list))
		err = d.opts.Node.Read(ctx, account, func(v *resolver.View) error {
			for _, o := range list[:n] {
				devices, reason, err := v.Reach().PushDevices(v.Profiles().Root(o))
				if err != nil {
					return err
				}
				if reason == "" && holes != nil {
					p, err := v.Profiles().Get(v.Profiles().Root(o))
					if err != nil {
						return err
					}
					reason = holes.Reason(p)
					plan.Hole = cmp.Or(plan.Hole, reason)
				}
				if reason != "" {
					continue
				}
				plan.Reachable++
				plan.Devices += uint64(len(devices))
				for _, x := range devices {
					kinds[x.Kind] = true
					if have[x.Kind] && x.Kind == "fcm" && len(plan.samples) < maxPushSamples {
						plan.samples = append(plan.samples, pushSample{v.Profiles().Root(o), x})
					}
				}
			}
			return nil
		})
		list = list[n:]
	}
	if err != nil {
		return plan, err
	}
	var lacking []string
	for kind := range kinds {
		if !have[kind] && !captured {
			lacking = append(lacking, kind)
		}
	}
	if len(lacking) > 0 {
		slices.Sort(lacking)
		return plan, &resolver.Refusal{Code: "conflict", Message: missingPush(lacking...)}
	}
	return plan, nil
}
