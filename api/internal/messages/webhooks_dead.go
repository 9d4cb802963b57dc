package messages

import (
	"strconv"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/outbox"
)

// DeadLetter is a delivery that was given up, as it is answered.
type DeadLetter struct {
	Seq       uint64 `json:"seq"`
	WebhookID string `json:"webhook_id"` // the header webhook-id of all its attempts
	Event     string `json:"event"`
	Attempts  int    `json:"attempts"`
	Reason    string `json:"reason"`
	CreatedAt string `json:"created_at"`
	DiedAt    string `json:"died_at"`
}

// listDeadLetters answers GET /webhooks/{id}/dead-letters, in the order in which
// they were given up.
func (a *API) listDeadLetters(c *handler.Call) (any, error) {
	limit, err := c.Limit()
	if err != nil {
		return nil, err
	}
	after, err := c.NumberCursor(paging.DeadLetters)
	if err != nil {
		return nil, err
	}
	list, out := []DeadLetter{}, handler.Page{}
	err = c.Read(func(v *resolver.View) error {
		if _, ok := v.Outbox().Endpoint(c.PathID()); !ok {
			return noWebhook()
		}
		letters, err := v.Outbox().DeadLetters(c.PathID(), after, limit+1)
		if err != nil {
			return err
		}
		if len(letters) > limit {
			letters = letters[:limit]
			out.Next = handler.EncodeNumberCursor(paging.DeadLetters, letters[limit-1].Seq)
		}
		for _, x := range letters {
			list = append(list, DeadLetter{x.Seq, messaging.WebhookID(c.Account, x.Origin), x.Ref, x.Attempt, x.Reason, record.Time(x.CreatedMs), record.Time(x.DiedMs)})
		}
		return nil
	})
	out.Items = list
	return out, err
}

// replayDeadLetters answers POST /webhooks/{id}/dead-letters/replay and
// /dead-letters/{seq}/replay: they are queued again, behind what waits, under the
// same webhook-id.
func (a *API) replayDeadLetters(c *handler.Call) (any, error) {
	args := outbox.WebhookReplay{ID: c.PathID()}
	if text, one := c.UserValue("seq").(string); one {
		seq, err := strconv.ParseUint(text, 10, 64)
		if err != nil || seq == 0 {
			return nil, handler.NotFound("there is no dead letter with this number")
		}
		args.Seq = seq
	}
	total := 0
	for {
		var reply outbox.ReplayReply
		if err := c.Command(outbox.CommandWebhookReplay, args, &reply); err != nil {
			return nil, err
		}
		total += reply.Replayed
		if args.Seq != 0 || reply.Left == 0 || reply.Replayed == 0 {
			return map[string]int{"replayed": total, "left": reply.Left}, nil
		}
	}
}
