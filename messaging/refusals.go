package messaging

import "errors"

// errMoot reports that there is no reason any more to send a message.
var errMoot = errors.New("no reason any more")

// errState reports that the state could not be read.
var errState = errors.New("the state cannot be read")

// errBarred reports that a recipient must not be sent to, or not any more.
type errBarred string

func (e errBarred) Error() string { return string(e) }

func errBlocked(reason string) error { return errBarred("the address is blocked (" + reason + ")") }
