package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFind verifies which mutants are found, and that each parses and keeps the number of lines.
func TestFind(t *testing.T) {
	src := `package p

import "fmt"

const word = "a" + "b"

func f(a, b int, list []int) (bool, error) {
	if a < b && list != nil {
		a++
	}
	for i := range list {
		if !(i == 1) {
			continue
		}
		g(
			i,
		)
		a -= b
	}
	if a > 7 {
		panic("more than " + fmt.Sprint(0))
	}
	var x [1]int
	_ = x
	_ = math.Inf(1) + math.Inf(-1)
	if err := h(); err != nil {
		return false, err
	}
	return true, fmt.Errorf("%d", a*b)
}
`
	path := write(t, t.TempDir(), "p.go", src)
	found, err := find("p/p.go", path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		got = append(got, strings.ReplaceAll(m.Was+" -> "+m.Is, "\n", "|"))
		if m.File != "p/p.go" || !strings.Contains(m.Within, strings.SplitN(m.Was, "\n", 2)[0]) {
			t.Errorf("%s:%d %q is not in %q", m.File, m.Line, m.Was, m.Within)
		}
		changed := src[:m.from] + m.Is + src[m.to:]
		if strings.Count(changed, "\n") != strings.Count(src, "\n") {
			t.Errorf("%s -> %q moves lines", m.Was, m.Is)
		}
		if _, err := find("p.go", write(t, t.TempDir(), "p.go", changed)); err != nil {
			t.Errorf("%s -> %s: %v", m.Was, m.Is, err)
		}
	}
	want := []string{
		"a < b && list != nil -> !(a < b && list != nil)", "&& -> ||", "< -> <=", "< -> >=", "!= -> ==",
		"a++ -> {}", "++ -> --",
		"!(i == 1) -> !(!(i == 1))", "== -> !=", "1 -> 0", "continue -> break",
		"g(|\t\t\ti,|\t\t) -> {}||", "a -= b -> {}", "-= -> +=",
		"> -> >=", "> -> <=",
		"_ = x -> {}", "_ = math.Inf(1) + math.Inf(-1) -> {}", "+ -> -", "1 -> 0", // of the second
		"!= -> ==", "err -> nil",
		"fmt.Errorf(\"%d\", a*b) -> nil",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestExplained(t *testing.T) {
	r, err := parse("# why\n\na/b.go: < -> <=\n\tif x < y {\n\tthey are never equal\n")
	if err != nil {
		t.Fatal(err)
	}
	m := mutant{File: "a/b.go", Within: "if x < y {", Was: "<", Is: "<="}
	if !r.covers(m) {
		t.Error("it is not covered")
	}
	m.Is = ">="
	if r.covers(m) {
		t.Error("another change is covered")
	}
	for _, bad := range []string{"a/b.go: < -> <=", "a/b.go: <\n\tx\n\ty", "a/b.go: < -> <=\n\tif x < y {"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if _, err := parse(explained); err != nil {
		t.Error(err)
	}
}

// TestRun has a weak test judge a small module: changes to code it does not check survive, endless loops are killed,
// and the outcomes are kept.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "go.mod", "module sample\n\ngo 1.26\n")
	write(t, dir, "sample.go", `package sample

func Sum(n, unused int) int {
	sum := 0
	for i := 0; i < n; i++ {
		sum += i
	}
	if unused > 3 {
		return -sum
	}
	return sum
}
`)
	write(t, dir, "sample_test.go", `package sample

import "testing"

func TestSum(t *testing.T) {
	if got := Sum(4, 1); got != 6 {
		t.Error(got)
	}
}
`)
	t.Chdir(dir)
	s := settings{seed: 1, json: true, grace: time.Second, state: filepath.Join(dir, "state.jsonl")}
	var first, second bytes.Buffer
	if err := run(&first, s, []string{"."}); err != nil {
		t.Fatal(err)
	}
	var sums []summary
	if err := json.Unmarshal(first.Bytes(), &sums); err != nil {
		t.Fatal(err)
	}
	var lived []string
	for _, a := range sums[0].Survived {
		lived = append(lived, a.Was+" -> "+a.Is)
	}
	slices.Sort(lived)
	// i := 1 gives the same sum, and the test never passes unused near 3.
	if want := []string{"0 -> 1", "> -> >="}; !slices.Equal(lived, want) {
		t.Errorf("%v survived, want %v", lived, want)
	}
	// Killed: sum := 1; i <= n, i >= n, i--; sum -= i and its removal; unused <= 3; the removal of i++, which does not
	// end. i-- ends only by overflow.
	if sums[0].Killed < 6 {
		t.Errorf("%d killed", sums[0].Killed)
	}
	if err := run(&second, s, []string{"."}); err != nil || second.String() != first.String() {
		t.Errorf("from the state: %v, %s", err, second.String())
	}
	// -least passes or names the package.
	for least, want := range map[int]string{60: "", 95: "fewer than 95 % of the mutants were killed in sample ("} {
		s.least = least
		if err := run(&second, s, []string{"."}); want == "" && err != nil ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("with -least %d: %v", least, err)
		}
	}
	if text, err := os.ReadFile(s.state); err != nil || bytes.Count(text, []byte("\n")) < 8 {
		t.Errorf("%v: the state has %s", err, text)
	}
}

// TestPart: the parts of a list contain every package exactly once.
func TestPart(t *testing.T) {
	all := []source{{Dir: "a"}, {Dir: "b"}, {Dir: "c"}, {Dir: "d"}}
	for of, want := range map[string]string{"": "abcd", "1/2": "ac", "2/2": "bd", "3/3": "c", "1/9": "a", "9/9": ""} {
		got, err := part(all, of)
		name := ""
		for _, p := range got {
			name += p.Dir
		}
		if err != nil || name != want {
			t.Errorf("-part %s: %q, want %q (%v)", of, name, want, err)
		}
	}
	for _, of := range []string{"0/2", "3/2", "x", "1"} {
		if _, err := part(all, of); err == nil {
			t.Errorf("-part %s is taken", of)
		}
	}
}
