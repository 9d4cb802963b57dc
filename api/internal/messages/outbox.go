package messages

import (
	"encoding/binary"
	"net/http"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/compose"
)

// Captured are the messages that development senders kept: a [*capture.Store].
type Captured interface {
	List(f capture.Filter, limit int, cursor uint64) (page []capture.Message, next uint64, err error)
}

// outboxLooks is how many pages of all accounts' messages one call looks through
// for its own.
const outboxLooks = 20

// listOutbox answers GET /outbox: captured messages, the newest first, by
// channel and to. The store is one for all accounts; a message is of the account
// that its id names (R2).
func (a *API) listOutbox(c *handler.Call) (any, error) {
	if a.opts.Captured == nil {
		return nil, &handler.Problem{Status: http.StatusNotFound, Message: "this server captures no messages: all of its senders are configured"}
	}
	limit, err := c.Limit()
	if err != nil {
		return nil, err
	}
	cursor := uint64(0)
	if b, err := c.Cursor(paging.Outbox, 8); err != nil {
		return nil, err
	} else if b != nil {
		cursor = binary.LittleEndian.Uint64(b)
	}
	f := capture.Filter{Channel: string(c.QueryArgs().Peek("channel")), To: string(c.QueryArgs().Peek("to"))}
	out := []capture.Message{}
	var room paging.Room
	for range outboxLooks {
		list, next, err := a.opts.Captured.List(f, min(limit, capture.DefaultPage), cursor)
		if err != nil {
			return nil, err
		}
		for i, m := range list {
			account, _, ok := compose.ParseSend(m.SendID)
			ours := ok && account == c.Account
			if ours && !room.Take(&list[i]) {
				return handler.Page{Items: out, Next: outboxCursor(cursor)}, nil
			}
			cursor = m.Seq
			if ours {
				if out = append(out, m); len(out) == limit {
					if i == len(list)-1 && next == 0 {
						cursor = 0
					}
					return handler.Page{Items: out, Next: outboxCursor(cursor)}, nil
				}
			}
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	return handler.Page{Items: out, Next: outboxCursor(cursor)}, nil
}

func outboxCursor(seq uint64) string {
	if seq == 0 {
		return ""
	}
	return paging.Encode(paging.Outbox, binary.LittleEndian.AppendUint64(nil, seq))
}
