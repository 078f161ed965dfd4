package trial_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/experiment/trial/trialtest"
)

// TestStalls verifies that endless retransmission, by senders that never give up, ends the run with an error that names
// who waits for whom: as a whole, in parts, in a system, and in turns.
func TestStalls(t *testing.T) {
	const (
		flows = "fabric: {topology: {leaf_spine: {leaves: 2, spines: 1, hosts_per_leaf: 2}}, loss: " +
			"99.99999999%}\nflows: [{list: [{src: 0, dst: 2, size: 100KB}, {src: 1, dst: 2, size: 100KB}]}]\n"
		system = "initiators: 3\ntargets: [{count: 2, ssds: 2, ssd: tlc-enterprise}]\nfabric: {topology: {star: " +
			"{hosts: 5}}, loss: 99.99999999%}\nworkload: [{name: rd, synthetic: {reads: {size: 4KiB, interarrival: " +
			"5us}, requests: 100}}]\n"
	)
	for _, c := range []struct {
		text string
		set  []string
		want string
	}{
		{flows, []string{"fabric.parts=1"},
			"2 messages did not end (100KB from h0 to h2 since 0s; 100KB from h1 to h2 since 0s)"},
		{flows, []string{"fabric.parts=2"},
			"2 messages did not end (100KB from h0 to h2 since 0s; 100KB from h1 to h2 since 0s)"},
		{system, nil, "100 requests did not end (100 of rd, the first its request 1, a read that came at 5us); " +
			"initiator 0 (h0) waits for target 0 (h3)"},
		{system, []string{"protocol=flows", "coupling.mode=iterative"}, "100 messages did not end (4KiB from h4 to h0"},
	} {
		set := append([]string{"fabric.recovery.retries=0"}, c.set...)
		if c.text == system {
			set = append(set, "nvmf.host.io_timeout=0s")
		}
		s, err := trialtest.Parse(c.text, set...)
		if err != nil {
			t.Fatal(err)
		}
		_, err = trial.Run(context.Background(), s, experiment.Options{Seed: 1})
		if err == nil || !strings.Contains(err.Error(), "stalled at ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v; want %q", c.set, err, c.want)
		}
	}
}

// TestGivesUp verifies that a sender that gives up, a controller that is lost for good and commands that were repeated
// too often fail the run, with their report.
func TestGivesUp(t *testing.T) {
	const (
		flows = "fabric: {topology: {leaf_spine: {leaves: 2, spines: 1, hosts_per_leaf: 2}}, loss: " +
			"99.99999999%}\nflows: [{list: [{src: 0, dst: 2, size: 100KB}, {src: 1, dst: 2, size: 100KB}]}]\n"
		system = "targets: [{count: 1, ssds: 1, ssd: tlc-enterprise}]\nfabric: {topology: {star: {hosts: 2}}, loss: " +
			"99.99999999%}\nworkload: [{synthetic: {reads: {size: 4KiB, interarrival: 5us}, requests: 10}}]\n"
	)
	for _, c := range []struct {
		text, set, want string
		failed, lost    float64
	}{
		{flows, "fabric.parts=1", "every flow ends: 2 queue pairs gave up after 7 retransmissions in a row", 0, 0},
		{flows, "fabric.parts=2", "every flow ends: 2 queue pairs gave up after 7 retransmissions in a row", 0, 0},
		// The queue pair gives up after 12.8 s, before the command is overdue.
		{system, "nvmf.host.ctrl_loss=60s", "every target can be reached: 1 controller given up after 1min " +
			"(nvmf.host.ctrl_loss), and 10 commands failed; initiator 0 (h0) lost target 0 (h1) at 12.81779", 10, 1},
		{system, "nvmf.host.max_retries=0", "every command ends well: 10 commands failed: they had been repeated 0 times",
			10, 1},
	} {
		out, failed := failures(t, c.text, c.set)
		if !strings.Contains(failed, c.want) {
			t.Errorf("%s: %s, want %s", c.set, failed, c.want)
		}
		if c.text == system && (trialtest.Metric(t, out, "nvmf.failed") != c.failed ||
			trialtest.Metric(t, out, "nvmf.losses") != c.lost) {
			t.Errorf("%s: %v commands failed", c.set, trialtest.Metric(t, out, "nvmf.failed"))
		}
	}
}

