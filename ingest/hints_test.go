package ingest

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/eventlog"
)

// TestCompressedBodyWithoutItsHeader: the answer names the header.
func TestCompressedBodyWithoutItsHeader(t *testing.T) {
	t.Parallel()
	d := newDecoder(Limits{}.withDefaults())
	for magic, coding := range map[string]string{"\x1f\x8b\x08\x00": "gzip", "\x28\xb5\x2f\xfd\x00": "zstd"} {
		for _, refused := range []*requestError{
			d.single([]byte(magic), testNow.UnixMilli()), d.batch([]byte(magic), eventlog.KindEvents, testNow.UnixMilli()),
		} {
			if refused == nil || refused.status != 400 || !strings.Contains(refused.text, "set Content-Encoding: "+coding) {
				t.Errorf("%s: %+v", coding, refused)
			}
		}
	}
}

// TestUnknownFieldsAreIgnoredWhereTheSettingSaysSo names what was meant, else.
func TestUnknownFieldsAreIgnoredWhereTheSettingSaysSo(t *testing.T) {
	t.Parallel()
	d := newDecoder(Limits{}.withDefaults())
	for _, ignore := range []bool{false, true} {
		d.IgnoreUnknown(ignore)
		err := d.single([]byte(`{"event_type":"a","user":{"phone":"1"},"propertys":{}}`), testNow.UnixMilli())
		if err != nil || (d.events == 1) != ignore {
			t.Errorf("ignore %v: %v, %d events, %s", ignore, err, d.events, d.texts)
		}
	}
	for name, field := range map[string]string{
		"propertys": "properties", "Properties": "properties", "eventType": "event_type", "event": "event_type", "usr": "user", "timestmp": "timestamp",
		"idempotency-key": "idempotency_key", "userId": "user.external_id", "v": "", "context": "", strings.Repeat("x", 1000): "",
	} {
		if got := suggestion(name); got != field {
			t.Errorf("%.40s: %q, expected %q", name, got, field)
		}
	}
}
