package trial_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/experiment/trial/drawn"
	"farflash/internal/patience"
	"farflash/scenario"
	"farflash/scenario/shape"
	"farflash/sim"
)

// leaf is a key with values to try.
type leaf struct {
	path   string
	values []string
}

// leaves lists the keys of the language below a path for which there are values to try, according to explain's
// description.
func leaves(t testing.TB, path, written string, try func(wanted string) []string) []leaf {
	t.Helper()
	d, err := scenario.Describe(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []leaf
	for _, k := range d.Keys {
		name := strings.TrimPrefix(strings.TrimPrefix(k.Path, path), ".")
		at := name
		if written != "" {
			at = written + "." + name
		}
		switch {
		case strings.HasPrefix(k.Value, "a list of mappings"):
			out = append(out, leaves(t, k.Path, at+"[0]", try)...)
		case strings.HasPrefix(k.Value, "a mapping"):
			out = append(out, leaves(t, k.Path, at, try)...)
		default:
			if v := try(k.Value); len(v) > 0 {
				out = append(out, leaf{at, v})
			}
		}
	}
	return out
}

// extremes returns values that a user may write for a key by mistake or as an experiment, according to explain's
// description.
func extremes(wanted string) []string {
	out := []string{"0", "-1", "1e18", "NaN", "''", "9223372036854775807", "[]", "{}"}
	for _, x := range []struct {
		hint string
		list []string
	}{
		{"a time", []string{"0s", "1ps", "1s", "1000000s", "106d"}},
		{"a size", []string{"0B", "1B", "511B", "1GiB", "1TiB", "7EiB"}},
		{"40Gbps", []string{"0bps", "1bps", "1e9Gbps", "9e18bps"}},
		{"1GB/s", []string{"0B/s", "1B/s", "1e9GB/s"}},
		{"333MT/s", []string{"0T/s", "1T/s", "1e9MT/s"}},
		{"a share", []string{"0%", "1e-15%", "99.9999999%", "100%", "1e18%"}},
		{"an energy", []string{"0J", "1e-300J", "1e300J"}},
		{"a whole number", []string{"1", "3", "255", "65536", "2147483647", "2147483648", "4294967296"}},
		{"a number", []string{"-0.0", "1e-300", "1e300", "-1e300"}},
	} {
		if strings.Contains(wanted, x.hint) {
			out = append(out, x.list...)
		}
	}
	return out
}

// TestExtremes sets each key to each of its extremes, in a small scenario of each kind: a scenario accepted by check
// must run, finish within its time or be interruptible, and satisfy every law. It takes minutes; FARFLASH_EXTREMES
// restricts it to keys whose path contains it.
func TestExtremes(t *testing.T) {
	only := os.Getenv("FARFLASH_EXTREMES")
	if !patience.Long(t) && only == "" {
		t.Skip("takes minutes; set FARFLASH_LONG=1")
	}
	dir := t.TempDir()
	if err := drawn.WriteFiles(dir); err != nil {
		t.Fatal(err)
	}
	var count [3]int // rejected, ended by an error, run
	for i, text := range drawn.Seeds {
		top := map[string]bool{"measure": true}
		for line := range strings.Lines(text) {
			if key, _, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, " ") &&
				!strings.HasPrefix(line, "-") {
				top[key] = true
			}
		}
		for _, k := range leaves(t, "", "", extremes) {
			section, _, _ := strings.Cut(strings.ReplaceAll(k.path, "[", "."), ".")
			if !top[section] || !strings.Contains(k.path, only) {
				continue
			}
			for _, v := range k.values {
				count[extreme(t, fmt.Sprintf("seed %d", i), text, dir, shape.Change{Path: k.path, Value: v})]++
			}
		}
	}
	t.Logf("%d refused, %d ended by an error, %d run", count[0], count[1], count[2])
}

// extreme tries one change of a scenario and returns the outcome.
func extreme(t *testing.T, about, text, dir string, c shape.Change) (became int) {
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s with %s=%s: %s", about, c.Path, c.Value, fmt.Sprintf(format, args...))
	}
	began := time.Now()
	defer func() {
		if x := recover(); x != nil {
			fail("it panics: %v", x)
		}
		if d := time.Since(began); d > 30*time.Second {
			fail("it takes %v and cannot be interrupted", d)
		}
	}()
	placed := func(err error) {
		var wrong shape.Errors
		if !errors.As(err, &wrong) || len(wrong) == 0 || wrong[0].At.File == "" {
			fail("%T has no place: %v", err, err)
		}
	}
	s, err := scenario.Parse(shape.Source{File: "extreme.yaml", Text: []byte(text), Dir: dir}, []shape.Change{c})
	if err != nil {
		placed(err)
		return 0
	}
	if large(s) {
		return 0
	}
	if err := trial.Check(t.Context(), s, 1); err != nil {
		placed(err)
		return 0
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	out, err := trial.Run(ctx, s, experiment.Options{Seed: 1, Version: "test"})
	var refusal *experiment.Refusal
	var clock *sim.ClockError
	var place *shape.Error
	switch {
	case errors.As(err, &refusal):
		fail("check accepts what a run refuses: %v", err)
		return 1
	case err != nil && !errors.As(err, &clock) && !errors.As(err, &place):
		fail("the run fails: %v", err)
		return 1
	case err != nil:
		return 1
	}
	for _, x := range out.Result.Checks {
		if !x.OK && !cutOff(x) {
			fail("%s: %s", x.Name, x.Detail)
		}
	}
	for _, m := range out.Result.Metrics {
		if m.Value < 0 && (m.Unit == "us" || m.Unit == "s" || m.Unit == "B/s" || m.Unit == "count") &&
			!strings.Contains(m.Name, "drift") && !strings.Contains(m.Name, "growth") {
			fail("%s is %s", m.Name, strconv.FormatFloat(m.Value, 'g', 6, 64))
		}
		if m.Value > 1+1e-9 && strings.Contains(m.Name, "utilisation") {
			fail("%s is %s", m.Name, strconv.FormatFloat(m.Value, 'g', 6, 64))
		}
	}
	if _, err := out.Result.Encode(); err != nil {
		fail("the result cannot be written: %v", err)
	}
	return 2
}
