package drive_test

import (
	"testing"

	"farflash/experiment/trial/trialtest"
)

// peerLoad is a load of docs/validation/speed.md, as written by `farflash convert mqsim`, on which whole runs are
// compared with MQSim.
const peerLoad = `
workload:
  - name: flow0
    mqsim: {requests: 400000}
    closed: 32
    start: 1ns
    queue: {depth: 65535, class: high}
    latency_from: submission
ssd:
  compat: mqsim
  timing: {data_out_setup: 0s}
  host: {commands: 0}
  dram: {data_rate: 100MT/s, burst_size: 1B}
  cache: {destage: first-touch}
  mapping: {grain: page, ideal: false, cmt_shared: false, allocation: static}
  collection: {victim: d-choices, choices: 11, start: 5%, preemptible: false, concurrent: 10, streams: true}
  wear: {static: 0}
  initial: on-read
  namespaces: [{cache: write}]
`

// BenchmarkRun measures whole runs, from the text to the result.
func BenchmarkRun(b *testing.B) {
	for _, l := range []struct {
		name string
		set  []string
	}{
		{"read/ideal", []string{"ssd.geometry.blocks_per_plane=128", "ssd.mapping.ideal=true",
			"ssd.collection.choices=7"}},
		{"read/miss", nil},
		{"write/cached", []string{"workload[0].mqsim.reads=0%", "workload[0].closed=16", "ssd.mapping.ideal=true"}},
		{"write/collecting", []string{
			"workload[0].mqsim={reads: 0%, working_set: 60%, align: 8KiB, size: 8KiB, requests: 800000}",
			"workload[0].closed=64", "ssd.mapping.ideal=true",
			"ssd.geometry={blocks_per_plane: 64, pages_per_block: 64}", "ssd.collection.victim=greedy",
			"ssd.namespaces=[{cache: off}]",
		}},
	} {
		b.Run(l.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				trialtest.Run(b, peerLoad, 1, l.set...)
			}
		})
	}
}
