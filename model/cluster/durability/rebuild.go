package durability

import (
	"fmt"

	"farflash/numeric/units"
)

// Rebuild describes how the content of a failed drive is rebuilt.
type Rebuild struct {
	// Capacity is the amount of data that the drive held.
	Capacity units.Bytes
	// Data is the number of shards read for each one rebuilt: 1 for replicas, k for a k+m code.
	Data int
	// Helpers is the number of other drives that take part: the scatter width, or those of the group.
	Helpers int
	// Bandwidth is the bandwidth that each drive contributes to rebuilding, reads and writes together.
	Bandwidth units.ByteRate
	// Spare writes everything to one new drive. Otherwise the helpers share the writes.
	Spare bool
	// Network is the bandwidth that all rebuilding together may use of the network, counted once for each byte read; 0
	// is no limit.
	Network units.ByteRate
	// Detection is the time from the failure to the first byte.
	Detection units.Duration
}

// time returns how long a drive's content is short of a copy. With capacity C, k shards read for each one rebuilt, h
// helpers of bandwidth B and a network of W:
//
//	shared   detection + max(C (k+1) / (h B), C k / W)
//	spare    detection + max(C / B, C k / (h B), C k / W)
func (r Rebuild) time() (Hours, error) {
	switch {
	case r.Capacity <= 0:
		return 0, fmt.Errorf("a drive that holds %v has nothing to rebuild", r.Capacity)
	case r.Data < 1:
		return 0, fmt.Errorf("%d shards to read; a rebuild reads at least 1", r.Data)
	case r.Helpers < r.Data:
		return 0, fmt.Errorf("%d helpers cannot supply the %d shards that a rebuild reads", r.Helpers, r.Data)
	case r.Bandwidth <= 0:
		return 0, fmt.Errorf("a rebuild with a bandwidth of %v never ends", r.Bandwidth)
	case r.Network < 0 || r.Detection < 0:
		return 0, fmt.Errorf("a network bandwidth of %v and a detection time of %v; neither can be negative", r.Network,
			r.Detection)
	}
	c, k, b := float64(r.Capacity), float64(r.Data), float64(r.Bandwidth)
	helpers := float64(r.Helpers) * b
	seconds := c * (k + 1) / helpers
	if r.Spare {
		seconds = max(c/b, c*k/helpers)
	}
	if r.Network > 0 {
		seconds = max(seconds, c*k/float64(r.Network))
	}
	return hoursOf(r.Detection) + Hours(seconds/3600), nil
}
