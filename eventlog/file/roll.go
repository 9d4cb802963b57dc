package file

// Roll lets the next record of the partition begin a new segment file, however
// full the present one is, so that [Log.Trim] can drop what was stored before.
func (l *Log) Roll(partition int) error {
	p, err := l.partition(partition)
	if err != nil {
		return err
	}
	p.rollNext.Store(true)
	return nil
}
