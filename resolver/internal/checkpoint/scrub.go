package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// maxIndexRewrite is how large an account's index of profiles may be, in bytes of
// Pebble's files, to be rewritten as a whole for erased profiles.
const maxIndexRewrite = 64 << 20

// scrubProfileIndex makes Pebble rewrite what the index of an account had of erased
// profiles. Texts that they had before, such as a former name, are not stored any
// more, so all of the index is rewritten; of a large one, only what surrounds the
// texts that the profiles had at last.
func scrubProfileIndex(ctx context.Context, db *pebble.DB, account uint64, list []Scrubbed) error {
	prefix := state.AccountKey(nil, state.TableProfileIndex, account)
	end := state.After(prefix)
	size, err := db.EstimateDiskUsage(prefix, end)
	if err != nil {
		return fmt.Errorf("compact the index of erased profiles: %w", err)
	}
	compact := func(from, to []byte) error {
		if err := db.Compact(ctx, from, to, false); err != nil && ctx.Err() == nil {
			return fmt.Errorf("compact the index of erased profiles: %w", err)
		}
		return nil
	}
	if size <= maxIndexRewrite {
		return compact(prefix, end)
	}
	left := maxScrubRanges
	for _, s := range list {
		for _, key := range s.Indexed {
			if s.Account != account {
				continue
			}
			if left--; left < 0 {
				return nil
			}
			if err := compact([]byte(key), []byte(key+"\x00")); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxManifestRounds bounds how often something is written to make Pebble begin a new
// list of its files.
const maxManifestRounds = 256

// renewManifest makes Pebble give up its present lists of files, which name the first
// and the last key of each file that there was, and so texts of erased profiles. It
// begins a new list when more files have come and gone than there are, and keeps one
// old one. A store with more files than rounds gets its new lists in time.
func (c *Dir) renewManifest(db *pebble.DB, f Manifest) error {
	old, err := c.manifests()
	if err != nil {
		return err
	}
	for range maxManifestRounds {
		now, err := c.manifests()
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(now, func(name string) bool { return slices.Contains(old, name) }) {
			return nil
		}
		if err := writeOrigin(db, f); err != nil {
			return err
		}
		if err := c.Disk.Flush(db); err != nil {
			return err
		}
	}
	return nil
}

// manifests are the names of Pebble's lists of files.
func (c *Dir) manifests() ([]string, error) {
	names, err := c.FS.List(c.Path(DirLive))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "MANIFEST-") }), nil
}

// maxScrubRanges bounds how many places of the store are compacted one by one.
const maxScrubRanges = 32

const scrubTimeout = 30 * time.Second

// scrubStore makes Pebble rewrite what surrounds removed documents, which
// otherwise stay in its files until they are compacted by themselves.
//
// It is given a bounded time: a checkpoint must not wait for it. What is left
// then goes when Pebble compacts by itself.
func scrubStore(db *pebble.DB, disk *state.Disk, list []Scrubbed) error {
	if len(list) == 0 {
		return nil
	}
	defer disk.Urgent()()
	ctx, cancel := context.WithTimeout(context.Background(), scrubTimeout)
	defer cancel()
	byAccount := map[uint64][]uint32{}
	ranges := 0
	for _, s := range list {
		byAccount[s.Account] = append(byAccount[s.Account], s.Ordinals...)
		ranges += len(s.Ordinals)
	}
	compact := func(account uint64, from, to uint32) error {
		err := db.Compact(ctx, state.DocumentKey(nil, account, from), state.DocumentKey(nil, account, to+1), false)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("compact erased profiles: %w", err)
		}
		return nil
	}
	for _, s := range list {
		for _, key := range s.Keys[:min(len(s.Keys), maxScrubRanges)] {
			if err := db.Compact(ctx, []byte(key), []byte(key+"\x00"), false); err != nil && ctx.Err() == nil {
				return fmt.Errorf("compact entries of erased profiles: %w", err)
			}
		}
	}
	for account, ordinals := range byAccount {
		if len(ordinals) == 0 {
			continue // the account has no erased profiles
		}
		// What sketches had of them may be in older versions alone.
		from, to := state.EntityKey(account, state.EntitySketch, ""), state.EntityKey(account, state.EntitySketch+1, "")
		if err := db.Compact(ctx, []byte(from), []byte(to), false); err != nil && ctx.Err() == nil {
			return fmt.Errorf("compact what the catalog had of erased profiles: %w", err)
		}
	}
	for account, ordinals := range byAccount {
		if len(ordinals) == 0 {
			continue // the account has no erased profiles
		}
		if err := scrubProfileIndex(ctx, db, account, list); err != nil {
			return err
		}
		if ranges > maxScrubRanges {
			from, to := profile.NoOrdinal, uint32(0)
			for _, o := range ordinals {
				from, to = min(from, o), max(to, o)
			}
			ordinals = nil
			if err := compact(account, from, to); err != nil {
				return err
			}
		}
		for _, o := range ordinals {
			if err := compact(account, o, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// Scrubbed names documents, and other entries by their keys, whose bytes are to
// leave the store's files, too.
type Scrubbed struct {
	Account  uint64
	Ordinals []uint32
	Keys     []string
	Indexed  []string // keys of the index of profiles
}
