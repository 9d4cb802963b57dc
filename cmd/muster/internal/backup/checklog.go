package backup

import (
	"fmt"
	"slices"

	"github.com/musterhq/muster/eventlog/file"
)

// checkLog reads the log of the directory. Its error is what is damaged in it first.
func (o *Options) checkLog() (file.Checked, error) {
	c, err := o.readLog(o.FS.PathJoin(o.Dir, "log"))
	if err == nil {
		err = damage(c)
	}
	return c, err
}

func (o *Options) readLog(dir string) (file.Checked, error) {
	if o.logs != nil {
		return o.logs(o.FS, dir)
	}
	return file.Check(o.FS, dir)
}

// damage is the first thing that is wrong with a log.
func damage(c file.Checked) error {
	for _, f := range c.Findings {
		if f.Err != nil {
			return f.Err
		}
	}
	return nil
}

// trimmed reports whether a log lacks its beginning, so that the state and history cannot be
// rebuilt from it.
func trimmed(c file.Checked) bool {
	return slices.ContainsFunc(c.Starts, func(start int64) bool { return start > 0 })
}

// NotMade says of what cannot be backed up that earlier backups stay.
func NotMade(err error) error {
	return fmt.Errorf("no backup was made, and those before stay as they are: %w", err)
}
