package keyapi

import "testing"

// TestABTestWaitIsBounded: no number of seconds, however it overflows in
// milliseconds, is taken for another one.
func TestABTestWaitIsBounded(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	var c struct {
		ID string `json:"_id"`
	}
	x.call("success", "POST", "/campaign", `{"name":"n","channel":1,"subject":"s","body":"b"}`, &c)
	for _, seconds := range []string{"-1", "2592001", "18446744073709552", "9223372036854775807", "-9223372036854775808", "-18446744073709552"} {
		body := `{"variants":[{"subject":"A"},{"subject":"B"}],"all_contacts":true,"wait_seconds":` + seconds + `}`
		if m := x.call("failure", "POST", "/campaign/"+c.ID+"/ab-test/start", body, nil); m != "wait_seconds Input should be a whole number from 0 to 2592000" {
			t.Errorf("%s: %s", seconds, m)
		}
	}
}
