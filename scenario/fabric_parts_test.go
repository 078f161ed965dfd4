package scenario

import (
	"bytes"
	"context"
	"farflash/shape"
	"fmt"
	"testing"
)

// TestParts holds that a network gives the same bytes in any number of parts, pauses and flows
// included.
func TestParts(t *testing.T) {
	for _, c := range []struct{ name, more string }{
		{"dcqcn", "congestion_control: dcqcn"},
		{"hpcc", "congestion_control: hpcc"},
		{"pint", "congestion_control: hpcc-pint"},
		{"swift", "congestion_control: swift"},
		{"pauses", "congestion_control: none, buffer: 1MiB"},
		{"stuck", "congestion_control: none, buffer: 1MiB, watchdog: {after: 20us}"},
		{"lost", "congestion_control: dctcp, pfc: {enabled: false}, buffer: 200KB, recovery: {kind: selective-repeat}"},
		{"messages", "congestion_control: timely, queue_pairs: {life: per-message}, acks: {every: 4}"},
		{"hpcc compat", "compat: hpcc, random: own, congestion_control: dcqcn"},
	} {
		t.Run(c.name, func(t *testing.T) {
			counts := []int{1, 2, 3, 4, 7}
			if testing.Short() {
				if c.name != "hpcc" && c.name != "pauses" {
					t.Skip("two of them are enough for a short test")
				}
				counts = []int{1, 2}
			}
			text := fmt.Sprintf(`name: parts
fabric: {topology: {clos: {pods: 4, leaves: 2, tors: 2, hosts_per_pod: 4, spines: 2}}, %s}
flows:
  - poisson: {load: 60%%, sizes: alistorage-2019, duration: 300us}
  - incast: {fan: 12, size: 100KB, rounds: 2, every: 100us, target: 1}
  - class: 5
    permutation: {size: 30KB}
measure: {warm_up: 50us}
`, c.more)
			var want []byte
			for _, parts := range counts {
				s, err := Parse(shape.Source{File: "parts.yaml", Text: []byte(text)}, []shape.Change{{Path: "fabric.parts", Value: fmt.Sprint(parts)}})
				if err != nil {
					t.Fatal(err)
				}
				var b bytes.Buffer
				out, err := s.Run(context.Background(), Options{Seed: 3,
					Flow:  func(f Flow) error { _, err := fmt.Fprintln(&b, f); return err },
					Pause: func(p Pause) error { _, err := fmt.Fprintln(&b, p); return err }})
				if err != nil {
					t.Fatal(err)
				}
				if !out.Result.OK() {
					t.Errorf("%d parts: %v", parts, out.Result.Checks)
				}
				text, err := out.Result.Encode()
				if err != nil {
					t.Fatal(err)
				}
				b.Write(text)
				switch {
				case want == nil:
					want = b.Bytes()
				case !bytes.Equal(want, b.Bytes()):
					t.Errorf("%d parts give another result than one", parts)
				}
			}
		})
	}
}
