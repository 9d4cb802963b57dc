package password

import (
	"bytes"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
)

var cheap = Params{MemoryKiB: 64, Iterations: 1, Lanes: 1}

func TestVerify(t *testing.T) {
	h, err := Hash(rand.Reader, "correct horse", cheap)
	if err != nil {
		t.Fatal(err)
	}
	for password, want := range map[string]bool{"correct horse": true, "correct horse ": false, "": false, "Correct horse": false} {
		if ok, err := Verify(h, password); err != nil || ok != want {
			t.Errorf("%q: %v, %v", password, ok, err)
		}
	}
	again, err := Hash(rand.Reader, "correct horse", cheap)
	if err != nil || again == h {
		t.Errorf("two hashes of one password are equal: the salt is not random (%v)", err)
	}
	if strings.Contains(h, "correct") {
		t.Error("the hash holds the password")
	}
}

// TestKnownHash holds the text form still: hashes made before must verify.
func TestKnownHash(t *testing.T) {
	h, err := Hash(bytes.NewReader(make([]byte, saltBytes)), "pw", cheap)
	if err != nil {
		t.Fatal(err)
	}
	const want = "$argon2id$v=19$m=64,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$"
	if !strings.HasPrefix(h, want) {
		t.Errorf("have %s, want it to begin with %s", h, want)
	}
}

func TestVerifyRefusesForms(t *testing.T) {
	good, err := Hash(rand.Reader, "pw", cheap)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []string{
		"", "pw", "$argon2i$v=19$m=64,t=1,p=1$AAAA$AAAA", "$argon2id$v=18" + good[len("$argon2id$v=19"):],
		strings.Replace(good, "m=64", "m=4294967295", 1), strings.Replace(good, "t=1", "t=0", 1), strings.Replace(good, "p=1", "p=0", 1),
		good[:len(good)-30], strings.TrimRight(good, "$") + "$x", good[:strings.LastIndex(good, "$")],
	} {
		if ok, err := Verify(h, "pw"); ok || !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v, %v", h, ok, err)
		}
	}
}

// TestDecoy: a decoy has the form and the cost of a hash, belongs to no password, and
// is another each time.
func TestDecoy(t *testing.T) {
	d, err := Decoy(rand.Reader, cheap)
	if err != nil {
		t.Fatal(err)
	}
	h, err := Hash(rand.Reader, "", cheap)
	if err != nil {
		t.Fatal(err)
	}
	if len(d) != len(h) || d[:strings.LastIndex(d, "p=")] != h[:strings.LastIndex(h, "p=")] {
		t.Errorf("the decoy is %s, a hash %s", d, h)
	}
	if ok, err := Verify(d, ""); ok || err != nil {
		t.Errorf("the empty password: %v, %v", ok, err)
	}
	if again, err := Decoy(rand.Reader, cheap); err != nil || again == d {
		t.Errorf("two decoys are equal (%v)", err)
	}
}
