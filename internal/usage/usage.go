// Package usage reports the resources that this process has used: CPU time and peak memory, from getrusage(2). On
// systems without getrusage both are 0.
//
// It leaves out other processes, and single threads.
package usage

import "time"

// CPU returns the CPU time of all threads of this process.
func CPU() time.Duration {
	cpu, _ := Process()
	return cpu
}
