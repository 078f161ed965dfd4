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
