package keyapi

import "github.com/musterhq/muster/resolver"

func (a *API) pushRoutes() []route {
	return []route{
		{method: "GET", path: "/push/segments", permission: "segments:read", handle: a.pushSegments},
	}
}

// pushSegment is a segment as a push message may be sent to it.
type pushSegment struct {
	ID   string `json:"_id"`
	Name string `json:"name"`
	// Count is the number of members, null while the segment is building.
	Count  *uint64 `json:"count"`
	Status string  `json:"status"` // building or live
}

// pushSegments answers GET /push/segments, the oldest first.
func (a *API) pushSegments(c *call) (any, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	after, err := c.after()
	if err != nil {
		return nil, err
	}
	out := []pushSegment{}
	next := ""
	err = c.read(func(v *resolver.View) error {
		var part []resolver.Segment
		part, next = pageByAge(v.Segments(), after, limit, func(s *resolver.Segment) age { return age{s.CreatedMs, s.ID} })
		// No event that was acknowledged before is in this instant's future.
		atMs := max(c.now.UnixMilli(), v.LogTimeMs())
		for i := range part {
			x := pushSegment{ID: part[i].ID, Name: part[i].Name, Status: "building"}
			if n, live := v.CountMembers(part[i].ID, atMs); live {
				x.Count, x.Status = &n, "live"
			}
			out = append(out, x)
		}
		return nil
	})
	return reply{data: out, next: next}, err
}
