package uploads

import (
	"context"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/resolver"
)

// identifiers are the row's identifiers by their kind, "" where it has none.
func (x *person) identifiers() [3]string { return [...]string{x.Email, x.ExternalID, x.Phone} }

// normalIdentifier is the form of an identifier that two of one normal form share. That of
// e-mails is coarser than the state's: e-mails that only folding makes one are refused
// beside each other, so the first of them in the file must come first.
func normalIdentifier(kind resolver.IdentityKind, value string) string {
	switch kind {
	case resolver.IdentityEmail:
		return string(identity.AppendFoldedEmail(nil, []byte(value)))
	case resolver.IdentityPhone:
		return string(identity.AppendNormalPhone(nil, []byte(value)))
	}
	return value
}

// groups parts rows that have nothing to do with each other. Rows are of one group if
// they share an identifier, or have identifiers of one person on file, be it by way of
// other rows. Groups, and the rows in them, are in the order of the file.
func (p *people) groups(ctx context.Context, tasks []*task) (out [][]*task, err error) {
	type name struct {
		kind  resolver.IdentityKind
		value string
	}
	first := map[name]int{}    // row that has the identifier first
	holder := map[uint32]int{} // row that is of the person on file first
	root := make([]int, len(tasks))
	top := func(i int) int {
		for root[i] != i {
			root[i] = root[root[i]]
			i = root[i]
		}
		return i
	}
	// The earliest row of a group stands for it.
	join := func(i, j int) {
		i, j = top(i), top(j)
		root[max(i, j)] = min(i, j)
	}
	err = p.node.Read(ctx, p.account, func(v *resolver.View) error {
		for i, t := range tasks {
			root[i] = i
			for k, value := range t.identifiers() {
				kind := resolver.IdentityKind(k)
				normal := normalIdentifier(kind, value)
				if normal == "" {
					continue
				}
				if other, known := first[name{kind, normal}]; known {
					join(i, other)
				} else {
					first[name{kind, normal}] = i
				}
				o, found := v.Profiles().Find(kind, value)
				if !found {
					continue
				}
				if other, known := holder[o]; known {
					join(i, other)
				} else {
					holder[o] = i
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	at := map[int]int{}
	for i, t := range tasks {
		r := top(i)
		n, known := at[r]
		if !known {
			n = len(out)
			at[r], out = n, append(out, nil)
		}
		out[n] = append(out[n], t)
	}
	return out, nil
}
