package api

import (
	"context"
	"io"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/resolver"
)

// consentLine is a line of the export of consents.
type consentLine struct {
	ProfileID string `json:"profile_id"`
	record.ConsentEntry
}

// Consents writes one line for each entry of the log of consents, profile by profile in the
// order in which they were made, the newest first of each.
func (e *Exporter) Consents(ctx context.Context, account uint64, w io.Writer) error {
	enc := newLines(w)
	for from := uint32(0); ; {
		var lines []consentLine
		more := false
		err := e.Node.Read(ctx, account, func(v *resolver.View) error {
			ordinals := v.Profiles().Page(from, exportPage)
			more = len(ordinals) == exportPage
			var room paging.Room
			for _, o := range ordinals {
				log, err := record.ConsentLog(v, o)
				if err != nil {
					return err
				}
				if !room.Take(&log) {
					more = true
					return nil
				}
				for _, x := range log {
					lines = append(lines, consentLine{v.Profiles().ID(o).String(), x})
				}
				from = o + 1
			}
			return nil
		})
		if err != nil {
			return err
		}
		for i := range lines {
			if err := enc.Encode(&lines[i]); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
	}
}

// exportConsents answers GET /export/consents.
func (a *API) exportConsents(c *handler.Call) (any, error) {
	account := c.Account
	return a.export(c, func(ctx context.Context, e *Exporter, w io.Writer) error { return e.Consents(ctx, account, w) })
}
