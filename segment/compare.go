package segment

// Holds reports whether the value v, in millionths, satisfies the comparison.
func (c *Compare) Holds(v Int128) bool {
	return c.holds(func(constant Int128) int { return v.Cmp(constant) })
}

// HoldsRatio reports whether sum/n satisfies the comparison, exactly; sum is in
// millionths and n above 0. It compares sum with constant·n. A product beyond
// 128 bits (from 1.7·10¹⁴ events on) lies beyond every sum.
func (c *Compare) HoldsRatio(sum Int128, n uint64) bool {
	return c.holds(func(constant Int128) int {
		product, ok := constant.MulUint64(n)
		if !ok {
			return -constant.Sign()
		}
		return sum.Cmp(product)
	})
}

// holds applies the operator; cmp orders the value against a constant.
func (c *Compare) holds(cmp func(Int128) int) bool {
	switch c.Op {
	case OpEq:
		return cmp(c.Micros[0]) == 0
	case OpNe:
		return cmp(c.Micros[0]) != 0
	case OpGt:
		return cmp(c.Micros[0]) > 0
	case OpGe:
		return cmp(c.Micros[0]) >= 0
	case OpLt:
		return cmp(c.Micros[0]) < 0
	case OpLe:
		return cmp(c.Micros[0]) <= 0
	case OpBetween:
		return cmp(c.Micros[0]) >= 0 && cmp(c.Micros[1]) <= 0
	case OpIn, OpNotIn:
		for _, constant := range c.Micros {
			if cmp(constant) == 0 {
				return c.Op == OpIn
			}
		}
		return c.Op == OpNotIn
	}
	return false
}

// HoldsForNone reports whether the comparison holds for a profile without
// matching events: count, sum and distinct are 0 there; avg, min and max are
// absent, and every comparison with them is false, the negative ones too. Did
// is ignored.
func (a *Activity) HoldsForNone() bool {
	if a.Aggregate == nil {
		return a.Count.Holds(Int128{})
	}
	switch a.Aggregate.Fn {
	case FnAvg, FnMin, FnMax:
		return false
	}
	return a.Aggregate.Compare.Holds(Int128{})
}
