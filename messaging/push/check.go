package push

import (
	"fmt"
	"time"
)

// kinds are the push services.
var kinds = []Kind{KindWeb, KindFCM, KindAPNs}

// CheckToken reports whether a device token has the form of its service, without
// anybody's credentials. allowPrivate is [Options.AllowPrivate].
func CheckToken(kind Kind, token string, allowPrivate bool) error {
	s, err := unbound(kind, allowPrivate)
	if err != nil {
		return err
	}
	return s.CheckToken(token)
}

// CheckNotification reports what keeps n from being sent over any of the
// services, or over those given.
func CheckNotification(n *Notification, over ...Kind) error {
	if len(over) == 0 {
		over = kinds
	}
	for _, kind := range over {
		s, err := unbound(kind, false)
		if err != nil {
			return err
		}
		if err := s.Check(n); err != nil {
			return err
		}
	}
	return nil
}

// unbound is a sender without credentials: it can check, but not send.
func unbound(kind Kind, allowPrivate bool) (Sender, error) {
	o := Options{AllowPrivate: allowPrivate, Now: time.Now} // a message has the instant of its end
	switch kind {
	case KindWeb:
		return &WebPush{o: o}, nil
	case KindFCM:
		return &FCM{o: o}, nil
	case KindAPNs:
		return &APNs{o: o}, nil
	}
	return nil, fmt.Errorf("push: kind %q is unknown; use web, fcm or apns", kind)
}
