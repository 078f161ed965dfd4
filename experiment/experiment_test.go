package experiment_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/scenario/shape"
	"farflash/sim"
)

// kind builds experiments with a test's function.
type kind struct {
	build func(*experiment.Options) (experiment.Experiment, error)
}

func (kind) Is(*scenario.Scenario) bool { return true }

func (k kind) Build(_ *scenario.Scenario, o *experiment.Options) (experiment.Experiment, error) {
	return k.build(o)
}

func of(x experiment.Experiment) kind {
	return kind{func(*experiment.Options) (experiment.Experiment, error) { return x, nil }}
}

// read parses a scenario's text as the file a.yaml.
func read(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse(shape.Source{File: "a.yaml", Text: []byte(text)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const (
	driveText   = "ssd: mqsim-default\nworkload: [{mqsim: {requests: 3}, closed: 1}]\n"
	networkText = "fabric: {topology: {star: {hosts: 3}}}\nflows: [{list: [{src: 0, dst: 1, size: 1KB}]}]\n"
)

// TestRun verifies that models are built, run to the scenario's end, asked for their results, and closed, and that the
// result identifies its scenario, seed and version.
func TestRun(t *testing.T) {
	s := read(t, driveText+"measure: {until: 3s}\n")
	digest, err := s.Digest()
	if err != nil {
		t.Fatal(err)
	}
	x := &script{stands: []experiment.RunState{{At: 3 * units.Second}}, fill: func(o *experiment.Outcome) error {
		o.Events = 12
		return nil
	}}
	told := 0
	out, err := experiment.Run(context.Background(), of(x), words(), s,
		experiment.Options{Seed: 7, Version: "v1", Progress: func(experiment.Progress) { told++ }})
	if err != nil {
		t.Fatal(err)
	}
	r := out.Result
	if r.Digest != digest || r.Seed != 7 || r.Version != "v1" || r.Name != "a" || out.Events != 12 ||
		out.Interrupted || r.Interrupted || told != 1 {
		t.Errorf("%+v, %+v, told %d times", out, r, told)
	}
	if want := []string{"to 3s", "fill", "close"}; !slices.Equal(x.calls, want) {
		t.Errorf("%v, not %v", x.calls, want)
	}

	ctx, cancel := context.WithCancel(context.Background())
	x = &script{stands: []experiment.RunState{{At: units.Second}}, each: func() error { cancel(); return nil }}
	if out, err = experiment.Run(ctx, of(x), words(), s, experiment.Options{}); err != nil || !out.Interrupted ||
		!out.Result.Interrupted {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestRunFails verifies that the models are closed whichever step of a run fails, and that the errors are returned.
func TestRunFails(t *testing.T) {
	broken, held := errors.New("broken"), errors.New("a file stays open")
	over := []experiment.RunState{{At: units.Second, Over: true}}
	for _, c := range []struct {
		name  string
		x     *script
		want  []error
		calls string
	}{
		{"advance", &script{each: func() error { return broken }}, []error{broken},
			"to " + sim.Forever.String() + ", close"},
		{"fill", &script{stands: over, fill: func(*experiment.Outcome) error { return broken }}, []error{broken},
			"to " + sim.Forever.String() + ", fill, close"},
		{"close", &script{stands: over, closed: held}, []error{held}, "to " + sim.Forever.String() + ", fill, close"},
		{"fill and close", &script{stands: over, fill: func(*experiment.Outcome) error { return broken },
			closed: held}, []error{broken, held}, "to " + sim.Forever.String() + ", fill, close"},
		{"the clock", &script{each: func() error { panic(&sim.ClockError{Now: sim.Forever}) }}, nil,
			"to " + sim.Forever.String() + ", close"},
	} {
		_, err := experiment.Run(context.Background(), of(c.x), words(), read(t, driveText), experiment.Options{})
		if err == nil {
			t.Errorf("%s: nothing is wrong", c.name)
		}
		for _, want := range c.want {
			if !errors.Is(err, want) {
				t.Errorf("%s: %v is not %v", c.name, err, want)
			}
		}
		if end := new(sim.ClockError); c.want == nil && !errors.As(err, &end) {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := strings.Join(c.x.calls, ", "); got != c.calls {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	trace := filepath.Join(t.TempDir(), "gone.csv")
	if err := os.WriteFile(trace, []byte("128166372003061629,hm,0,Read,0,4096,100\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := read(t, "ssd: mqsim-default\nworkload: [{trace: {file: "+trace+", format: msr}}]\n")
	if err := os.Remove(trace); err != nil {
		t.Fatal(err)
	}
	unread := &script{}
	if _, err := experiment.Run(context.Background(), of(unread), words(), s, experiment.Options{}); !errors.Is(err,
		os.ErrNotExist) || unread.calls != nil {
		t.Errorf("%v, after %v", err, unread.calls)
	}
	defer func() {
		if x := recover(); x != "a fault" {
			t.Errorf("a panic of a fault becomes %v", x)
		}
	}()
	_, _ = experiment.Run(context.Background(), of(&script{each: func() error { panic("a fault") }}), words(),
		read(t, driveText), experiment.Options{})
}

// TestNothingMeasured verifies that a run that ends within its warm-up is rejected, with the position of the warm-up
// and a suggestion, unless it was interrupted.
func TestNothingMeasured(t *testing.T) {
	for _, c := range []struct {
		text    string
		reached sim.Time
		want    string
	}{
		{driveText + "measure: {warm_up: 2s}\n", 2 * units.Second,
			"a.yaml:3:20: measure.warm_up: the run ends at 2s, within the warm-up of 2s, and measures " +
				"nothing; use a shorter warm-up, auto, or a share such as 10%"},
		{networkText + "measure: {warm_up: 2s}\n", units.Second,
			"a.yaml:3:20: measure.warm_up: the run ends at 1s, within the warm-up of 2s, and measures " +
				"nothing; use a shorter warm-up"},
		{driveText + "measure: {warm_up: 2s}\n", 2*units.Second + 1, ""},
		{driveText, 0, ""},
	} {
		x := &script{stands: []experiment.RunState{{At: c.reached, Over: true}}}
		_, err := experiment.Run(context.Background(), of(x), words(), read(t, c.text), experiment.Options{})
		if got := fmt.Sprint(err); got != c.want && (c.want != "" || err != nil) {
			t.Errorf("%s: %v", c.text, err)
		}
		if n := len(x.calls); x.calls[n-1] != "close" || (n == 3) != (c.want == "") {
			t.Errorf("%s: %v", c.text, x.calls)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	x := &script{stands: []experiment.RunState{{At: units.Second}}, each: func() error { cancel(); return nil }}
	if out, err := experiment.Run(ctx, of(x), words(), read(t, driveText+"measure: {warm_up: 2s}\n"),
		experiment.Options{}); err != nil || !out.Interrupted {
		t.Errorf("interrupted within the warm-up: %v", err)
	}
}

// TestRefusals verifies that Check rejects whatever Run rejects before it starts, with the same message and position,
// and that Check closes an experiment that it accepts.
func TestRefusals(t *testing.T) {
	s := read(t, driveText)
	for _, c := range []struct {
		name  string
		build func(*experiment.Options) (experiment.Experiment, error)
		want  string
	}{
		{"a field", func(*experiment.Options) (experiment.Experiment, error) {
			return nil, units.Wrong("ssd", "it is too large")
		}, "a.yaml:1:6: ssd: it is too large"},
		{"the clock", func(*experiment.Options) (experiment.Experiment, error) { panic(&sim.ClockError{Now: 5}) },
			(&sim.ClockError{Now: 5}).Error()},
		{"another's context",
			func(*experiment.Options) (experiment.Experiment, error) { return nil, context.DeadlineExceeded },
			context.DeadlineExceeded.Error()},
	} {
		k := kind{c.build}
		_, ran := experiment.Run(context.Background(), k, words(), s, experiment.Options{})
		for _, err := range []error{ran, experiment.Check(context.Background(), k, s, experiment.Options{})} {
			var refusal *experiment.Refusal
			if !errors.As(err, &refusal) || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
	x := &script{}
	if err := experiment.Check(context.Background(), of(x), s, experiment.Options{}); err != nil ||
		!slices.Equal(x.calls, []string{"close"}) {
		t.Errorf("%v, %v", err, x.calls)
	}
	x.closed = errors.New("a file stays open")
	if err := experiment.Check(context.Background(), of(x), s, experiment.Options{}); err != x.closed {
		t.Error(err)
	}
}

// TestPreparing verifies that the progress of building the models is reported, and that a cancelled context stops the
// build without an error in the scenario.
func TestPreparing(t *testing.T) {
	s := read(t, driveText)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var told []float64
	build := kind{func(o *experiment.Options) (experiment.Experiment, error) {
		for _, share := range []float64{0, 0.5, 1} {
			if err := o.Preparing(share); err != nil {
				return nil, fmt.Errorf("half of a drive: %w", err)
			}
		}
		return &script{}, nil
	}}
	o := experiment.Options{Progress: func(p experiment.Progress) {
		if told = append(told, p.Prepared); p.Prepared == 0.5 && len(told) > 3 {
			cancel()
		}
	}}
	if err := experiment.Check(ctx, build, s, o); err != nil || !slices.Equal(told, []float64{0, 0.5, 1}) {
		t.Errorf("%v, told %v", err, told)
	}
	for range 2 {
		if _, err := experiment.Run(ctx, build, words(), s, o); err != context.Canceled {
			t.Errorf("%v", err)
		}
	}
	if err := experiment.Check(ctx, build, s, o); err != context.Canceled {
		t.Errorf("%v", err)
	}
	if !slices.Equal(told, []float64{0, 0.5, 1, 0, 0.5, 0, 0}) {
		t.Errorf("told %v", told)
	}
	if err := new(experiment.Options).Preparing(0.5); err != nil {
		t.Errorf("without a context: %v", err)
	}
}