// TestFoundAgain: a controller is given up at 4.11 s, and tried again at 7.11 s, whose message is repeated until the
// link is up at 8 s. The reads of seconds 1 to 8 fail, which is reported and fails no check.
func TestFoundAgain(t *testing.T) {
	const text = "targets: [{count: 1, ssds: 1, ssd: tlc-enterprise}]\nfabric: {topology: {star: {hosts: 2}}, failures: " +
		"[{a: h1, b: s0, at: 1ms, until: 8s}]}\nworkload: [{synthetic: {reads: {size: 4KiB, interarrival: 1s}, requests: " +
		"20}}]\nnvmf: {host: {io_timeout: 100ms, reconnect_delay: 10ms, ctrl_loss: 10ms, rediscovery: 60s}}\n"
	out, failed := failures(t, text)
	const want = "8 commands failed: 1 controller given up after 10ms (nvmf.host.ctrl_loss), and found again " +
		"(nvmf.host.rediscovery)"
	if failed != "" || !slices.Contains(out.Result.Warnings, want) {
		t.Errorf("%s; %q; want %s", failed, out.Result.Warnings, want)
	}
	if _, failed := failures(t, text, "nvmf.host.rediscovery=0s"); !strings.Contains(failed, "1 controller given up") {
		t.Errorf("without discovery: %q", failed)
	}
}

// failures runs a scenario with changes, and returns the laws that fail.
func failures(t *testing.T, text string, sets ...string) (out *experiment.Outcome, failed string) {
	t.Helper()
	s, err := trialtest.Parse(text, sets...)
	if err != nil {
		t.Fatal(err)
	}
	if out, err = trial.Run(t.Context(), s, experiment.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	for _, law := range out.Result.Checks {
		if !law.OK {
			failed += law.Name + ": " + law.Detail
		}
	}
	return out, failed
}

// TestHostCutOff verifies that a host whose link is down permanently is named, with its uncompleted requests. That is a
// failure and not an overload; a run with a time limit reports it.
func TestHostCutOff(t *testing.T) {
	const text = `
initiators: 4
targets: [{count: 2, ssds: 1, ssd: tlc-enterprise}]
place: {initiators: spread, targets: spread}
fabric: {topology: {leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 3}}, host_link: 25Gbps, failures: [{a: h1, b: leaf0, at: 5ms}]}
workload: [{name: rw, synthetic: {reads: {size: 16KiB, interarrival: 20us}, writes: {size: 16KiB, interarrival: 40us}, requests: 3000}}]
`
	for _, c := range []struct {
		set   string
		fails bool
		want  string
	}{
		{"measure.until=end", true, "h1 cannot be reached; the link between h1 and leaf0 is down for good since 5ms"},
		{"measure.until=20ms", false,
			"h1 cannot be reached; the link between h1 and leaf0 is down for good since 5ms: "},
		{"fabric.failures[0].until=6ms", false, ""},
		{"fabric.failures=[{a: leaf0, b: spine0, at: 2ms, until: 4ms}, {a: h1, b: leaf0, at: 5ms, until: 9ms}]; " +
			"protocol=nvme-tcp; fabric.transport=tcp; workload[0].synthetic.reads.interarrival={mean: 20us, scv: 9}", false, ""},
	} {
		out, failed := failures(t, text, strings.Split(c.set, "; ")...)
		said := strings.Join(out.Result.Warnings, "\n")
		if c.fails {
			said = failed + said
		}
		if (failed != "") != c.fails || !strings.Contains(said, c.want) || strings.Contains(said, "overload") ||
			(c.want == "") == strings.Contains(said, "cannot be reached") {
			t.Errorf("%s: failed %q; %s", c.set, failed, said)
		}
	}
}
