package messaging_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/node"
)

// fullLog is a log whose disk has no room for the commands that are listed, each once.
type fullLog struct {
	eventlog.Log
	mu   sync.Mutex
	full []string
}

func (l *fullLog) Append(ctx context.Context, partition int, data []byte) (int64, error) {
	if _, body, err := eventlog.DecodeEnvelope(data); err == nil {
		if name, _, err := eventlog.DecodeCommand(body); err == nil && l.refuses(string(name)) {
			return 0, eventlog.ErrNoSpace
		}
	}
	return l.Log.Append(ctx, partition, data)
}

func (l *fullLog) refuses(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.full, name)
	if i >= 0 {
		l.full = slices.Delete(l.full, i, i+1)
	}
	return i >= 0
}

// behind opens the world's node anew, behind what wraps its log: servertest.StartNode opens its own.
func (w *world) behind(wrap func(eventlog.Log) eventlog.Log) {
	w.t.Helper()
	w.close()
	files, err := file.Open("log", file.Options{FS: w.fs, Partitions: 1})
	ok(w.t, err)
	w.node, err = node.Open(w.t.Context(), node.Options{FS: w.fs, Dir: "state", Log: wrap(files), History: w.history, Now: w.Now, Rand: rand.Reader, Feed: node.FeedOptions{Delay: time.Hour}})
	ok(w.t, err)
	w.close = func() { ok(w.t, errors.Join(w.node.Close(context.Background()), files.Close())) }
}

// TestCampaignsOutlastAnOverload: a node alone continues by itself with a campaign for whose
// commands its log had no room for a moment, and does not say that it was stopped.
func TestCampaignsOutlastAnOverload(t *testing.T) {
	t.Parallel()
	const people = 3
	for name, c := range map[string]struct {
		full  []string
		relay outcome.Result
		sent  uint64
	}{
		"claim":                      {[]string{campaigns.CommandBatch}, takes, people},
		"end":                        {[]string{campaigns.CommandFinish}, takes, people},
		"claim, and what reports it": {[]string{campaigns.CommandBatch, campaigns.CommandFinish}, takes, people},
		"claim again":                {[]string{campaigns.CommandBatch, campaigns.CommandResume, campaigns.CommandBatch}, takes, people},
		"end of one that must stop":  {[]string{campaigns.CommandFinish}, later, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newMailing(t, people, 6000)
			x.relay = func(int, int) outcome.Result { return c.relay }
			log := new(fullLog)
			x.behind(func(files eventlog.Log) eventlog.Log { log.Log = files; return log })
			d := x.dispatcher(nil)
			defer d.Close()
			log.full = c.full
			if r, err := x.sendBy(d); !errors.Is(err, messaging.ErrSendContinues) {
				t.Errorf("the request is answered %v, the run is %+v", err, r)
			}
			var r campaigns.Run
			x.until("the run is over", func(v *resolver.View) bool {
				r, _ = v.Campaigns().Run(x.campaign.ID)
				return !r.Busy()
			})
			if r.Status != campaigns.RunDone || r.Sent != c.sent || len(log.full) > 0 {
				t.Errorf("the run is %+v, %v still to be refused", r, log.full)
			}
		})
	}
}
