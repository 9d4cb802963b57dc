package messaging

import (
	"errors"

	"github.com/musterhq/muster/messaging/compose"
)

// errMoot reports that there is no reason any more to send a message.
var errMoot = errors.New("no reason any more")

// errState reports that the state could not be read.
var errState = errors.New("the state cannot be read")

func errSuppressed(reason string) error {
	return compose.Refused("the address is suppressed (" + reason + ")")
}
