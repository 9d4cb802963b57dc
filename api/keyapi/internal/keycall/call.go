package keycall

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/audit"
)

// HistoryTimeout bounds a call that asks history.
const HistoryTimeout = 30 * time.Second

// State is what calls ask of the state machine: a [*node.Node].
type State interface {
	Read(ctx context.Context, account uint64, fn func(*resolver.View) error) error
	CommandBy(ctx context.Context, account uint64, name string, args any, by audit.Author) ([]byte, error)
	WaitHistory(ctx context.Context, cut query.Cut) error
}

// History is what calls ask of the store of resolved events: a [query.History].
type History interface {
	Series(ctx context.Context, q query.SeriesQuery) ([]query.SeriesRow, error)
	Deeds(ctx context.Context, q query.DeedsQuery) ([]query.Deed, error)
	Moves(ctx context.Context, q query.MovesQuery) ([]query.MovesRow, error)
	Timeline(ctx context.Context, q query.TimelineQuery) ([]query.TimelineEntry, error)
}

// Backend is what all calls use.
type Backend struct {
	Node State
	// History is nil where the server keeps none.
	History History
	// Memory is what bodies and large answers are taken from.
	Memory *ingest.Memory
	// BodyBytes is the longest body of a request.
	BodyBytes int
}

// Call is one request of a key that is let in.
type Call struct {
	*fasthttp.RequestCtx
	Backend *Backend
	// Ctx ends with the request's time.
	Ctx context.Context
	Key resolver.KeyAccess
	// UserID is the signed-in person, "" where a key makes the call.
	UserID string
	// Self is the e-mail of the signed-in user, "" for an API key.
	Self string
	// Params are the texts in place of the parts of the path in braces.
	Params map[string]string
	Now    time.Time // when the request came
	Op     *operation.Operation
	// Payload is the body without white space around it, empty where there is none.
	Payload []byte
}

// Read takes the barrier and runs fn on the state of the key's account.
func (c *Call) Read(fn func(*resolver.View) error) error {
	return c.Backend.Node.Read(c.Ctx, c.Key.Account, fn)
}

// Param is the text in place of the part of the path in braces.
func (c *Call) Param(name string) string { return c.Params[name] }

// Cut takes the barrier, lets fn read the state, and waits until history has
// all that the state has.
func (c *Call) Cut(fn func(*resolver.View) error) (cut query.Cut, err error) {
	if c.Backend.History == nil {
		return cut, FailWith(CodeUnavailable, "The server keeps no history to answer from.")
	}
	err = c.Read(func(v *resolver.View) error {
		cut = v.Cut()
		if fn == nil {
			return nil
		}
		return fn(v)
	})
	if err != nil {
		return cut, err
	}
	return cut, c.Backend.Node.WaitHistory(c.Ctx, cut)
}

// Limit reads the query's limit.
func (c *Call) Limit() (int, error) {
	absent, most := c.Op.Page()
	n, ok := paging.Number(c.QueryArgs().Peek("limit"), 1, most, absent)
	if !ok {
		return 0, Fail("limit Input should be a whole number from 1 to %d", most)
	}
	return n, nil
}

// By is who makes the call, for the audit log.
func (c *Call) By() audit.Author {
	if c.UserID != "" {
		return audit.Author{Kind: audit.ByUser, ID: c.UserID}
	}
	return audit.Author{Kind: audit.ByKey, ID: c.Key.KeyID}
}

// Command runs a command of the key's account and reads its reply into v, which
// may be nil.
func (c *Call) Command(name string, args, v any) error {
	b, err := c.Backend.Node.CommandBy(c.Ctx, c.Key.Account, name, args, c.By())
	if err != nil || v == nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("reply to %s: %w", name, err)
	}
	return nil
}
