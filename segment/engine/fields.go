package engine

import "github.com/musterhq/muster/segment"

// Fields is a set of what conditions look at in a profile.
type Fields uint16

// The fields.
const (
	FieldEmail Fields = 1 << iota
	FieldExternalID
	FieldPhone
	FieldFirstName
	FieldLastName
	FieldCreatedAt
	FieldGeo
	FieldAttributes
	FieldConsents // suppressions too
	FieldLists
	FieldEngagement
	FieldFirstSeen
	FieldLastEvent
	FieldContact
	FieldDevices

	AllFields Fields = 1<<iota - 1
)

// fieldsOf is what a condition on profiles looks at.
func fieldsOf(n *segment.Node) Fields {
	switch n.Kind {
	case segment.KindConsent:
		return FieldConsents
	case segment.KindList:
		return FieldLists
	case segment.KindAttribute:
		switch n.Attribute.Predicate.Path[0] {
		case segment.FieldEmail:
			return FieldEmail
		case segment.FieldExternalID:
			return FieldExternalID
		case segment.FieldPhone:
			return FieldPhone
		case segment.FieldFirstName:
			return FieldFirstName
		case segment.FieldLastName:
			return FieldLastName
		case segment.FieldCreatedAt:
			return FieldCreatedAt
		case segment.FieldGeo:
			return FieldGeo
		case segment.FieldAttributes:
			return FieldAttributes
		case segment.FieldStatus:
			if n.Attribute.Timed() {
				return FieldConsents | FieldEngagement
			}
			return FieldConsents
		case segment.FieldSuppressed:
			return FieldConsents
		case segment.FieldSubscribed:
			return FieldConsents | FieldContact
		case segment.FieldScore:
			return FieldEngagement
		case segment.FieldFirstSeen:
			return FieldFirstSeen
		case segment.FieldLastEvent:
			return FieldLastEvent
		case segment.FieldPushDevices:
			return FieldDevices
		}
	}
	return AllFields
}
