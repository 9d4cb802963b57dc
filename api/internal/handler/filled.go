package handler

import "time"

// Filled is a parameter of the query, "" where it is left out. An empty one is refused: the
// variable that should hold it is empty, and to leave it out asks for something else.
func (c *Call) Filled(name string) (string, error) {
	args := c.QueryArgs()
	value := string(args.Peek(name))
	if value == "" && args.Has(name) {
		return "", BadField(name, "%s is empty; give it a value, or leave it out", name)
	}
	return value, nil
}

// Days are the parameters from and to, the first and the last day of UTC that are asked for, in the
// form 2026-11-26. One that is left out is no bound.
func (c *Call) Days() (from, to string, err error) {
	for _, x := range []struct {
		name, absent string
		day          *string
	}{{"from", "0000-01-01", &from}, {"to", "9999-12-31", &to}} {
		if *x.day, err = c.Filled(x.name); err != nil {
			return "", "", err
		}
		if *x.day == "" {
			*x.day = x.absent
		} else if _, err := time.Parse(time.DateOnly, *x.day); err != nil {
			return "", "", BadField(x.name, "%s must be a day such as 2026-11-26", x.name)
		}
	}
	if from > to {
		return "", "", BadField("to", "to must not be before from")
	}
	return from, to, nil
}
