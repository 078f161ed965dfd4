package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"farflash/cli/verb"
	"farflash/internal/inputs"
	"farflash/sim"
)

// TestFaults runs the shared inputs that once broke the program: each returns the expected exit code, without a panic.
func TestFaults(t *testing.T) {
	dir := inputs.Path(t, "cases/faults")
	for _, x := range []struct {
		name string
		args []string
		code int
		want string // on standard error
	}{
		{"overflow-erase", []string{"run", "overflow-erase.yaml"}, verb.ExitUsage,
			"overflow-erase.yaml:1:260: ssd.timing.erase_latency: a time of 1000000s is not possible"},
		{"panic-divzero-group", []string{"run", "panic-divzero-group.yaml"}, verb.ExitUsage,
			"object_cluster.group: 0 targets cannot store 3 replicas"},
		{"panic-packet-gateways", []string{"run", "panic-packet-gateways.yaml"}, verb.ExitUsage,
			"object_cluster.gateways: -1 is not possible"},
		{"negative-energy", []string{"run", "negative-energy.yaml"}, verb.ExitUsage,
			"ssd.energy.idle_watts: -5 W are not possible"},
		{"class7", []string{"check", "class7.yaml"}, verb.ExitUsage,
			"class7.yaml:2:52: flows[0].list[0].class: 7 is not possible"},
		{"class7 run", []string{"run", "class7.yaml"}, verb.ExitUsage,
			"class7.yaml:2:52: flows[0].list[0].class: 7 is not possible"},
		{"data rate", []string{"check", "base-drive.yaml", "--set", "ssd.dram.data_rate=1e-9GT/s"}, verb.ExitUsage,
			"ssd.dram.data_rate: 1T/s is not possible"},
		{"burst", []string{"check", "base-drive.yaml", "--set", "ssd.host.burst=2147483648"}, verb.ExitUsage,
			"ssd.host.burst: 2147483648 is not possible"},
		{"stuck-inflight", []string{"check", "stuck-inflight.yaml"}, verb.ExitUsage,
			"ssd.host.fetch_size: 4294967296 is not possible"},
		{"panic-timer-past", []string{"run", "panic-timer-past.yaml", "--quiet"}, verb.ExitFailed,
			"every flow ends: h0 cannot be reached; the link between h0 and s0 is down for good since 10us: 1 " +
				"message did not end"},
		{"panic-failed-link-system", []string{"run", "panic-failed-link-system.yaml", "--quiet"}, verb.ExitFailed,
			"every target can be reached: 1 controller given up after 10min (nvmf.host.ctrl_loss), and 82 commands " +
				"failed; initiator 0 (h0) lost target 0 (h1) at 12.818793389s; h0 cannot be reached; the link between h0 and " +
				"s0 is down for good since 1ms"},
		{"txq-check", []string{"run", "txq-check.yaml", "--quiet"}, verb.ExitDone, ""},
		{"parts-poisson", []string{"run", "parts-poisson.yaml", "--quiet"}, verb.ExitDone, ""},
		{"parts-poisson in one", []string{"run", "parts-poisson.yaml", "--quiet", "--set", "fabric.parts=1"},
			verb.ExitDone, ""},
		{"cluster-util-80000",
			[]string{"run", "cluster-util-80000.yaml", "--quiet", "--fail-if", "cluster.link.utilisation>1"},
			verb.ExitDone, ""},
		{"utilisation", []string{"run", "utilisation.yaml", "--quiet", "--fail-if", "ssd.utilisation.die>1"},
			verb.ExitDone, ""},
		{"base-drive", []string{"run", "base-drive.yaml", "--quiet"}, verb.ExitDone, ""},
		{"panic-timeline-trace", []string{"run", "panic-timeline-trace.yaml", "--quiet"}, verb.ExitDone, ""},
		{"trace-overflow", []string{"run", "trace-overflow.yaml"}, verb.ExitFailed,
			"days.csv:3: scale 10 moves the request"},
		{"fit", []string{"trace", "fit", "fit-notes.k5.csv"}, verb.ExitUsage, "fit-notes.k5.csv:3: Offset is"},
		{"fit skipping", []string{"trace", "fit", "fit-notes.k5.csv", "--skip-bad", "100"}, verb.ExitDone, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Chdir(dir)
			args := x.args
			if args[0] == "run" {
				args = append(args, "-o", filepath.Join(t.TempDir(), "run"))
			}
			var out, errs bytes.Buffer
			if code := Main(args, strings.NewReader(""), &out, &errs); code != x.code ||
				!strings.Contains(errs.String(), x.want) {
				t.Errorf("exit %d, not %d: %s", code, x.code, errs.String())
			}
			if x.name == "fit skipping" {
				file := filepath.Join(t.TempDir(), "fitted.yaml")
				if err := os.WriteFile(file, append(out.Bytes(), "ssd: mqsim-default\n"...), 0o666); err != nil {
					t.Fatal(err)
				}
				if code := Main([]string{"check", file}, strings.NewReader(""), &out, &errs); code != verb.ExitDone {
					t.Errorf("what was fitted does not load: %s", errs.String())
				}
			}
		})
	}
}

// TestPanic verifies that a panic becomes an error that asks for a report, with the stack trace only on request.
func TestPanic(t *testing.T) {
	for _, debug := range []string{"", "1"} {
		t.Setenv("FARFLASH_DEBUG", debug)
		p := newProgram(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
		err := p.carry(func(context.Context) error { panic("the sum is wrong") })
		f, ok := err.(*verb.Error)
		if !ok || f.Code != verb.ExitFailed || !strings.Contains(f.Error(), "panic: the sum is wrong") {
			t.Fatalf("%v", err)
		}
		if traced := strings.Contains(f.Error(), "TestPanic"); traced != (debug != "") {
			t.Errorf("with FARFLASH_DEBUG=%q: %v", debug, err)
		}
		if debug == "" && !strings.Contains(f.Error(), "please report it") {
			t.Errorf("%v", err)
		}
	}
}

// TestClockEnds verifies that scheduling beyond the clock's range is distinguished from scheduling in the past, which
// is a bug in a model.
func TestClockEnds(t *testing.T) {
	for _, x := range []struct {
		at    sim.Time
		clock bool
	}{{-1 << 63, true}, {5, false}} {
		func() {
			defer func() {
				if _, clock := recover().(*sim.ClockError); clock != x.clock {
					t.Errorf("at %v: %v", x.at, clock)
				}
			}()
			e := sim.New()
			self := e.NewComponent()
			var h handler
			to := e.AddHandler(&h)
			h = func() { e.Schedule(self, to, x.at, 0, 0) }
			e.Schedule(self, to, 10, 0, 0)
			e.Run(sim.Forever)
		}()
	}
}

type handler func()

func (h *handler) Handle(sim.Event) { (*h)() }
