package segment

// Helped is the second evaluator of the tests.
func Helped(n *Node, p *NaiveProfile, atMs int64, refs func(string) (*Node, bool)) bool {
	return helped(n, p, atMs, refs, 0)
}
