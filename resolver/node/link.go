package node

import (
	"fmt"

	"github.com/musterhq/muster/resolver/internal/checkpoint"
)

// LinkCheckpoints makes dir, which must not be there and must be on the same file
// system, hold the kept checkpoints of a partition as hard links, laid out as below
// [Options.Dir]. They stay there whatever is pruned. It returns their files, relative
// to dir and with slashes, none where there is no checkpoint yet.
func (n *Node) LinkCheckpoints(partition int, dir string) ([]string, error) {
	if partition < 0 || partition >= len(n.partitions) {
		return nil, fmt.Errorf("there is no partition %d: the log has %d", partition, len(n.partitions))
	}
	p := n.partitions[partition].Load()
	if p == nil {
		return nil, notOwner(partition)
	}
	p.checkpoint.pruning.Lock()
	defer p.checkpoint.pruning.Unlock()
	offsets, err := p.ckpt.List()
	if err != nil {
		return nil, err
	}
	fs := p.ckpt.FS
	var out []string
	for _, offset := range offsets[max(0, len(offsets)-checkpoint.Kept):] {
		name := checkpoint.Name(offset)
		files, err := p.ckpt.FilesOf(name)
		if err != nil {
			return nil, err
		}
		below := fs.PathJoin(fmt.Sprintf("p%d", partition), checkpoint.DirCheckpoints, name)
		for _, d := range []string{checkpoint.DirPebble, checkpoint.DirKeys, checkpoint.DirSegments, checkpoint.DirSpool} {
			if err := fs.MkdirAll(fs.PathJoin(dir, below, d), 0o700); err != nil {
				return nil, err
			}
		}
		for _, path := range append(files, checkpoint.FileManifest) {
			if err := fs.Link(p.ckpt.Path(checkpoint.DirCheckpoints, name, path), fs.PathJoin(dir, below, path)); err != nil {
				return nil, fmt.Errorf("link checkpoint %d: %w", offset, err)
			}
			out = append(out, below+"/"+path)
		}
	}
	return out, nil
}
