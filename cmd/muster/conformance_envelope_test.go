package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

func envelopePart() part {
	return part{"envelope of Surface A", []rule{
		{"a success has status success, an empty message and an object as data", func(c *check) {
			a := c.a("POST", "/contacts", obj{"email": c.mail("env")}).success()
			a.only("", "status", "message", "data").kinds("", map[string]string{"status": "string", "message": "string", "data": "object"})
		}},
		{"of lists the data is an array, also an empty one", func(c *check) {
			for _, path := range []string{"/push/segments", "/campaign", "/lists", "/contacts?email=nobody@nowhere"} {
				c.a("GET", path, nil).success().only("", "status", "message", "data").length("data", 0)
			}
		}},
		{"a failure has status failure and its reason as message", func(c *check) {
			c.a("GET", "/contacts/none", nil).fails("contact").only("", "status", "message", "data").kinds("", map[string]string{"message": "string"})
		}},
		{"answers are JSON", func(c *check) {
			for _, a := range []*answer{c.a("GET", "/contacts", nil), c.a("GET", "/nonsense", nil), c.with("svc_live_x", "GET", "/api/v1/contacts", nil)} {
				if kind := a.header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") || a.body == nil {
					a.fault("the type is %q", kind)
				}
			}
		}},
		{"a body has to be JSON and to say so", func(c *check) {
			c.do(c.T, "POST", "/api/v1/contacts", `{}`, "Authorization", "Bearer "+c.freshKey(), "Content-Type", "text/plain").fails("Content-Type")
		}},
		{"ids and values of a query are text", func(c *check) {
			for _, bad := range []string{"%ff", "%00", "a%0ab", "%ed%a0%80"} {
				c.a("GET", "/analytics/performance?campaign_id="+bad, nil).names("campaign_id Input should be valid UTF-8")
				c.a("GET", "/analytics/events?event_type="+bad, nil).names("event_type Input should be valid UTF-8")
				c.a("GET", "/contacts?email="+bad, nil).names("email Input")
				c.a("GET", "/contacts/"+bad, nil).names("path Input")
				c.a("GET", "/campaign/"+bad+"/stats", nil).names("path Input")
				c.console("GET", "/export/events?event_type="+bad, nil).http(400).eq("data.field", "event_type")
				c.console("GET", "/profiles?email="+bad, nil).http(400).eq("data.field", "email")
				c.console("GET", "/profiles/"+bad+"/events", nil).http(400).eq("data.field", "path")
			}
			id := c.contact(obj{"email": c.mail("slash")})
			c.a("GET", "/contacts/"+id+"/export", nil).success()
			c.a("GET", "/contacts/"+id+"%2fexport", nil).failure("There is no contact with this id")
			c.a("GET", "/analytics/performance?campaign_id=nope", nil).names("campaign_id: there is no such campaign")
			c.a("POST", "/push/send", obj{"title": "{{x"}).names("title ")
			c.a("POST", "/push/send", obj{"title": "T", "body": "{{x"}).names("body ")
			if m := c.asAdmin(c.T, "POST", "/companies/"+c.id+"/credits", `{"amount":1.5}`).http(400).str("message"); m != "amount must be a whole number, not 1.5" {
				c.Errorf("the message is %q", m)
			}
		}},
		{"what is not proper HTTP is answered in the form of its surface", func(c *check) {
			ask := func(head string) (status int, body string) {
				conn, err := net.Dial("tcp", strings.TrimPrefix(c.server.origin, "http://"))
				ok(c.T, err)
				defer conn.Close()
				ok(c.T, conn.SetDeadline(time.Now().Add(time.Minute)))
				_, err = io.WriteString(conn, head)
				ok(c.T, err)
				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				ok(c.T, err)
				defer res.Body.Close()
				b, err := io.ReadAll(res.Body)
				ok(c.T, err)
				return res.StatusCode, string(b)
			}
			for status, head := range map[int]string{431: "Host: m\r\nX: " + strings.Repeat("x", 20_000) + "\r\n\r\n", 400: "Host: m\r\nbad\x01header\r\n\r\n"} {
				// Of a head that cannot be read the path is known as far as it came.
				if have, body := ask("GET /api/v1/contacts HTTP/1.1\r\n" + head); have != status || !strings.HasPrefix(body, `{"status":"failure","message":"the `) {
					c.Errorf("%d %s", have, body)
				}
				if have, body := ask("GET /else HTTP/1.1\r\n" + head); have != status || !strings.HasPrefix(body, "the ") {
					c.Errorf("%d %s", have, body)
				}
			}
			for _, head := range []string{"Host: [::1\r\n\r\n"} {
				for path, want := range map[string]struct {
					http bool
					form string
				}{
					"/api/v1/contacts": {true, `{"status":"failure","message":"`}, "/api/v1/events": {false, `{"success":false,"profile_id":"","error":"`},
					"/v1/email/send": {false, `{"status":"error","code":"invalid_request","message":"`}, "/console/api/v1/session": {false, `{"status":"failure","message":"`}, "/else": {false, "the "},
				} {
					if status, body := ask("GET " + path + " HTTP/1.1\r\n" + head); !strings.HasPrefix(body, want.form) || want.http != (status == 200) {
						c.Errorf("%s: %d %s", path, status, body)
					}
				}
			}
		}},
		{"a body of any size is answered", func(c *check) {
			for _, size := range []int{1<<20 + 100, 6 << 20, 20 << 20, 50 << 20} {
				body := `{"email":"` + strings.Repeat("x", size) + `"}`
				c.a("POST", "/contacts", body).names("body Input should have at most")
				c.c("/events", body).errorC(413, "too_large")
				c.console("POST", "/templates", body).http(413)
				c.do(c.T, "POST", "/console/api/v1/session", body).http(413)
				if size > 8<<20 {
					c.b("/events", body).http(413)
				}
			}
		}},
		{"a call that has nothing to answer answers an empty object", func(c *check) {
			list := c.list()
			c.a("DELETE", "/lists/"+list, nil).success().only("data")
		}},
	}}
}

