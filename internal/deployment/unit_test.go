package deployment

import (
	"regexp"
	"strings"
	"testing"
)

// TestUnit: what the unit for systemd sets are flags that there are, and the data is
// where it may write.
func TestUnit(t *testing.T) {
	unit, readme := read(t, "deploy/muster.service"), read(t, "README.md")
	settings := regexp.MustCompile(`\bMUSTER_([A-Z_]+)=(\S+)`).FindAllStringSubmatch(unit, -1)
	if len(settings) < 3 {
		t.Fatalf("settings %v", settings)
	}
	for _, s := range settings {
		flag := "`--" + strings.ReplaceAll(strings.ToLower(s[1]), "_", "-") + "`"
		if !strings.Contains(readme, flag) {
			t.Errorf("MUSTER_%s is set, and there is no flag %s", s[1], flag)
		}
	}
	for _, name := range []string{"DATA", "CREDENTIALS"} {
		if !regexp.MustCompile(`\bMUSTER_`+name+`=/var/lib/muster/`).MatchString(unit) || !strings.Contains(unit, "\nStateDirectory=muster\n") {
			t.Errorf("%s is not where the unit may write", name)
		}
	}
}
