package qos_test

import (
	"encoding/json"
	"strings"
	"testing"

	"farflash/flash/qos"
)

// TestLimitText verifies that limits are parsed, printed as they are parsed, and survive JSON, and which texts are
// refused.
func TestLimitText(t *testing.T) {
	for text, want := range map[string]qos.Limit{
		"none":                    {},
		"100MB/s":                 {Bytes: 100e6, Burst: qos.DefaultBurst},
		"1B/s":                    {Bytes: 1, Burst: qos.DefaultBurst},
		"5000iops":                {Operations: 5000, Burst: qos.DefaultBurst},
		"latency":                 {Class: qos.Latency, Burst: qos.DefaultBurst},
		"1MiB/s,1iops,latency":    {Class: qos.Latency, Bytes: 1 << 20, Operations: 1, Burst: qos.DefaultBurst},
		"9223372036854775807iops": {Operations: 1<<63 - 1, Burst: qos.DefaultBurst},
	} {
		got, err := qos.ParseLimit(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: %+v, %v, printed as %s", text, got, err, got)
		}
		b, err := json.Marshal(got)
		var back qos.Limit
		if err == nil {
			err = json.Unmarshal(b, &back)
		}
		if err != nil || back != got {
			t.Errorf("%s: %s becomes %+v, %v", text, b, back, err)
		}
	}
	if got, err := qos.ParseLimit("latency,throughput,2iops"); err != nil || got.String() != "2iops" {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{"": "not a rate", "fast": "not a rate", "0B/s": "not a rate",
		"5": "not a rate", "none,5iops": "not a rate", "0iops": "of operations", "-1iops": "of operations",
		"1.5iops": "of operations", "iops": "of operations", "9223372036854775808iops": "of operations"} {
		if _, err := qos.ParseLimit(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestLimitBounds verifies that a limit is refused beyond its bounds, and taken at them.
func TestLimitBounds(t *testing.T) {
	for _, x := range []struct {
		l    qos.Limit
		want string // in the error; empty: none
	}{
		{qos.Limit{Burst: 0}, ""}, {qos.Limit{Burst: 1e12}, ""}, {qos.Limit{Burst: 1e12 + 1}, "burst"},
		{qos.Limit{Burst: -1}, "burst"}, {qos.Limit{Bytes: -1}, "rate"}, {qos.Limit{Operations: -1}, "rate"},
		{qos.Limit{Bytes: 1, Operations: 1, Class: qos.Latency}, ""}, {qos.Limit{Class: 2}, "class"},
	} {
		err := x.l.Validate()
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%+v: %v, want %q", x.l, err, x.want)
		}
	}
}
