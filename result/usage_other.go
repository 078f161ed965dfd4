//go:build !unix

package result

import "time"

// usage returns zeros: this system has no getrusage.
func usage() (cpu time.Duration, peak int64) { return 0, 0 }
