package flows

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/segment"
)

// Q1: each bound holds at the last that is allowed and at the first that is not.
func TestQ1Bounds(t *testing.T) {
	list := func(n int, element string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = strings.ReplaceAll(element, "#", fmt.Sprint(i))
		}
		return strings.Join(parts, ",")
	}
	x := func(n int) string { return strings.Repeat("x", n) }
	step := func(fields string) string { return `{"steps":[{"id":"a",` + fields + `}]}` }
	for name, c := range map[string]struct {
		most int
		text func(n int) string
		want string
	}{
		"bytes":        {MaxBytes, func(n int) string { return `{}` + strings.Repeat(" ", n-2) }, "definition must have at most 1048576 bytes"},
		"name":         {maxNameBytes, func(n int) string { return `{"name":"` + x(n) + `"}` }, "name must have at most 200"},
		"steps":        {MaxSteps, func(n int) string { return `{"steps":[` + list(n, `{"id":"s#","type":"exit"}`) + `]}` }, "steps must have at most 200 steps"},
		"id":           {maxIDBytes, func(n int) string { return `{"steps":[{"id":"` + x(n) + `","type":"exit"}]}` }, "steps[0].id must have at most 64"},
		"mail":         {maxMailBytes, func(n int) string { return step(`"type":"email","text":"` + x(1000) + `","body":"` + x(n-1004) + `"`) }, "steps[0].body must have at most 204800 bytes as JSON"},
		"escaped mail": {maxMailBytes/2 - 2, func(n int) string { return step(`"type":"email","body":"` + strings.Repeat(`\n`, n) + `"`) }, "steps[0].body must have at most 204800 bytes as JSON"},
		"sms":          {maxSMSBytes, func(n int) string { return step(`"type":"sms","text":"` + x(n) + `"`) }, "steps[0].text must have at most 4096"},
		"branches":     {maxBranches, func(n int) string { return step(`"type":"split","branches":[` + list(n, `{"weight":1}`) + `]`) }, "steps[0].branches must have at most 20 branches"},
		"tags":         {maxTagsGiven, func(n int) string { return step(`"type":"tag","add":[` + list(n, `"t#"`) + `]`) }, "steps[0].add must have at most 50 tags"},
		"tag":          {maxTagBytes, func(n int) string { return step(`"type":"tag","remove":["` + x(n) + `"]`) }, "steps[0].remove[0] must have at most 100"},
		"set": {maxAssignments, func(n int) string {
			return step(`"type":"update_contact","set":{` + list(n, `"attributes.a#":1`) + `}`)
		}, "steps[0].set must have at most 50 fields"},
		"field":        {maxFieldBytes, func(n int) string { return step(`"type":"update_contact","set":{"` + x(n) + `":1}`) }, `must have a name of at most 512 bytes`},
		"value":        {maxValueBytes, func(n int) string { return step(`"type":"update_contact","set":{"geo.a":"` + x(n-2) + `"}`) }, `must have at most 16384 bytes`},
		"url":          {maxURLBytes, func(n int) string { return step(`"type":"webhook","url":"` + x(n) + `"`) }, "steps[0].url must have at most 2048"},
		"headers":      {maxHeaders, func(n int) string { return step(`"type":"webhook","headers":{` + list(n, `"H#":""`) + `}`) }, "steps[0].headers must have at most 20 headers"},
		"header":       {maxHeaderName, func(n int) string { return step(`"type":"webhook","headers":{"` + x(n) + `":""}`) }, "must have a name of at most 128 bytes"},
		"header value": {maxHeaderValue, func(n int) string { return step(`"type":"webhook","headers":{"a":"` + x(n) + `"}`) }, "steps[0].headers.a must have at most 1024"},
		"body":         {maxCallBody, func(n int) string { return step(`"type":"webhook","body":"` + x(n) + `"`) }, "steps[0].body must have at most 65536"},
		"object":       {maxCallBody, func(n int) string { return step(`"type":"webhook","body":["` + x(n-4) + `"]`) }, "steps[0].body must have at most 65536"},
		"where": {20, func(n int) string {
			return `{"trigger":{"type":"event","where":[` + list(n, `{"property":"p#","op":"exists"}`) + `]}}`
		}, "trigger.where must have at most 20 filters"},
		"nested values": {maxValueDepth, func(n int) string {
			return step(`"type":"update_contact","set":{"geo.a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`)
		}, "must not be nested deeper than 8 levels"},
	} {
		f, err := Parse([]byte(c.text(c.most)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		fixedPoint(t, f)
		if _, err := Parse([]byte(c.text(c.most + 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}

// What is written out longer than it was given is refused as it would be when it
// is read back.
func TestQ1CanonicalFormHasTheBounds(t *testing.T) {
	// 1e17 has 4 bytes as given and 18 written out.
	values := "1e17"
	for i := 1; i < 900; i++ {
		values += fmt.Sprintf(",%de17", i+1)
	}
	leaf := `{"kind":"attribute","field":"attributes.a","op":"in","value":[` + values + `]}`
	condition := func(leaves int) string {
		return `{"match":"all","conditions":[` + strings.TrimSuffix(strings.Repeat(leaf+",", leaves), ",") + `]}`
	}
	flow := func(steps, leaves int) []byte {
		text := `{"steps":[`
		for i := range steps {
			text += fmt.Sprintf(`{"id":"s%d","type":"condition","if":%s},`, i, condition(leaves))
		}
		return []byte(strings.TrimSuffix(text, ",") + `]}`)
	}
	if f, err := Parse(flow(1, 10)); err != nil {
		t.Error(err)
	} else {
		fixedPoint(t, f)
	}
	if _, err := Parse(flow(1, 25)); err == nil || !strings.Contains(err.Error(), "steps[0].if must have at most 262144 bytes, written out it has") {
		t.Error(err)
	}
	if _, err := Parse(flow(10, 10)); err == nil || !strings.Contains(err.Error(), "definition must have at most 1048576 bytes, written out it has") {
		t.Error(err)
	}
}

func TestParsedSteps(t *testing.T) {
	f, err := Parse([]byte(`{"name":"n","steps":[
		{"id":"a","type":"condition","if":{"kind":"list","list_id":"l"},"yes":"c","no":null},
		{"id":"b","type":"split","branches":[{"weight":3,"next":"a"},{"weight":1}]},
		{"id":"c","type":"wait","until":"2030-01-31T09:00","timezone":"Europe/Berlin","next":"nowhere"},
		{"id":"d","type":"webhook","url":"https://example.com","on_failure":"exit","body":{"a":1}},
		{"id":"e","type":"exit"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	a, b, c, d, e := f.Steps[0], f.Steps[1], f.Steps[2], f.Steps[3], f.Steps[4]
	if f.Reentry != Once || a.Condition.Yes != 2 || a.Condition.No != End || a.Condition.Root.Kind != segment.KindList || a.Next != End ||
		string(a.Condition.If) != `{"kind":"list","list_id":"l"}` {
		t.Errorf("%+v", a)
	}
	if b.Split.Branches[0] != (Branch{3, 0}) || b.Split.Branches[1] != (Branch{1, End}) || b.Next != End {
		t.Errorf("%+v", b.Split)
	}
	if c.Wait.Until.Day != 21_945 || c.Wait.Until.SecondOfDay != 9*3600 || c.Wait.Until.Zone.String() != "Europe/Berlin" || c.Next != Unknown {
		t.Errorf("%+v", c.Wait.Until)
	}
	if w := d.Webhook; w.Body != `{"a":1}` || w.Method != "POST" || w.TimeoutSeconds != 10 || w.Attempts != 5 || !w.ExitOnFailure {
		t.Errorf("%+v", w)
	}
	if e.Next != End || e.Type != StepExit {
		t.Errorf("%+v", e)
	}
}

func TestReferences(t *testing.T) {
	f, err := Parse([]byte(`{"trigger":{"type":"segment_exited","segment_id":"s2"},"steps":[
		{"id":"a","type":"condition","if":{"match":"any","conditions":[{"kind":"list","list_id":"l2"},{"kind":"list","list_id":"l1"},
			{"kind":"segment","segment_id":"s1"},{"match":"all","conditions":[{"kind":"segment","segment_id":"s2","member":false}]}]}},
		{"id":"b","type":"condition"},
		{"id":"c","type":"email","template_id":"t2"},{"id":"d","type":"email","template_id":"t1"},{"id":"e","type":"email","template_id":"t2"},{"id":"f","type":"email"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r := f.References()
	if !slices.Equal(r.Segments, []string{"s1", "s2"}) || !slices.Equal(r.Lists, []string{"l1", "l2"}) || !slices.Equal(r.Templates, []string{"t1", "t2"}) {
		t.Errorf("%+v", r)
	}
	if !f.SendsEmail() || !slices.Equal(f.Conditions(), []int{0}) {
		t.Errorf("%v, %v", f.SendsEmail(), f.Conditions())
	}
	f, err = Parse([]byte(`{"trigger":{"type":"list_joined","list_id":"l"},"steps":[{"id":"a","type":"sms"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if r := f.References(); f.SendsEmail() || f.Conditions() != nil || !slices.Equal(r.Lists, []string{"l"}) || len(r.Segments)+len(r.Templates) != 0 {
		t.Errorf("%+v", r)
	}
}

// FuzzParse: any bytes are refused with a place and a reason, or give a flow that
// its JSON gives back and that can be checked, asked and run.
func FuzzParse(f *testing.F) {
	for _, file := range []string{"refused.txt", "accepted.txt", "faults.txt"} {
		data, err := os.ReadFile("testdata/" + file)
		if err != nil {
			f.Fatal(err)
		}
		for _, line := range strings.Split(string(data), "\n") {
			if strings.HasPrefix(line, "{") {
				f.Add([]byte(line))
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		flow, err := Parse(data)
		if err != nil {
			if d, ok := err.(*segment.DefinitionError); !ok || d.Reason == "" || flow != nil {
				t.Fatalf("%v, %v", flow, err)
			}
			return
		}
		fixedPoint(t, flow)
		for _, fault := range flow.Validate(town{}) {
			if fault.Path == "" || fault.Message == "" || fault.Step != "" && !strings.HasPrefix(fault.Path, "steps[") {
				t.Fatalf("%+v", fault)
			}
		}
		_ = flow.Validate(town{}).String()
		flow.References()
		flow.SendsEmail()
		flow.Conditions()
		for _, value := range []string{`"2000-02-29"`, `"2024-05-01T23:30:00Z"`, "1714521600000"} {
			if d := flow.Trigger.Date; d != nil {
				if due, ok := d.Next([]byte(value), 1_714_521_600_000); ok && due <= 1_714_521_600_000 {
					t.Fatalf("due %d", due)
				}
			}
		}
		for i := range flow.Steps {
			s := &flow.Steps[i]
			if s.Wait != nil {
				if due := s.Wait.Due(1_714_521_600_000); due < 1_714_521_600_000 {
					t.Fatalf("due %d", due)
				}
			}
			if s.Split != nil {
				s.Split.Pick(1 << 63)
			}
			if s.Update != nil {
				checkPatch(t, s.Update)
			}
			if s.Webhook != nil {
				s.Webhook.BodyMode()
			}
		}
	})
}
