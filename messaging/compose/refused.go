package compose

// Refused reports that a message must not be sent to its recipient, or not any more.
type Refused string

func (e Refused) Error() string { return string(e) }
