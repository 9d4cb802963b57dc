package messaging

import "errors"

// errMoot reports that there is no reason any more to send a message.
var errMoot = errors.New("no reason any more")

// errState reports that the state could not be read.
var errState = errors.New("the state cannot be read")

// errRefused reports that a message must not be sent to its recipient, or not any more.
type errRefused string

func (e errRefused) Error() string { return string(e) }

func errBlocked(reason string) error { return errRefused("the address is blocked (" + reason + ")") }
