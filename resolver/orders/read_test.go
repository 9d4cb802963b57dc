package orders

import (
	"encoding/json"
	"math/big"
	"strconv"
	"testing"
)

// older marks a kind that is read under rules before 25.
const older Kind = 1 << 7

// FuzzRead: whatever the properties are, what is read is within bounds, and what stays of it in a
// redacted record reads as the same order.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		`{"order_id":"1","total":59.97,"currency":"eur","items":[{"product_id":"p","name":"n","quantity":2,"price":3.5}]}`,
		`{"order_id":"1","total":99999999999.99998,"currency":"EUR"}`, `{"order_id":"1","amount":99999999999.9999}`, `{"order_id":"1","amount":1e-9}`, `{"order_id":"1"}`, `{"cart_id":"c","items":[],"total":0}`, `{"order_id":"\u0000k"}`, `{"order_id":"1","total":1,"currency":"QQQ"}`, `{"order_id":"1","total":1,"currency":"EUR","items":[{"quantity":-1}]}`, `{"order_id":"1","total":1,"currency":"EUR","items":[{"quantity":1e11}]}`, `{"order_id":1}`, `{"total":1e300}`, `[]`, ``, `null`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, kind := range []Kind{Placed, Refunded, CartUpdated, Placed | older, Refunded | older, CartUpdated | older} {
			rules := rulesCarts
			if kind&older != 0 {
				kind, rules = kind&^older, rulesCarts-1
			}
			x, problem := Read(kind, raw, false, rules)
			if problem != Fine {
				if problem != bad[kind] && (rules < rulesProblems || kind == Refunded || problem < BadTotal) || problem.Warning() == "" || x.Kind != None {
					t.Fatalf("%+v %d", x, problem)
				}
				mask := func(id string) string { return "\x00k" + id[:min(len(id), 5)] }
				id, named := PlacedID(raw, false)
				if masked := Mask(kind, raw, false, mask); (masked != nil) != (kind == Placed && named) {
					t.Fatalf("%s is left of %s", masked, raw)
				} else if masked != nil {
					if got, ok := PlacedID(masked, true); !ok || got != mask(id) {
						t.Fatalf("%s is left of %s", masked, raw)
					}
					if _, problem := Read(kind, masked, true, rules); problem == Fine {
						t.Fatalf("%s is an order", masked)
					}
				}
				continue
			}
			if x.Kind != kind || len(x.ID) > MaxIDBytes || len(x.Items) > MaxItems || x.Count < len(x.Items) || x.Total < 0 || x.Total >= maxAmount*unit || x.Refund >= maxAmount*unit || x.Refund < 0 || kind == Placed && (x.ID == "" || len(x.Currency) != 3) {
				t.Fatalf("%+v", x)
			}
			masked := Mask(kind, raw, false, func(id string) string { return "\x00k" + id[:min(len(id), 5)] })
			if kind == CartUpdated {
				if masked != nil {
					t.Fatalf("%s is left of a cart", masked)
				}
				continue
			}
			y, problem := Read(kind, masked, true, rules)
			if problem != Fine || y.Total != x.Total || y.Currency != x.Currency || y.Refund != x.Refund || y.Whole != x.Whole {
				t.Fatalf("%s is %+v, %s is left: %+v", raw, x, masked, y)
			}
			if again := Mask(kind, masked, true, nil); string(again) != string(masked) {
				t.Fatalf("%s, then %s", masked, again)
			}
		}
	})
}

// TestAmounts: amounts are the shortest decimals of numbers, rounded half to even, and read back
// from what they are written as.
func TestAmounts(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0.00", "59.970000000000006": "59.97", "0.1": "0.10", "1.23456": "1.2346", "0.00005": "0.00", "0.00015": "0.0002", "99999999999.99": "99999999999.99", "99999999999.9999": "99999999999.9999",
		"1e-300": "0.00", "12": "12.00", "1.5e3": "1500.00",
	} {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		a, ok := amountOf(f)
		if !ok || a.String() != want {
			t.Errorf("%s is %s, want %s", text, a, want)
		}
		back, err := a.Number().Float64()
		if again, ok := amountOf(back); err != nil || !ok || again != a {
			t.Errorf("%s is written as %s, and reads back as %s", a, a.Number(), again)
		}
		if b, err := json.Marshal(map[string]any{"n": (-a).Number()}); err != nil || !json.Valid(b) {
			t.Errorf("%s: %v", b, err)
		}
	}
	for _, bad := range []float64{-0.01, 99999999999.99998, 1e11, 1e300} {
		if _, ok := amountOf(bad); ok {
			t.Errorf("%v is an amount", bad)
		}
	}
	if got := Amount(100_000).Over(3); got != 33_333 || Amount(5).Over(0) != 0 || (-Amount(59_970)).String() != "-5.997" {
		t.Error(got)
	}
	if n := halfEven(big.NewInt(5), big.NewInt(2)); n != 2 {
		t.Error(n)
	}
}

// FuzzList: what is not a list of orders is reported, and a list is written as it was
// read.
func FuzzList(f *testing.F) {
	f.Add([]byte{listVersion})
	f.Add(append([]byte{listVersion}, make([]byte, entryBytes)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := decodeList(b)
		if err != nil {
			return
		}
		if len(b) > 1 && string(encodeList(list)) != string(b) {
			t.Fatalf("%x is written as %x", b, encodeList(list))
		}
	})
}
