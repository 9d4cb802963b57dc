package file

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/logtest"
)

func TestContractL1(t *testing.T) {
	t.Parallel()
	logtest.Run(t, func(t *testing.T) func(logtest.Options) eventlog.Log {
		opts := smallOptions(vfs.NewMem())
		opts.SegmentBytes = 64 << 10
		return func(o logtest.Options) eventlog.Log {
			opts.Partitions = o.Partitions
			if o.MaxRecordBytes > 0 {
				opts.MaxRecordBytes = o.MaxRecordBytes
			}
			return mustOpen(t, "log", opts)
		}
	})
}
