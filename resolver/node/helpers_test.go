package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/fake"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

const testAccount = 7

func testBootstrap(s resolver.Settings) resolver.Bootstrap {
	return resolver.Bootstrap{
		ApplyVersion: resolver.ApplyVersion, Company: resolver.Company{ID: "com_1", Name: "Test"},
		HashKey: hex.EncodeToString(make([]byte, 16)), SecretHash: hex.EncodeToString(make([]byte, 32)),
		Settings: s, User: access.User{ID: "usr_1", Email: "a@b.c"}, APIKey: access.APIKey{ID: "key_1"},
	}
}

// testMachine is an empty machine.
func testMachine(t testing.TB) *resolver.Machine {
	t.Helper()
	c := &checkpoint.Dir{FS: vfs.NewMem(), Root: "fresh"}
	if err := errors.Join(c.FS.MkdirAll(c.Root, 0o755), c.Prepare()); err != nil {
		t.Fatal(err)
	}
	m, err := resolver.LoadCheckpoint(c, checkpoint.Manifest{}, nil, 1<<20, discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// replay applies the log below next to an empty machine.
func replay(t *testing.T, log eventlog.Log, next int64) (*resolver.Machine, map[int64][]resolver.EventOutcome) {
	t.Helper()
	m := testMachine(t)
	r, err := log.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	answers := map[int64][]resolver.EventOutcome{}
	var out resolver.Outcome
	var rows query.Batch
	for m.Next() < next {
		e, err := r.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Apply(e.Offset, e.Data, &rows, &out); err != nil {
			t.Fatal(err)
		}
		answers[e.Offset] = slices.Clone(out.Events)
	}
	return m, answers
}

func hashOf(t testing.TB, m *resolver.Machine) string {
	t.Helper()
	sum, err := m.Hash()
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// stop closes a node and its log, and does not wait for history.
func stop(n *Node, log *file.Log) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_ = n.Close(ctx)
	_ = log.Close()
}

// waitHistory waits until history holds what the cut may see, also while it is being
// rebuilt.
func waitHistory(t *testing.T, n *Node, cut query.Cut) (err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
	defer cancel()
	eventually.Holds(t, "history is there and not being rebuilt", func() bool {
		err = n.WaitHistory(ctx, cut)
		rebuilding := slices.ContainsFunc(n.Stats(), func(s Stats) bool { return s.HistoryRebuilding })
		return !rebuilding && !errors.Is(err, query.ErrUnavailable) || ctx.Err() != nil
	})
	return err
}

// randomSegmentCommand creates, changes or deletes a segment.
func randomSegmentCommand(rng *rand.Rand, n *Node) {
	ctx := context.Background()
	var ids, lists []string
	_ = n.Read(ctx, testAccount, func(v *resolver.View) error {
		for _, s := range v.Segments().All() {
			ids = append(ids, s.ID)
		}
		for _, l := range v.Contacts().Lists() {
			lists = append(lists, l.ID)
		}
		return nil
	})
	d := fake.RandomDefinition(rng, ids, lists)
	switch k := rng.IntN(10); {
	case k < 5 && len(ids) < 8 || len(ids) == 0:
		_, _ = n.Command(ctx, testAccount, resolver.CommandSegmentCreate, resolver.SegmentSave{Name: "s", Definition: json.RawMessage(d)})
	case k < 8:
		_, _ = n.Command(ctx, testAccount, resolver.CommandSegmentUpdate, resolver.SegmentSave{ID: ids[rng.IntN(len(ids))], Name: "t", Definition: json.RawMessage(d)})
	default:
		_, _ = n.Command(ctx, testAccount, resolver.CommandSegmentDelete, resolver.SegmentDelete{ID: ids[rng.IntN(len(ids))]})
	}
}

const secondAccount = 8

func textHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// accessBootstrap makes an account whose owner may make users and keys.
func accessBootstrap() resolver.Bootstrap {
	b := testBootstrap(resolver.DefaultSettings())
	b.User.Permissions = []string{"users:write", "api_keys:write", "segments:read", "segments:write"}
	b.APIKey = access.APIKey{ID: "key_1", Hash: textHash("key 1"), Permissions: []string{"segments:read", "segments:write"}}
	return b
}

func newUser(actor, email string, permissions ...string) access.UserSave {
	hash := "hash of " + email
	return access.UserSave{ActorID: actor, Email: &email, PasswordHash: &hash, Permissions: &permissions}
}
