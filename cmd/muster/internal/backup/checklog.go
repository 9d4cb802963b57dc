package backup

import (
	"fmt"

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

// notBackedUp says of a log that cannot be backed up that earlier backups stay.
func notBackedUp(err error) error {
	return fmt.Errorf("no backup was made, and those before stay as they are: %w", err)
}
