package trial_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/experiment/trial/drawn"
	"farflash/internal/patience"
	"farflash/internal/usage"
	"farflash/numeric/rng"
	"farflash/policy/ratecontrol"
	"farflash/result"
	"farflash/scenario"
	"farflash/scenario/shape"
	"farflash/study"
)

// TestDrawnScenarios generates scenarios from the language, each section and then each pair of sections. check must
// reject a scenario with a position, or the scenario must run within its budget, satisfy every law, and yield the same
// bytes on several processors, with a timeline, in parts, on threads, from its resolved text, and from a cache.
// Failures are minimised before they are shown.
//
// FARFLASH_DRAWS is the number of draws; FARFLASH_SEED the seed, random by default; FARFLASH_DRAW runs one draw (N), or
// starts there (N-). FARFLASH_KEEP is a directory for the scenarios that ran, and their inputs, for other builds of the
// program.
func TestDrawnScenarios(t *testing.T) {
	draws, _ := strconv.Atoi(os.Getenv("FARFLASH_DRAWS"))
	if draws == 0 {
		draws = 60
		if testing.Short() {
			draws = 20
		}
	}
	seed, err := strconv.ParseUint(os.Getenv("FARFLASH_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano()) % 1e9
	}
	first, last := 0, draws
	number, on := strings.CutSuffix(os.Getenv("FARFLASH_DRAW"), "-")
	if n, err := strconv.Atoi(number); err == nil {
		if first, last = n, n+draws; !on {
			last = n + 1
		}
	}
	x := &bench{t: t, seed: seed, dir: os.Getenv("FARFLASH_KEEP"), count: map[string]int{}}
	if x.keeps = x.dir != ""; !x.keeps {
		x.dir = t.TempDir()
	}
	if err := drawn.WriteFiles(x.dir); err != nil {
		t.Fatal(err)
	}
	if x.language, err = drawn.Load(); err != nil {
		t.Fatal(err)
	}
	if x.cache, err = study.OpenCache(t.TempDir(), "test"); err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	pairs := rng.NewStream(seed, "pairs of sections")
	x.cover = x.language.Cover(&pairs)
	n := first
	for ; n < last && len(x.shown) < 8; n++ {
		x.draw(n)
	}
	if n-first >= 300 {
		// No draw is certain to be accepted: those of a section that is missing by chance are repeated.
		for round := 1; round <= 20; round++ {
			for _, n := range x.cover.Again(round) {
				x.draw(n)
			}
		}
	}
	t.Logf("seed %d, %d draws: %d run and compared, %d ended by an error, %d refused in the end, %d cut short", seed,
		n-first, x.count[whole], x.count[ended], x.count[refused], x.count[short])
	t.Logf("%v", x.cover)
	switch {
	case t.Failed():
	case n-first >= 50 && x.count[whole] < (n-first)/2:
		t.Errorf("of %d draws only %d were run; the repairs do not find their way any more", n-first, x.count[whole])
	case n-first >= 300 && len(x.cover.Missing()) > 0:
		t.Errorf("sections that were in no scenario that ran: %v", x.cover.Missing())
	}
}

// Outcomes of a draw that does not fail.
const (
	whole   = "run"
	ended   = "ended by an error"
	refused = "refused"
	short   = "cut short"
)

// bench generates and runs scenarios.
type bench struct {
	t        *testing.T
	seed     uint64
	dir      string
	language *drawn.Language
	cover    *drawn.Cover
	cache    *study.Cache
	count    map[string]int
	shown    []string // kinds of findings so far
	keeps    bool     // write scenarios that ran to dir
}

// draw generates one scenario and runs it.
func (x *bench) draw(n int) {
	stream := rng.NewStream(x.seed, "draw "+strconv.Itoa(n))
	var s *scenario.Scenario
	var found *finding
	tree, err := x.language.Make(&stream, func(text string) (err error) {
		if s, err = x.checked(text); errors.As(err, &found) {
			return nil
		}
		return err
	}, x.cover.Pair(n)...)
	became := refused
	switch {
	case found != nil:
	case err == nil:
		became, found = x.try(s, tree.Text())
	default:
		if wrong, placed := errors.AsType[shape.Errors](err); !errors.Is(err, drawn.ErrLarge) &&
			(!placed || len(wrong) == 0 || wrong[0].At.File == "") {
			found = &finding{"an error of check has no place", fmt.Sprintf("%T: %v", err, err)}
		}
	}
	x.count[became]++
	if found != nil {
		x.show(n, tree, found)
		return
	}
	if became == whole || became == ended {
		x.cover.Ran(tree)
	}
	if became == whole && x.keeps && !strings.Contains(tree.Text(), "kind: src") {
		// the program would train a model first
		if err := os.WriteFile(filepath.Join(x.dir, fmt.Sprintf("drawn-%05d.yaml", n)), []byte(tree.Text()),
			0o666); err != nil {
			x.t.Error(err)
		}
	}
}

// show reports a failure, shrunk, once per kind.
func (x *bench) show(n int, tree *drawn.Tree, found *finding) {
	x.t.Helper()
	if slices.Contains(x.shown, found.what) {
		return
	}
	x.shown = append(x.shown, found.what)
	again := func(text string) *finding {
		s, err := x.checked(text)
		f, _ := errors.AsType[*finding](err) // nil if check merely rejects the text
		if err == nil {
			_, f = x.try(s, text)
		}
		return f
	}
	began := time.Now()
	least := drawn.Shrink(tree, 400, func(text string) bool {
		if time.Since(began) > time.Minute {
			return false
		}
		f := again(text)
		return f != nil && f.what == found.what
	})
	if f := again(least.Text()); f != nil {
		found = f
	}
	x.t.Errorf("draw %d: %v\n--- the smallest scenario that fails so:\n%s--- as it was drawn:\n%s--- again: "+
		"FARFLASH_SEED=%d FARFLASH_DRAW=%d go test ./experiment/trial -run TestDrawnScenarios",
		n, found, least.Text(), tree.Text(), x.seed, n)
}

// finding is a fault of the program.
type finding struct{ what, detail string }

func (f *finding) Error() string { return f.what + ": " + f.detail }

// panicked turns a panic into a finding, one kind per function.
func panicked(who string, p any) *finding {
	stack, at := string(debug.Stack()), "an unknown place"
	_, after, _ := strings.Cut(stack[strings.LastIndex(stack, "\npanic(")+1:], "\n")
	for line := range strings.Lines(after) {
		if name, ok := strings.CutPrefix(line, "farflash/"); ok {
			at = name[:strings.LastIndexByte(name, '(')]
			break
		}
	}
	return &finding{who + " panics in " + at, fmt.Sprintf("%v\n%s", p, stack)}
}

// checked parses and checks a scenario as the program does. A panic is a finding.
func (x *bench) checked(text string) (s *scenario.Scenario, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked("check", p)
		}
	}()
	if s, err = scenario.Parse(shape.Source{File: "drawn.yaml", Text: []byte(text), Dir: x.dir}, nil); err != nil {
		return s, err
	}
	if large(s) {
		return s, drawn.ErrLarge
	}
	defer hangs("check", text)()
	return s, trial.Check(x.t.Context(), s, x.seed)
}

