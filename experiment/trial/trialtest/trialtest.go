// Package trialtest supports tests of experiments: it runs scenarios given as text.
//
// Run returns a run's outcome after verifying every law; Metric returns one of its figures. The texts are small
// scenarios shared by several tests. It leaves out anything that is not for tests.
package trialtest

import (
	"context"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/scenario"
	"farflash/scenario/shape"
)

// Small scenarios.
const (
	// SmallFabric is a network of nine hosts.
	SmallFabric = `fabric:
  topology: {star: {hosts: 9}}
  host_link: 40Gbps
flows: [{incast: {fan: 8, size: 10KB}}]
`
	// TinyDrive is a drive, as the value of a key, that collects garbage continuously.
	TinyDrive = `{preset: mqsim-default, geometry: {channels: 2, chips_per_channel: 2, dies_per_chip: 1, planes_per_die: 1, blocks_per_plane: 32, pages_per_block: 32}, over_provisioning: 25%, cache: {capacity: 1MiB}, collection: {victim: greedy}}`
	// SmallSystem is three initiators and four drives.
	SmallSystem = `initiators: 3
targets: [{count: 2, ssds: 2, ssd: tlc-enterprise}]
workload: [{synthetic: {reads: {size: 4KiB, interarrival: 5us}, requests: 100}}]
`
	// SmallCluster is an object cluster of two groups.
	SmallCluster = `object_cluster: {gateways: 18, targets: 18}
measure: {until: 5ms}
`
	// Mixed is a drive with reads and writes.
	Mixed = `
ssd: {preset: mqsim-default, geometry: {blocks_per_plane: 64, pages_per_block: 64}, over_provisioning: 25%, cache: {capacity: 1MiB}, preconditioning: {fill: steady}}
workload:
  - name: reads
    synthetic: {reads: {size: 4KiB, interarrival: {mean: 60us, scv: 4}}, requests: 3000}
  - name: writes
    synthetic: {writes: {size: 8KiB, interarrival: 400us, addresses: {align: 8KiB}}, requests: 500}
`
)

// Parse parses a text as a.yaml, with changes as for --set.
func Parse(text string, set ...string) (*scenario.Scenario, error) {
	var changes []shape.Change
	for _, s := range set {
		c, err := shape.ParseChange(s)
		if err != nil {
			return nil, err
		}
		changes = append(changes, c)
	}
	return scenario.Parse(shape.Source{File: "a.yaml", Text: []byte(text)}, changes)
}

// Run simulates a scenario's text.
func Run(t testing.TB, text string, seed uint64, set ...string) *experiment.Outcome {
	t.Helper()
	s, err := Parse(text, set...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := trial.Run(context.Background(), s, experiment.Options{Seed: seed, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range out.Result.Checks {
		if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
	return out
}

// Metric returns a figure that the result must have.
func Metric(t testing.TB, o *experiment.Outcome, name string) float64 {
	t.Helper()
	m, ok := o.Result.Metric(name)
	if !ok {
		t.Fatalf("no metric %s", name)
	}
	return m.Value
}

// RoundTrip verifies that a resolved scenario loads to the same scenario.
func RoundTrip(t testing.TB, s *scenario.Scenario) {
	t.Helper()
	text := s.Resolved()
	back, err := scenario.Parse(shape.Source{File: "resolved.yaml", Text: []byte(text)}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	a, err := s.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := back.Digest(); err != nil || a != b {
		t.Errorf("digests %s and %s (%v)", a, b, err)
	}
	again := strings.NewReplacer("  # default", "", "  # set", "")
	if again.Replace(back.Resolved()) != again.Replace(text) {
		t.Errorf("the resolved scenario loads to something else:\n%s\nand\n%s", text, back.Resolved())
	}
}
