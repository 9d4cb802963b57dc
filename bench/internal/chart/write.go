package chart

import (
	"fmt"
	"os"
	"path/filepath"
)

// Named is a chart and the name of its file, without its ending.
type Named struct {
	Name string
	Chart
}

// Write writes charts as SVG files into a directory, which is made if it is not there,
// and returns the names of the files.
func Write(dir string, charts []Named) (names []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("charts: %w", err)
	}
	for _, c := range charts {
		name := c.Name + ".svg"
		if err := os.WriteFile(filepath.Join(dir, name), c.SVG(), 0o644); err != nil {
			return names, fmt.Errorf("charts: %w", err)
		}
		names = append(names, name)
	}
	return names, nil
}
