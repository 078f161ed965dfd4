package result

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"farflash/internal/usage"
)

// Timing is timing.json: what depends on the machine and the wall clock.
type Timing struct {
	WallS      float64 `json:"wall_s"`
	CPUS       float64 `json:"cpu_s"` // user and system time of the whole process
	EventsPerS float64 `json:"events_per_s"`
	// largest resident set; absent on systems that do not report it
	PeakMemoryB int64   `json:"peak_memory_bytes,omitempty"`
	Started     string  `json:"started"` // RFC 3339
	Machine     Machine `json:"machine"`
	CommandLine string  `json:"command_line,omitempty"`
	Parallel    int     `json:"parallel,omitempty"` // trials run at once, this one included
}

// Machine describes the machine that a run was timed on.
type Machine struct {
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	CPU        string `json:"cpu,omitempty"`
	CPUs       int    `json:"cpus"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	Go         string `json:"go"`
}

// Stopwatch measures the times of a run.
type Stopwatch struct {
	start time.Time
	cpu   time.Duration
}

// StartTiming starts a stopwatch.
func StartTiming() Stopwatch {
	return Stopwatch{start: time.Now(), cpu: usage.CPU()}
}

// Timing returns the times since the start, for a run of events.
func (s Stopwatch) Timing(events int64) Timing {
	wall := time.Since(s.start)
	cpu, peak := usage.Process()
	t := Timing{
		WallS: wall.Seconds(), CPUS: (cpu - s.cpu).Seconds(), PeakMemoryB: peak,
		Started: s.start.UTC().Format(time.RFC3339),
		Machine: Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: processor(), CPUs: runtime.NumCPU(),
			GOMAXPROCS: runtime.GOMAXPROCS(0), Go: runtime.Version()},
	}
	if t.WallS > 0 {
		t.EventsPerS = float64(events) / t.WallS
	}
	return t
}

// encode returns timing.json.
func (t Timing) encode() ([]byte, error) {
	text, err := json.MarshalIndent(t, "", "  ")
	return append(text, '\n'), err
}

// decodeTiming reads timing.json. Its errors are DecodeErrors.
func decodeTiming(text []byte) (Timing, error) {
	var t Timing
	return t, decodeJSON(text, &t)
}

// String describes the machine in one line.
func (m Machine) String() string {
	name := m.CPU
	if name == "" {
		name = m.Arch
	}
	return fmt.Sprintf("%s, %d CPUs, %s/%s, %s", name, m.CPUs, m.OS, m.Arch, m.Go)
}

// processor returns the processor's name from /proc/cpuinfo, or "" on systems without it.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
