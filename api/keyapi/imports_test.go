package keyapi

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/internal/handler"
)

// fakeImports keeps imports in memory and imports nothing: what tests of permissions and
// of isolation need.
type fakeImports struct {
	mu   sync.Mutex
	made int
	by   map[uint64]map[string]*api.Import
}

func (f *fakeImports) of(account uint64, id string, fn func(*api.Import)) (api.Import, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.by[account][id]
	if x == nil {
		return api.Import{}, &handler.Refusal{Status: 404, Message: "there is no import with this id"}
	}
	fn(x)
	return *x, nil
}

func (f *fakeImports) Create(account uint64, in api.ImportFile) (api.Import, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by == nil {
		f.by = map[uint64]map[string]*api.Import{}
	}
	if f.by[account] == nil {
		f.by[account] = map[string]*api.Import{}
	}
	f.made++
	x := &api.Import{ID: fmt.Sprintf("imp_%032x", f.made), Name: in.Name, Kind: in.Kind, Status: api.ImportReceiving, Refusals: []api.ImportRefusal{}, CreatedAt: fmt.Sprintf("2025-03-01T12:00:00.%03dZ", f.made%1000)}
	f.by[account][x.ID] = x
	return *x, nil
}

func (f *fakeImports) Append(account uint64, id string, p api.ImportPart) (api.Import, error) {
	return f.of(account, id, func(x *api.Import) { x.Bytes += int64(len(p.Text)) })
}

func (f *fakeImports) Preview(_ context.Context, account uint64, id string, _ api.ImportPlan) (api.ImportPreview, error) {
	_, err := f.of(account, id, func(*api.Import) {})
	return api.ImportPreview{Columns: []api.ImportPreviewColumn{}, Rows: [][]string{}, Problems: []api.ImportRefusal{}}, err
}

func (f *fakeImports) Start(_ context.Context, account uint64, id string, _ api.ImportPlan) (api.Import, error) {
	return f.of(account, id, func(x *api.Import) { x.Status = api.ImportQueued })
}

func (f *fakeImports) List(account uint64) ([]api.Import, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := []api.Import{}
	for n := f.made; n > 0; n-- {
		if x := f.by[account][fmt.Sprintf("imp_%032x", n)]; x != nil {
			out = append(out, *x)
		}
	}
	return out, nil
}

func (f *fakeImports) Get(account uint64, id string) (api.Import, error) {
	return f.of(account, id, func(*api.Import) {})
}

func (f *fakeImports) Refused(account uint64, id string) (io.ReadCloser, error) {
	_, err := f.of(account, id, func(*api.Import) {})
	return io.NopCloser(strings.NewReader("line,reason\n")), err
}

func (f *fakeImports) Cancel(account uint64, id string) (api.Import, error) {
	return f.of(account, id, func(x *api.Import) { x.Status = api.ImportCancelled })
}

func (f *fakeImports) Delete(account uint64, id string) error {
	_, err := f.of(account, id, func(*api.Import) {})
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.by[account], id)
	}
	return err
}
