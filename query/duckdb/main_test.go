package duckdb

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(crashChildPath); path != "" {
		crashChild(path)
		return
	}
	goleak.VerifyTestMain(m)
}
