package synth

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"testing"

	"farflash/numeric/units"
	"farflash/workload"
	"farflash/workload/characterise"
)

// TestSameBytesOnEveryMachine compares a workload that uses every distribution with a hash computed once. It fails if a
// compiler fuses a multiplication with an addition, or if a change of the generator changes the workloads of old seeds.
func TestSameBytesOnEveryMachine(t *testing.T) {
	hash := fnv.New64a()
	second := heavy()
	second.Reads.Size = Size{Mean: 9 * units.KB, Shape: Shape{SCV: 3, ACF1: 0.1}, Granule: 4 * units.KiB}
	second.Reads.Addresses = Addresses{Pattern: Pareto, Space: units.TiB, H: 0.2}
	second.Writes.Interarrival.Shape = Shape{SCV: 0.3}
	second.Writes.Addresses.Pattern = Uniform
	for _, cfg := range []Config{heavy(), second} {
		cfg.Requests = 50000
		g, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		m := characterise.New()
		var r workload.Record
		for g.Next(&r) == nil {
			fmt.Fprintln(hash, r.Time, r.Op, r.Offset, r.Size)
			m.Add(&r)
		}
		text, err := json.Marshal(m.Result())
		if err != nil {
			t.Fatal(err)
		}
		hash.Write(text)
	}
	const want = 0x3a0a620a1feaf19a
	if got := hash.Sum64(); got != want {
		t.Errorf("hash %#x, want %#x", got, uint64(want))
	}
}
