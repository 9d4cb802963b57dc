package deployment

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// ComposeFile is where the composition is, below the repository's root.
const ComposeFile = "docker-compose.yml"

// Load reads the composition of the repository at root with env as the
// environment: checked against the Compose specification's schema, for references
// to what is not defined, and for variables that must be set.
func Load(ctx context.Context, root string, env map[string]string) (*types.Project, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("composition: %w", err)
	}
	p, err := loader.LoadWithContext(ctx, types.ConfigDetails{
		WorkingDir:  root,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(root, ComposeFile)}},
		Environment: maps.Clone(env), // which it adds to
	})
	if err != nil {
		return nil, fmt.Errorf("composition: %w", err)
	}
	return p, nil
}
