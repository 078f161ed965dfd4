//go:build !unix

package usage

import "time"

// Process returns zeros: this system has no getrusage.
func Process() (cpu time.Duration, peak int64) { return 0, 0 }
