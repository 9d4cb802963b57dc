package server

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// mainPackage is what Build builds.
const mainPackage = "github.com/musterhq/muster/cmd/muster"

// Build builds the binary into dir and returns its path. The working directory
// must be inside the module.
func Build(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "muster")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path, mainPackage).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", mainPackage, err, out)
	}
	return path, nil
}

// Version is what a binary says it is.
func Version(ctx context.Context, binary string) (string, error) {
	out, err := exec.CommandContext(ctx, binary, "version").Output()
	if err != nil {
		return "", fmt.Errorf("%s version: %w", binary, err)
	}
	return strings.TrimSpace(string(out)), nil
}
