// Package flowbody reads the bodies of calls about flows that the console and API
// keys share.
//
// Their fields count one by one: a call that changes a flow's status must refuse
// whatever else stands beside it, however it is written, so that no caller takes a
// refusal for a change. Repeated fields are refused for the same reason. Faults are
// a [*jsonform.Error] with the path of the field.
package flowbody
