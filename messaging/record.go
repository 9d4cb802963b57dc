package messaging

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/node"
)

// record runs a command that says what has happened. The state may be too busy
// for a moment; what has happened is not given up. reply is the command's.
func record(ctx context.Context, n *node.Node, sleep func(context.Context, time.Duration) error, account uint64, name string, args any) (reply []byte, err error) {
	for {
		reply, err = n.Command(ctx, account, name, args)
		if !errors.Is(err, resolver.ErrOverloaded) {
			return reply, err
		}
		if err := sleep(ctx, firstPause); err != nil {
			return nil, err
		}
	}
}

// SourceProvider is the source of consents that people withdrew at the provider.
const SourceProvider = "provider"

// optOut withdraws the consent of a recipient who told the provider to be sent
// nothing more. Told again of the same message, which a crash may bring about, it
// changes nothing.
func optOut(ctx context.Context, n *node.Node, sleep func(context.Context, time.Duration) error, account uint64, r messages.EngagementRecord) error {
	r.Kind, r.Source, r.Key = messages.EngagementUnsubscribed, SourceProvider, "opt-out/"+compose.SendText(account, r.Send)
	_, err := record(ctx, n, sleep, account, messages.CommandEngagement, r)
	var refusal *resolver.Refusal
	if errors.As(err, &refusal) {
		return nil // an erased profile has no consent
	}
	return err
}

func decode(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("reply of the state machine: %w", err)
	}
	return nil
}
