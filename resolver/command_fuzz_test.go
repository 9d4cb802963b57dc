package resolver

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/emaildir"
)

// FuzzCommands feeds arbitrary arguments to every command: it may refuse them,
// never panic (L3), or every start would stop at the record.
func FuzzCommands(f *testing.F) {
	names := append(slices.Sorted(maps.Keys(commandTable)), slices.Sorted(maps.Keys(emaildir.Commands))...)
	long := strings.Repeat("a", 64)
	seeds := 0
	for i := range names {
		for _, v := range []string{`""`, `"` + long + `"`, "9223372036854775807", "[null]", `[{}]`} {
			// Whatever fields the arguments have, most are among these.
			for _, fields := range [][]string{
				{"hash", "value"}, {"id", "email", "phone", "external_id", "list_id"}, {"profile", "device", "kind", "address"}, {"send", "profile", "channel", "key", "link"},
				{"seq", "attempt", "result", "delay_ms"}, {"id", "run", "variants", "ab", "batch_size"}, {"actor_id", "permissions", "password_hash", "admin", "email"},
				{"up_to", "definition", "template_id", "list_ids", "segment_ids"}, {"group", "name", "config"}, {"uses", "key_id"}, {"url", "events", "status", "secret"},
				{"epoch", "items", "ids"},
			} {
				if seeds++; seeds%testlevel.Count(7, 1) != 0 {
					continue
				}
				parts := []string{}
				for _, n := range fields {
					parts = append(parts, `"`+n+`":`+v)
				}
				f.Add(uint8(i), []byte("{"+strings.Join(parts, ",")+"}"))
			}
		}
	}
	f.Fuzz(func(t *testing.T, at uint8, args []byte) {
		r := newRecorder(t, DefaultSettings())
		env := r.envelope(eventlog.KindCommand)
		var rows query.Batch
		name := names[int(at)%len(names)]
		_ = r.m.Apply(r.m.next, eventlog.AppendCommand(env.Append(nil), name, args), &rows, &r.out)
	})
}
