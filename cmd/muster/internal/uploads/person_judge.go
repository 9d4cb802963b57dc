package uploads

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/musterhq/muster/cmd/muster/internal/importer"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node"
)

// personJudge says which rows of people cannot be taken, but for what the state says of
// the people themselves.
type personJudge struct {
	checker *importer.Checker
	node    *node.Node
	account uint64
	// placeholders are texts that the account takes for no identifier.
	placeholders []string
}

func (s *Uploads) newPersonJudge(account uint64) (*personJudge, error) {
	checker, err := importer.NewChecker(true, s.opts.Now)
	return &personJudge{checker: checker, node: s.opts.Node, account: account}, err
}

func (j *personJudge) begin(ctx context.Context) error {
	return j.node.Read(ctx, j.account, func(v *resolver.View) error {
		j.placeholders = v.Settings().Placeholders
		return nil
	})
}

// person reads a row. Identifiers that are placeholders are left out beside others.
func (j *personJudge) person(row *importer.Row) (p person, refused string) {
	if refused = j.checker.Check(row); refused != "" {
		return p, refused
	}
	var in struct{ User person }
	if err := json.Unmarshal(row.JSON, &in); err != nil {
		return p, "the row cannot be read: " + err.Error()
	}
	p = in.User
	p.Subscribed = row.Subscribed
	left := ""
	for _, x := range []struct {
		name  string
		value *string
	}{{"email", &p.Email}, {"external_id", &p.ExternalID}, {"phone", &p.Phone}} {
		if slices.ContainsFunc(j.placeholders, func(known string) bool { return strings.EqualFold(strings.TrimSpace(*x.value), known) }) && *x.value != "" {
			left, *x.value = fmt.Sprintf("%s %q is a placeholder, not an identifier", x.name, *x.value), ""
		}
	}
	at := strings.LastIndexByte(strings.TrimSpace(p.Email), '@')
	switch {
	case left != "" && p.Email+p.ExternalID+p.Phone == "":
		return p, left + "; leave such rows out, or give another identifier"
	case p.Email != "" && (at <= 0 || at == len(strings.TrimSpace(p.Email))-1):
		return p, fmt.Sprintf("email %.100q is not an e-mail address; mend it, or map the column to something else", p.Email)
	}
	return p, ""
}
