package node

import (
	"fmt"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	var g progress
	for i, x := range []struct {
		after               time.Duration
		checkpoint, at, end int64
		want                string
	}{
		{2 * time.Second, 0, 0, 0, "loading the checkpoint []"},
		{4 * time.Second, 1000, 1000, 5000, "replaying the log [percent 0 at 1000 end 5000]"},
		{6 * time.Second, 1000, 1000, 5000, "replaying the log [percent 0 at 1000 end 5000]"}, // it stands still
		{8 * time.Second, 1000, 2000, 5000, "replaying the log [percent 25 at 2000 end 5000 left 12s]"},
		{12 * time.Second, 1000, 4000, 5000, "replaying the log [percent 75 at 4000 end 5000 left 3s]"},
		{14 * time.Second, 1000, 5000, 5000, "replaying the log [percent 100 at 5000 end 5000]"},
		{16 * time.Second, 1000, 5001, 5000, "replaying the log [percent 100 at 5001 end 5000]"}, // others append
		{18 * time.Second, 7, 7, 7, "replaying the log [percent 100 at 7 end 7]"},
	} {
		text, attrs := g.line(time.Unix(1e9, 0).Add(x.after), x.checkpoint, x.at, x.end)
		if got := fmt.Sprintf("%s %v", text, attrs); got != x.want {
			t.Errorf("line %d: %s, want %s", i, got, x.want)
		}
	}
}
