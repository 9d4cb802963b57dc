package baseline

import "github.com/valyala/fastjson"

// totals is what a visit has seen. It keeps the visit from being optimised
// away.
type totals struct {
	fields int
	bytes  int // of keys and strings
	sum    float64
}

func (t *totals) add(o totals) {
	t.fields += o.fields
	t.bytes += o.bytes
	t.sum += o.sum
}

// visit reads every key and every scalar below v.
func visit(v *fastjson.Value) totals {
	var t totals
	switch v.Type() {
	case fastjson.TypeObject:
		v.GetObject().Visit(func(key []byte, child *fastjson.Value) {
			t.fields++
			t.bytes += len(key)
			t.add(visit(child))
		})
	case fastjson.TypeArray:
		for _, child := range v.GetArray() {
			t.add(visit(child))
		}
	case fastjson.TypeString:
		t.bytes += len(v.GetStringBytes())
	case fastjson.TypeNumber:
		t.sum += v.GetFloat64()
	}
	return t
}
