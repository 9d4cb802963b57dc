package record

import "github.com/musterhq/muster/resolver/view"

// Device is a device. Its address is left out: holders of the provider's
// credentials could write to it.
type Device struct {
	ID        string `json:"_id"`
	Kind      string `json:"kind"` // webpush, fcm or apns
	CreatedAt string `json:"created_at"`
}

// Devices are those of a profile, the oldest first.
func Devices(p *view.Profile) []Device {
	list := []Device{}
	for _, d := range p.Devices {
		list = append(list, Device{d.ID, d.Kind, Time(d.AddedMs)})
	}
	return list
}