func failurePart() part {
	return part{"failures of Surface A", []rule{
		{"business, validation, duplicate, unknown id, path and method: all are HTTP 200", func(c *check) {
			e := c.mail("dup")
			c.contact(obj{"email": e})
			for _, a := range []*answer{
				c.a("POST", "/contacts", obj{"email": e}),
				c.a("POST", "/campaign", obj{"name": "x", "channel": "email"}),
				c.a("POST", "/campaign/cmp_none/send", obj{}),
				c.a("GET", "/campaign/cmp_none/stats", nil),
				c.a("GET", "/campaign/cmp_none/recipients/activity", nil),
				c.a("POST", "/campaign/cmp_none/ab-test/start", obj{"variants": []obj{{}, {}}}),
				c.a("POST", "/lists/lst_none/contacts", obj{"email": c.mail("x")}),
				c.a("POST", "/push/send", obj{"title": "T", "segmentId": "seg_none"}),
				c.a("GET", "/nonsense", nil),
				c.a("GET", "/analytics/nonsense", nil),
				c.a("DELETE", "/contacts", nil),
				c.with(c.newKey("contacts:read"), "POST", "/api/v1/contacts", obj{}),
			} {
				a.fails("").only("", "status", "message", "data")
			}
		}},
		{"bodies that are no JSON objects are HTTP 200 as well", func(c *check) {
			for _, path := range []string{"/contacts", "/lists", "/campaign", "/push/send"} {
				for _, body := range []string{"{", "[]", "5", "null", `"x"`, "{} {}", "{\"name\":\xff}"} {
					c.a("POST", path, body).fails("body")
				}
			}
		}},
		{"a 403 is never answered for want of a permission", func(c *check) {
			key := c.newKey("flows:read")
			c.with(key, "POST", "/api/v1/contacts", obj{}).failure("You don't have permission to perform this action")
			c.with(key, "GET", "/api/v1/contacts", nil).failure("You don't have permission to perform this action")
		}},
		{"a validation failure begins with the field", func(c *check) {
			for field, body := range map[string]obj{
				"channel": {"channel": "single-channel"}, "type": {"type": "email"}, "subject": {"subject": 5}, "name": {"name": []string{}}, "sender": {"sender": obj{}},
				"date": {"date": "next tuesday"},
			} {
				c.a("POST", "/campaign", campaignOf(body)).names(field + " ")
			}
			c.a("GET", "/contacts?limit=0", nil).names("limit ")
			c.a("GET", "/contacts?cursor=!", nil).names("cursor ")
		}},
	}}
}
