package drive_test

import (
	"strings"
	"testing"

	"farflash/experiment/drive"
	"farflash/experiment/trial/trialtest"
	"farflash/numeric/units"
	"farflash/workload"
)

// TestRequests compares the requests written as a trace with those issued by a run, and verifies that requests that
// depend on a run are rejected.
func TestRequests(t *testing.T) {
	made := func(text string) (list []workload.Record, err error) {
		s, err := trialtest.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = drive.Requests(s, 1, func(r *workload.Record) error {
			list = append(list, *r)
			return nil
		})
		return list, err
	}
	const edge = "ssd: mqsim-default\nworkload: [{synthetic: {reads: {size: 4KiB, interarrival: {mean: 1ms, kind: " +
		"constant}}}, until: 5ms}]\n"
	list, err := made(edge)
	if n := trialtest.Metric(t, trialtest.Run(t, edge, 1), "read.count"); err != nil || float64(len(list)) != n ||
		list[len(list)-1].Time >= 5*units.Millisecond {
		t.Errorf("%d requests, and a run has %v (%v)", len(list), n, err)
	}

	const one = "{name: a, synthetic: {writes: {size: 4KiB, interarrival: 10us}, requests: 20}}"
	if _, err := made("ssd: mqsim-default\nworkload: [" + one +
		", {name: b, after: a, synthetic: {reads: {size: 4KiB, interarrival: 10us}, requests: 20}}]\n"); err == nil ||
		!strings.Contains(err.Error(), "b starts when others have ended") {
		t.Errorf("what begins after another is written: %v", err)
	}

	list, err = made("ssd: {preset: mqsim-default, namespaces: [{}, {}]}\nworkload: [" + one +
		", {name: b, namespace: 1, synthetic: {reads: {size: 4KiB, interarrival: 10us}, requests: 20}}]\n")
	if err != nil || len(list) != 40 {
		t.Fatalf("%d requests: %v", len(list), err)
	}
	volume := map[string]uint32{}
	for _, r := range list {
		op := r.Op.String()
		if v, ok := volume[op]; ok && v != r.Volume {
			t.Errorf("a %s of volume %d among those of %d", op, r.Volume, v)
		}
		volume[op] = r.Volume
	}
	if volume["read"]+volume["write"] != 1 {
		t.Errorf("two namespaces are the volumes %v", volume)
	}
}

// TestWornFromTheStart verifies that erases before a run count as wear.
func TestWornFromTheStart(t *testing.T) {
	const text = "ssd: {preset: tlc-enterprise, reliability: {cycles: 8458}, preconditioning: {fill: " +
		"none}}\nworkload: [{synthetic: {reads: {size: 4KiB}, requests: 20}, closed: 1}]\n"
	o := trialtest.Run(t, text, 1)
	for name, want := range map[string]float64{"ssd.wear.min": 8458, "ssd.wear.mean": 8458, "ssd.wear.max": 8458,
		"ssd.wear.life_used": 1} {
		if got := trialtest.Metric(t, o, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}
