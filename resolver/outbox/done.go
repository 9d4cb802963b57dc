package outbox

import (
	"encoding/json"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// What became of a message. Temporary faults are the dispatcher's to try again;
// it reports the last one.
const (
	ResultSent    = "sent"    // a provider took responsibility
	ResultFailed  = "failed"  // this message will not reach this recipient
	ResultBounced = "bounced" // the same, because the address does not exist
	ResultRefused = "refused" // the provider refuses the account: all others would fail alike
	// ResultRetry: it did not work this time; the item is due again after DelayMs.
	ResultRetry = "retry"
	// ResultGone: the receiver of a webhook wants no more; the endpoint stops.
	ResultGone = "gone"
	// ResultMoot: there is no reason any more to carry it out. Nothing is
	// recorded, and what it cost is given back.
	ResultMoot = "moot"
)

// Done reports one attempt to send an item.
type Done struct {
	Seq uint64 `json:"seq"`
	// Attempt is the item's when the attempt began: what reports another one
	// changes nothing.
	Attempt int    `json:"attempt"`
	Result  string `json:"result"`
	Reason  string `json:"reason,omitempty"`
	// Handed says that a message that failed went out in full and may have been
	// taken: the answer was lost.
	Handed bool `json:"handed,omitempty"`
	// Unreachable says that a message of a flow failed for good and did not go out: where
	// its step has further channels, the next one is tried.
	Unreachable bool `json:"unreachable,omitempty"`
	// Retired are addresses of the person's devices that are dead, for push.
	Retired []string `json:"retired,omitempty"`
	// DelayMs is how long to wait before the next attempt. The dispatcher draws
	// it: Apply has no randomness.
	DelayMs int64 `json:"delay_ms,omitempty"`
	// ProviderID is the provider's own id of the message.
	ProviderID string `json:"provider_id,omitempty"`
	// Epoch is the one under which the item was claimed. When it is over, only that
	// something was sent is taken note of.
	Epoch uint64 `json:"epoch,omitempty"`
	// Ordinal and ItemName are the item's. They say which it is where its number is
	// another's in a replay.
	Ordinal uint32 `json:"ordinal,omitempty"`
	ItemName
	// InApp is an in-app message that was sent, a card.Card as JSON.
	InApp json.RawMessage `json:"in_app,omitempty"`
	// Log is what the log of deliveries keeps of the attempt, nil for nothing.
	Log *DeliveryAnswer `json:"log,omitempty"`
}

// Retry makes an item due again after a delay.
func (s *State) Retry(tx *feature.Tx, it *Item, c *Done) {
	it.Attempt++
	it.Handed = it.Handed || c.Handed && it.Flow != ""
	s.postpone(it, tx.AtMs+min(max(c.DelayMs, 0), maxDelay))
	s.saveItem(it)
}

// DoneWebhook notes what became of a webhook, and how its endpoint does.
func (s *State) DoneWebhook(tx *feature.Tx, it *Item, c *Done) *refuse.Refusal {
	e := s.endpoints[it.Endpoint]
	if e == nil {
		s.Remove(it) // the endpoint was deleted meanwhile
		return nil
	}
	switch c.Result {
	case ResultSent:
		s.unqueue(it, s.logDelivery(tx, it, c, DeliveryDelivered, 0))
		e.Delivered++
		e.Failing, e.LastError, e.LastDeliveredMs = 0, "", tx.AtMs
		s.touchEndpoint(e)
		return nil
	case ResultMoot:
		s.Remove(it)
		if x := s.line(it.Endpoint, it.Origin); x != nil {
			s.forgetDelivery(it.Endpoint, x, true)
		}
		return nil
	case ResultRetry:
		s.Retry(tx, it, c)
		s.logDelivery(tx, it, c, DeliveryWaiting, 0)
	case ResultFailed, ResultRefused:
		s.logDelivery(tx, it, c, DeliveryFailed, s.die(tx, it, c.Reason))
	case ResultGone:
		s.logDelivery(tx, it, c, DeliveryFailed, s.die(tx, it, c.Reason))
		e.Status = EndpointGone
		s.setLane(e)
		s.refreshActive(tx)
	default:
		return refuse.Invalid("result", "result Input should be sent, failed, refused, gone, retry or moot")
	}
	e.Failures++
	e.Failing++
	e.LastError, e.LastFailedMs = c.Reason, tx.AtMs
	s.touchEndpoint(e)
	return nil
}
