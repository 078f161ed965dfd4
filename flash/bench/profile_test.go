package bench

import (
	"bytes"
	"testing"

	"github.com/google/pprof/profile"
)

// TestPart verifies that the order of the rules decides, not the innermost matching frame.
func TestPart(t *testing.T) {
	for _, x := range []struct {
		want  Part
		stack []string
	}{
		{Network, []string{"internal/runtime/syscall.Syscall6", "syscall.Syscall", "syscall.write", "syscall.Write",
			"internal/poll.(*FD).Write", "net.(*conn).Write", "farflash/flash/bench.(*bench).servePlain"}},
		{Storage, []string{"internal/runtime/syscall.Syscall6", "syscall.Syscall6", "syscall.Pread",
			"internal/poll.(*FD).Pread", "os.(*File).ReadAt", "farflash/flash/bench.(*bench).servePlain"}},
		{Storage, []string{"internal/runtime/syscall.Syscall6", "syscall.Syscall6",
			"farflash/flash/uring.(*Ring).enter", "farflash/flash/uring.(*Device).submit"}},
		{Network, []string{"internal/runtime/syscall.Syscall6", "syscall.RawSyscall6",
			"farflash/flash/uring.(*Socket).SendVectors", "farflash/flash/driver.(*driven[...]).try"}},
		{Scheduling, []string{"runtime.futex", "runtime.notesleep", "runtime.findRunnable", "runtime.schedule",
			"runtime.park_m", "runtime.mcall"}},
		{Scheduling, []string{"runtime.goready", "runtime.chansend", "farflash/flash/verbs/stream.signal"}},
		{Other, []string{"runtime.scanobject", "runtime.gcDrain", "runtime.gcBgMarkWorker"}},
		{Requests, []string{"hash/crc32.ieeeCLMUL", "farflash/flash/wire.Sum",
			"farflash/flash/verbs.(*QueuePair).Fill"}},
		{Requests, []string{"runtime.memmove", "farflash/flash/bench.(*bench).servePlain"}},
		{Other, []string{"runtime.memmove"}},
		{Other, nil},
	} {
		if got := part(x.stack); got != x.want {
			t.Errorf("%q is of %v, want %v", x.stack, got, x.want)
		}
	}
}

// profiled returns a handmade profile: three samples of a server's write, one of unlabelled scheduling, and five of a
// client.
func profiled() *profile.Profile {
	write, futex := &profile.Function{ID: 7, Name: "syscall.write"}, &profile.Function{ID: 8, Name: "runtime.futex"}
	server := &profile.Location{ID: 1, Line: []profile.Line{{Function: write}}}
	nobody := &profile.Location{ID: 2, Line: []profile.Line{{Function: futex}, {Function: write}}}
	return &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		Sample: []*profile.Sample{
			{Location: []*profile.Location{server}, Value: []int64{3, 30},
				Label: map[string][]string{ends: {"server"}}},
			{Location: []*profile.Location{nobody}, Value: []int64{1, 10}},
			{Location: []*profile.Location{server}, Value: []int64{5, 50},
				Label: map[string][]string{ends: {"client"}}},
		},
		Location: []*profile.Location{server, nobody}, Function: []*profile.Function{write, futex},
	}
}

func TestCosts(t *testing.T) {
	read := func(p *profile.Profile) (Costs, error) {
		var b bytes.Buffer
		if err := p.Write(&b); err != nil {
			t.Fatal(err)
		}
		return costs(&b)
	}
	c, err := read(profiled())
	if err != nil || c.Samples != 4 || c.Shares[Network] != 0.75 || c.Shares[Scheduling] != 0.25 {
		t.Errorf("%+v, %v", c, err)
	}
	none := profiled()
	none.Sample = none.Sample[2:]
	if _, err := read(none); err == nil {
		t.Error("a profile of clients alone has a server's costs")
	}
}
