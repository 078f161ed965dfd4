package trial

import (
	"context"
	"fmt"
	"testing"

	"farflash/experiment"
	"farflash/experiment/system"
	"farflash/model/cosim"
	"farflash/numeric/units"
	"farflash/result/columnar"
	"farflash/scenario"
	"farflash/scenario/shape"
)

const sampledSystem = `initiators: 2
targets: [{count: 2, ssds: 2, ssd: mqsim-default}]
fabric: {topology: {star: {hosts: 4}}, host_link: 25Gbps, delay: 1us}
workload:
  - synthetic: {reads: {size: 16KiB, interarrival: {mean: 30us}}, writes: {size: 8KiB, interarrival: {mean: 60us}}, requests: 200}
`

// TestRequestRows verifies the route of a request in the rows of requests.parquet, and that its times are in causal
// order.
func TestRequestRows(t *testing.T) {
	for _, mode := range []string{"coupled", "iterative"} {
		t.Run(mode, func(t *testing.T) {
			s, err := scenario.Parse(shape.Source{File: "s.yaml",
				Text: []byte(sampledSystem + "protocol: flows\ncoupling: {mode: " + mode +
					", iterative: {full: true}}\n")}, nil)
			if err != nil {
				t.Fatal(err)
			}
			drives := map[string]bool{}
			n := 0
			_, err = Run(context.Background(), s, experiment.Options{Seed: 1, Sample: func(x cosim.Sample) error {
				q := requestOf(&x)
				n++
				drives[fmt.Sprint(q.Target, q.Drive)] = true
				if q.Drive/2 != q.Target || q.Initiator < 0 || q.Initiator > 1 {
					t.Errorf("request %d went from initiator %d to drive %d of target %d", q.ID, q.Initiator, q.Drive,
						q.Target)
				}
				first, second, third, fourth := q.StorageArrival, q.StorageDeparture, q.NetworkArrival,
					q.NetworkDeparture
				if q.Op == "write" {
					first, second, third, fourth = third, fourth, first, second
				}
				if q.Arrival > first || first >= second || second > third || third >= fourth || fourth > q.Completion {
					t.Errorf("the times of request %d (%s) are %+v", q.ID, q.Op, q)
				}
				var sum units.Duration
				for _, d := range q.Stage {
					sum += d
				}
				if sum != q.Completion-q.Arrival {
					t.Errorf("request %d took %v, its stages %v", q.ID, q.Completion-q.Arrival, sum)
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			if n != 200 || len(drives) != 4 {
				t.Errorf("%d requests of 200, on %d drives of 4", n, len(drives))
			}
		})
	}
	if len(columnar.Request{}.Stage) != len(system.Stages) {
		t.Errorf("columns for %d stages of %d", len(columnar.Request{}.Stage), len(system.Stages))
	}
}
