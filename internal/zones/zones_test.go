package zones

import (
	"testing"
	"time"
)

func TestEveryZoneLoadsOnce(t *testing.T) {
	names := Names()
	if len(names) < 500 {
		t.Fatalf("%d zones", len(names))
	}
	for _, name := range names {
		z, ok := Load(name)
		if !ok || z.String() != name {
			t.Errorf("%s: %v, %v", name, z, ok)
		}
		if again, _ := Load(name); again != z {
			t.Errorf("%s: another pointer", name)
		}
	}
}

func TestUnknownNames(t *testing.T) {
	for _, name := range []string{"", "Local", "local", "Mars/Base", "europe/berlin", "../etc/passwd", "Europe", "Europe/"} {
		if z, ok := Load(name); ok {
			t.Errorf("%q is %v", name, z)
		}
	}
}

// R1: the rules are those of the binary, whatever the machine's database says.
func TestR1RulesAreTheBinarys(t *testing.T) {
	t.Setenv("ZONEINFO", "/nowhere")
	for name, want := range map[string]string{
		"Europe/Berlin": "2024-07-01T14:00:00+02:00", "America/New_York": "2024-07-01T08:00:00-04:00",
		"Asia/Kathmandu": "2024-07-01T17:45:00+05:45", "UTC": "2024-07-01T12:00:00Z",
	} {
		z, ok := Load(name)
		if !ok {
			t.Fatal(name)
		}
		if got := time.Date(2024, 7, 1, 12, 0, 0, 0, time.UTC).In(z).Format(time.RFC3339); got != want {
			t.Errorf("%s: %s, not %s", name, got, want)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Load("Europe/Berlin")
	}
}

func BenchmarkUnpack(b *testing.B) {
	// What the first zone asked for costs.
	for b.Loop() {
		unpack()
	}
}