// budget is the CPU time that a drawn scenario may take.
const budget = 2 * time.Second

// hangs aborts the test if a step far exceeds its budget and ignores its context.
func hangs(step, text string) (done func()) {
	return patience.Watch(15*budget, time.Hour, func(why string) {
		panic(fmt.Sprintf("%s hangs, and its context does not end it: %s\n%s", step, why, text))
	})
}

// flat predicts the same throughput for every drive.
type flat struct{}

func (flat) Predict(*ratecontrol.Features, int) (read, write float64) { return 1e9, 1e9 }

func foresees(*scenario.Drive, ratecontrol.Partition) (ratecontrol.Predictor, error) {
	return flat{}, nil
}

// attempt is one run of a scenario.
type attempt struct {
	bytes  []byte // the result, or the error of the run
	result *result.Result
	became string // whole, ended or short
}

// place matches positions in errors, which differ in a resolved text.
var place = regexp.MustCompile(`[^ \n]*\.yaml(:\d+)*: `)

// run runs a scenario within its budget. A slow one gets five times as much; it hangs if no request completes in the
// second half of that.
func (x *bench) run(s *scenario.Scenario, text string, o experiment.Options) (a attempt, f *finding) {
	for _, limit := range []time.Duration{budget, 5 * budget} {
		moves := false
		if a, moves, f = x.within(limit, s, text, o); f != nil || a.became != short {
			return a, f
		}
		if !moves && limit > budget {
			return a, &finding{"nothing completes any more", fmt.Sprintf("in the second half of %v of CPU time", limit)}
		}
	}
	return a, nil
}

