package serverprocess

import (
	"net/http"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
)

func TestMain(m *testing.M) { Main(m) }

// TestRestart: a server is at the same address after a kill and after a stop.
func TestRestart(t *testing.T) {
	testlevel.SkipQuick(t, "builds the server")
	s := Start(t)
	origin := s.Origin
	for name, end := range map[string]func(){"kill": s.Kill, "stop": s.Stop} {
		end()
		if s.Running() {
			t.Errorf("it runs after a %s", name)
		}
		s.Restart()
		res, err := http.Get(origin + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != http.StatusOK {
			t.Errorf("after a %s: %s", name, res.Status)
		}
	}
}
