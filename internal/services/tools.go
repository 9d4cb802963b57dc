package services

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// provider says what gives a tool: in words, and as Debian's packages.
type provider struct {
	words  string
	debian []string
}

var providers = map[string]provider{
	"java": {"Java 17 or later", []string{"default-jre-headless"}},
	"mvn":  {"Maven", []string{"maven"}},
	"npm":  {"Node.js with npm", []string{"npm"}},
	"cc":   {"a C compiler", []string{"gcc", "libc6-dev"}},
}

// look finds a tool on the path.
func look(tool string) (string, error) {
	path, err := exec.LookPath(tool)
	if err != nil {
		p := providers[tool]
		return "", fmt.Errorf("%w: %s is needed: install %s (Debian: apt-get install %s)",
			ErrMissing, tool, p.words, strings.Join(p.debian, " "))
	}
	return path, nil
}

// tools installs the tools that are missing for what is not in the cache yet.
// It does so with apt-get, as root; elsewhere the first use of a tool says what
// to install.
func (in *installer) tools(ctx context.Context) error {
	need := []string{"java"}
	if !isDir(filepath.Join(in.cache, kafkaDir())) {
		need = append(need, "mvn")
	}
	if !isDir(filepath.Join(in.cache, chdbDir)) {
		need = append(need, "npm")
	}
	if !isDir(filepath.Join(in.cache, launcherDir())) {
		need = append(need, "cc")
	}
	packages := debianPackages(need)
	if len(packages) == 0 || os.Geteuid() != 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil
	}
	fmt.Fprintln(in.out, "installing", strings.Join(packages, " "))
	if err := run(ctx, "/", "apt-get", "update", "-qq"); err != nil {
		return err
	}
	args := append([]string{"DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-qq", "--no-install-recommends"}, packages...)
	return run(ctx, "/", "env", args...)
}

// debianPackages are those that give the tools that are not there.
func debianPackages(need []string) []string {
	var packages []string
	for _, tool := range need {
		if _, err := exec.LookPath(tool); err != nil {
			packages = append(packages, providers[tool].debian...)
		}
	}
	slices.Sort(packages)
	return packages
}
