package segment

// UseCurrentFields gives the conditions on `subscribed` the meaning that the field has in
// definitions that are sent now: subscribed to e-mail, confirmed and not suppressed. These
// are the people to whom a campaign goes as far as consent goes. Such a condition becomes
// one on the status that says the same. It reports whether there were any.
//
// [Parse] leaves them alone: in definitions that were saved before, which logs and the
// state have, `subscribed` also holds for contacts who never subscribed and for those who
// have not confirmed.
func (n *Node) UseCurrentFields() (changed bool) {
	for _, c := range n.Conditions {
		changed = c.UseCurrentFields() || changed
	}
	if n.Kind != KindAttribute || n.Attribute.Field != FieldSubscribed {
		return changed
	}
	p := Predicate{Path: []string{FieldStatus, channelEmail}, Op: OpIn}
	if was := &n.Attribute.Predicate; (was.Op == OpNe) == was.Values[0].Bool {
		p.Op = OpNotIn
	}
	for _, s := range []string{ContactSubscribed, ContactEngaged, ContactAtRisk} {
		p.Values = append(p.Values, Value{Kind: ValueString, Str: s})
	}
	p.normal()
	n.Attribute = &Attribute{Field: FieldStatus + "." + channelEmail, Predicate: p}
	return true
}