// within runs a scenario for at most the given CPU time. moves reports, for a run that was cut short, whether requests
// completed in its second half.
func (x *bench) within(limit time.Duration, s *scenario.Scenario, text string, o experiment.Options) (a attempt,
	moves bool, f *finding) {
	defer func() {
		if p := recover(); p != nil {
			f = panicked("a run", p)
		}
	}()
	ctx, cancel := context.WithCancel(x.t.Context())
	defer cancel()
	defer patience.Watch(limit, time.Hour, func(string) { cancel() })()
	defer hangs("a run", text)()
	began := usage.CPU()
	var half, now uint64
	o.Seed, o.Version, o.Predict = x.seed, "test", foresees
	o.Progress = func(p experiment.Progress) {
		if now = p.Requests; usage.CPU()-began < limit/2 {
			half = now
		}
	}
	out, err := trial.Run(ctx, s, o)
	if ctx.Err() != nil {
		return attempt{became: short}, now > half, nil
	}
	a, f = judged(out, err)
	return a, true, f
}

// judged classifies a completed run.
func judged(out *experiment.Outcome, err error) (a attempt, f *finding) {
	if refusal, is := errors.AsType[*experiment.Refusal](err); is {
		return a, &finding{"check accepts what a run refuses", refusal.Error()}
	}
	if err != nil {
		if strings.Contains(err.Error(), "fault in the model") || strings.TrimSpace(err.Error()) == "" {
			return a, &finding{"the run fails", err.Error()}
		}
		return attempt{bytes: []byte("error: " + place.ReplaceAllString(err.Error(), "")), became: ended}, nil
	}
	b, err := out.Result.Encode()
	if err != nil {
		return a, &finding{"the result cannot be written", err.Error()}
	}
	a = attempt{b, out.Result, whole}
	if slices.ContainsFunc(out.Result.Checks, cutOff) {
		a.became = ended // exits with 1, as for an error
	}
	return a, nil
}

