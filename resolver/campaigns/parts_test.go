package campaigns

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/must"
)

// fill sets every field to something that is not its zero value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fill(f)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.Zero(v.Type().Key()), reflect.Zero(v.Type().Elem()))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	}
}

// keysOf lists the keys of an object's JSON, in order.
func keysOf(t *testing.T, v any) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(must.JSON(v)))
	var keys []string
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key.(string))
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
	}
	return strings.Join(keys, " ")
}

// TestPartsKeepTheOrderOfKeys: logs, checkpoints and the state's hash have campaigns and
// runs as JSON, whatever parts their structs are made of.
func TestPartsKeepTheOrderOfKeys(t *testing.T) {
	for _, c := range []struct {
		of   any
		want string
	}{
		{new(Campaign), "id number name channel type date subject body sender sender_name reply_to template_id list_ids segment_ids local_time rate ignore_sending_limits link service whatsapp track_links push in_app channels created_ms updated_ms one_off body_bytes dated scheduled_ms due schedule_error"},
		{new(Run), "id run status list_ids segment_ids template_source template_id batch_size delay_ms started_ms finished_ms resumed total sent failed skipped errors anonymous_errors ab variants returned members opens clicks by_link accepted retired devices variant_of channels by_channel past wall_ms held wake_ms woken next_us links own_clicks content_bytes link_bytes"},
		{new(PastRun), "run status list_ids segment_ids template_source template_id started_ms finished_ms total sent failed skipped errors anonymous_errors bounced"},
		{new(Start), "id list_ids segment_ids template_source template_id batch_size delay_ms variants ab channels everybody devices scheduled_ms counts_sent kept_links if_version"},
	} {
		fill(reflect.ValueOf(c.of).Elem())
		if got := keysOf(t, c.of); got != c.want {
			t.Errorf("%T:\n have %s\n want %s", c.of, got, c.want)
		}
	}
}

// TestPaceHolds: the instants at which people are looked at again are kept once and in
// order, and readers of the run keep the ones that they have.
func TestPaceHolds(t *testing.T) {
	var p PacingState
	for _, at := range []int64{30, 10, 30, 20} {
		p.hold(at)
	}
	read, first := p.Held, slices.Clone(p.Held)
	p.hold(5)
	if at, ok := p.release(9); !ok || at != 5 {
		t.Errorf("released %d, %v, want 5", at, ok)
	}
	for _, want := range []int64{10, 20} {
		if at, ok := p.release(29); !ok || at != want {
			t.Errorf("released %d, %v, want %d", at, ok, want)
		}
	}
	if at, ok := p.release(29); ok {
		t.Errorf("released %d before its time", at)
	}
	p.hold(15)
	if !slices.Equal(read, first) || !reflect.DeepEqual(p.Held, []int64{15, 30}) {
		t.Errorf("a reader has %v, the run %v", read, p.Held)
	}
}

// TestResponsesGrow: counts by link and by variant are made when they are needed, and
// variants that there are not are counted at the ends.
func TestResponsesGrow(t *testing.T) {
	var x Responses
	x.click(2, 3)
	x.click(0, 2)
	x.ofVariant(1).Opened++
	x.ofVariant(-1).Opened++
	x.ofVariant(1000).Opened++
	if !reflect.DeepEqual(x.ByLink, []uint64{1, 0, 1}) || len(x.VariantOf) != maxVariants+1 || x.VariantOf[0].Opened != 1 || x.VariantOf[1].Opened != 1 {
		t.Errorf("clicks %v, variants %v", x.ByLink, x.VariantOf)
	}
}

// TestClicksMove: clicks stay with their links where a later run has more of them, also those of
// variants that it has not. Before links were kept, those of an A/B test were counted together.
func TestClicksMove(t *testing.T) {
	run := func(own bool, clicks []uint64, links ...int) *Run {
		return &Run{Stored: Stored{Links: links, OwnClicks: own}, Responses: Responses{ByLink: clicks}}
	}
	for _, c := range []struct {
		old, new *Run
		want     []uint64
	}{
		{run(true, []uint64{1, 2, 3}, 2, 1), run(true, nil, 3, 1), []uint64{1, 2, 0, 3}},
		{run(true, []uint64{1}, 2, 1), run(true, nil, 2, 1), []uint64{1}},
		{run(true, []uint64{1}, 2, 1), run(true, nil, 3, 2), []uint64{1, 0, 0, 0, 0}},
		{run(false, []uint64{4, 5}, 2, 2), run(true, nil, 2, 2), []uint64{4, 5, 0, 0}},
		{run(false, []uint64{4, 5}, 2), run(false, nil, 1), []uint64{4, 5}},
	} {
		if got := c.new.moveClicks(c.old); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v to %+v: %v, want %v", c.old.Stored, c.new.Stored, got, c.want)
		}
	}
	if r := run(true, nil, 2, 1); r.LinksBefore(1) != 2 || r.LinksBefore(0) != 0 {
		t.Errorf("the second variant's links begin at %d", r.LinksBefore(1))
	}
}
