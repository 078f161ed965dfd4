// Package usage reports what this process has used of the machine: CPU time and peak memory, by getrusage(2). On
// systems without getrusage both are 0.
//
// What it leaves out: other processes, and single threads.
package usage

import "time"

// CPU returns the CPU time of this process, all its threads included.
func CPU() time.Duration {
	cpu, _ := Process()
	return cpu
}