// try runs a scenario in every way that must yield the same bytes.
func (x *bench) try(s *scenario.Scenario, text string) (became string, f *finding) {
	runtime.GOMAXPROCS(1)
	want, f := x.run(s, text, experiment.Options{})
	if f != nil || want.became == short {
		return want.became, f
	}
	if want.result != nil {
		if f := x.sound(want, s); f != nil {
			return want.became, f
		}
	}
	same := func(how string, s *scenario.Scenario, o experiment.Options) *finding {
		got, f := x.run(s, text, o)
		switch {
		case f != nil:
			return &finding{how + ": " + f.what, f.detail}
		case got.became != short && !bytes.Equal(got.bytes, want.bytes):
			return &finding{how + ": another result", firstDifference(want.bytes, got.bytes)}
		}
		return nil
	}
	runtime.GOMAXPROCS(8)
	if f := same("on eight processors", s, experiment.Options{}); f != nil {
		return want.became, f
	}
	if f := same("with a timeline", s, experiment.Options{Timeline: io.Discard}); f != nil {
		return want.became, f
	}
	resolved := s.Resolved()
	again, err := scenario.Parse(shape.Source{File: "resolved.yaml", Text: []byte(resolved)}, nil)
	if err != nil {
		return want.became, &finding{"what it resolves to is refused", err.Error() + "\n" + resolved}
	}
	if twice := again.Resolved(); withoutMarks(twice) != withoutMarks(resolved) {
		return want.became, &finding{"what it resolves to resolves to something else",
			firstDifference([]byte(withoutMarks(resolved)), []byte(withoutMarks(twice)))}
	}
	if f := same("from its resolved text", again, experiment.Options{}); f != nil {
		return want.became, f
	}
	if s.Fabric != nil && s.Fabric.Parts <= 1 && s.ObjectCluster == nil {
		parts, err := scenario.Parse(shape.Source{File: "resolved.yaml", Text: []byte(resolved)},
			[]shape.Change{{Path: "fabric.parts", Value: "2"}})
		if err == nil && trial.Check(x.t.Context(), parts, x.seed) == nil {
			if f := same("in two parts", parts, experiment.Options{}); f != nil {
				return want.became, f
			}
			parts.Fabric.Threads = 2
			if f := same("on two threads", parts, experiment.Options{}); f != nil {
				return want.became, f
			}
		}
	}
	return want.became, nil
}

// cutOff reports a law that fails by design of the scenario: a host is cut off permanently, or a timer or a limit of
// retries ends flows and commands with an error.
func cutOff(c result.Check) bool {
	return !c.OK && (strings.Contains(c.Detail, "down for good") || strings.Contains(c.Detail, "(nvmf.host.") ||
		strings.Contains(c.Detail, "(nvmf.multipath.ana)") || strings.Contains(c.Detail, "(fabric.recovery.retries)"))
}

// sound checks the laws, the encoding and the cache.
func (x *bench) sound(a attempt, s *scenario.Scenario) *finding {
	for _, c := range a.result.Checks {
		if !c.OK && !cutOff(c) {
			return &finding{"a law is broken: " + c.Name, c.Detail}
		}
	}
	back, err := result.Decode(a.bytes)
	if err != nil {
		return &finding{"the result does not read back", err.Error()}
	}
	if b, err := back.Encode(); err != nil || !bytes.Equal(b, a.bytes) {
		return &finding{"the result reads back as another one", firstDifference(a.bytes, b)}
	}
	digest, err := s.Digest()
	if err != nil {
		return &finding{"it has no digest", err.Error()}
	}
	one := trial.Trial{Scenario: s, Digest: digest, Seed: x.seed}
	if err := x.cache.Put(one, a.result); err != nil {
		return &finding{"the cache does not keep it", err.Error()}
	}
	kept, err := x.cache.Get(one)
	if err != nil || kept == nil {
		return &finding{"the cache does not give it back", fmt.Sprint(err)}
	}
	if b, err := kept.Encode(); err != nil || !bytes.Equal(b, a.bytes) {
		return &finding{"out of the cache: another result", firstDifference(a.bytes, b)}
	}
	return nil
}

// withoutMarks strips the comments that mark defaults.
func withoutMarks(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, " # ")
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// large reports scenarios beyond a test's memory or time.
func large(s *scenario.Scenario) bool {
	targets, ssds := s.CountTargets()
	for i := range max(len(s.Targets), 1) {
		if x := s.DriveOf(i); x != nil && x.Geometry.Pages()*int64(max(ssds, 1)) > 4<<20 {
			return true
		}
	}
	if c := s.ObjectCluster; c != nil && s.SSD != nil && s.SSD.Geometry.Pages()*int64(c.Targets) > 4<<20 {
		return true
	}
	return targets > 64 || s.Initiators > 64
}

// firstDifference is the first line in which two texts differ.
func firstDifference(a, b []byte) string {
	x, y := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return x[i] + "\n" + y[i]
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}
