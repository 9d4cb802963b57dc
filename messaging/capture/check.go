package capture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Check reads the files of a store that no process has open, and returns what is damaged,
// a [Damage] for each file. It changes nothing. A directory that is not there is whole.
func Check(dir string) (files int, damaged []Damage, err error) {
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, fmt.Errorf("captured messages: %w", err)
	}
	for _, n := range names {
		if _, is := segmentName(n.Name()); !is {
			continue
		}
		path := dir + string(os.PathSeparator) + n.Name()
		b, err := os.ReadFile(path)
		if err != nil {
			return files, damaged, fmt.Errorf("captured messages: %w", err)
		}
		files++
		if found := scan(b, func(*Message, int, int) {}, func(*repeat) {}); found.damage >= 0 {
			damaged = append(damaged, Damage{path, int64(found.damage), int64(found.lost)})
		}
	}
	return files, damaged, nil
}
