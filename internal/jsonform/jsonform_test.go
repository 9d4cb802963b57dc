package jsonform

import "testing"

func TestPaths(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Join("", "a"), "a"},
		{Join("a", "b_1"), "a.b_1"},
		{Join("a", "b c"), `a["b c"]`},
		{Join("", ""), `[""]`},
		{Index("a.b", 3), "a.b[3]"},
		{Below("a", "b"), "a.b"},
		{Below("a", "[0].b"), "a[0].b"},
		{Below("", "b"), "b"},
		{Below("a", ""), "a"},
		{Choice([]string{"a", "b", "c"}), "a, b, c"},
		{List([]string{"a", "b", "c"}), "a, b and c"},
	} {
		if c.got != c.want {
			t.Errorf("%s, not %s", c.got, c.want)
		}
	}
}

func TestInteger(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "-7": -7, "2e1": 20, "30.0": 30, "-0": 0} {
		if n, err := Integer("a", []byte(text), -7, 30); err != nil || n != want {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
	for text, want := range map[string]string{
		"31": "a must be a whole number from -7 to 30", "1.5": "a must be a whole number from -7 to 30",
		"-8": "a must be a whole number from -7 to 30", "1e999": "a must be a number that fits 64-bit floating point",
		`"1"`: "a must be a number, not a string", "null": "a must be a number, not null",
	} {
		if n, err := Integer("a", []byte(text), -7, 30); err == nil || err.Error() != want {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
}

func TestObject(t *testing.T) {
	o, err := ReadObject("x", []byte(`{"a":null,"b":"text","c":true}`))
	if err != nil {
		t.Fatal(err)
	}
	if o.Given("a") != nil || o.Get("a") == nil || o.Given("z") != nil || string(o.Given("b")) != `"text"` || o.Len() != 3 {
		t.Error("what is given")
	}
	if err := o.Only("it", "a", "b"); err == nil || err.Error() != "x.c must not be given: it has the fields a and b" {
		t.Error(err)
	}
	if _, err := ReadObject("x", []byte(`{"a":1,"\u0061":2}`)); err == nil || err.Error() != "x.a must be given only once" {
		t.Error(err)
	}
}
