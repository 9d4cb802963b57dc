package backup

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gocloud.dev/blob/fileblob"

	"github.com/musterhq/muster/internal/blobtree"
)

const (
	nameLayout = "20060102T150405Z"
	// maxPerSecond keeps the numbers behind a name at two digits, so that names are
	// in the order of time.
	maxPerSecond = 99
)

var nameForm = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z(-[0-9]{2})?$`)

// parseName is the second in which a backup was made, and its number in that second, from
// 1 on. ok is false for what is no name of a backup.
func parseName(name string) (at time.Time, number int, ok bool) {
	if !nameForm.MatchString(name) {
		return at, 0, false
	}
	at, err := time.Parse(nameLayout, name[:len(nameLayout)])
	number = 1 // of the one that has no number
	if rest := name[len(nameLayout):]; rest != "" {
		number, _ = strconv.Atoi(rest[1:])
	}
	return at, number, err == nil
}

// TimeOf is when a backup of that name was made, the zero time when it is no such name.
func TimeOf(name string) time.Time {
	at, _, _ := parseName(name)
	return at
}

// names are those of the backups, oldest first. Other files beside them are passed over:
// one of them would be the newest backup for good.
func names(ctx context.Context, set *blobtree.Set) ([]string, error) {
	all, err := set.Names(ctx)
	return slices.DeleteFunc(all, func(name string) bool {
		_, _, ok := parseName(name)
		return !ok
	}), err
}

// name is that of the next backup of a data directory, in a place that has backups of its
// log or never had one. There are so many.
func (o *Options) name(ctx context.Context, set *blobtree.Set, data, id string) (name string, there int, err error) {
	have, err := names(ctx, set)
	if err != nil {
		return "", 0, err
	}
	if err := o.checkThere(data, id, have); err != nil {
		return "", 0, err
	}
	if err := sameLog(ctx, set, have, id); err != nil {
		return "", 0, err
	}
	name, err = o.nextName(have)
	return name, len(have), err
}

// nextName names a backup made now, behind all that there are: by the second, and
// by a number behind it where that second has one already.
func (o *Options) nextName(have []string) (string, error) {
	now := o.Now().UTC()
	name := now.Format(nameLayout)
	if len(have) == 0 || have[len(have)-1] < name {
		return name, nil
	}
	newest := have[len(have)-1]
	if _, n, ok := parseName(newest); ok && strings.HasPrefix(newest, name) && n < maxPerSecond {
		return fmt.Sprintf("%s-%02d", name, n+1), nil
	}
	return "", fmt.Errorf("the newest backup there, %s, is of a time that has not come yet by this machine's clock (%s): set the clock right, or wait until that time is over. If the clock is right now, it was wrong when that backup was made: rename %s to the time when it was made, or remove it", newest, name, o.manifest(newest))
}

// manifest is where the manifest of a backup is stored, for people.
func (o *Options) manifest(name string) string {
	key := prefix + "/manifests/" + name + ".json"
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme == "" {
		return key
	}
	if u.Scheme == fileblob.Scheme {
		return filepath.Join(filepath.FromSlash(u.Path), filepath.FromSlash(key))
	}
	return u.Scheme + "://" + u.Host + path.Join("/", u.Path, key)
}
