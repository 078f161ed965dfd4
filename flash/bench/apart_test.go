package bench

import (
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHalves verifies the division of processors: no core is split if there are at least two.
func TestHalves(t *testing.T) {
	cores := func(of ...int) (out []cpu) {
		for n, core := range of {
			out = append(out, cpu{number: n, core: core})
		}
		return out
	}
	for _, x := range []struct {
		all              []cpu
		clients, servers []int
	}{
		{cores(0, 1), []int{0}, []int{1}},
		{cores(0, 1, 2), []int{0}, []int{1, 2}},
		{cores(0, 1, 2, 3), []int{0, 1}, []int{2, 3}},
		{cores(0, 1, 2, 3, 0, 1, 2, 3), []int{0, 1, 4, 5}, []int{2, 3, 6, 7}}, // as Linux numbers them
		{cores(0, 0, 1, 1, 2, 2), []int{0, 1}, []int{2, 3, 4, 5}},             // does not split a core
		{cores(0, 0), []int{0}, []int{1}},                                     // one core
		{[]cpu{{3, 1, 0}, {5, 0, 0}, {8, 0, 1}, {9, 1, 1}}, []int{5, 8}, []int{3, 9}},
	} {
		if clients, servers := halves(x.all); !slices.Equal(clients, x.clients) || !slices.Equal(servers, x.servers) {
			t.Errorf("%v: clients %v, servers %v; want %v and %v", x.all, clients, servers, x.clients, x.servers)
		}
	}
}

// TestConfine moves every thread of this process to one processor, and back.
func TestConfine(t *testing.T) {
	cpus, err := allowed()
	if err != nil {
		t.Fatal(err)
	}
	all := numbers(cpus)
	places := runtime.GOMAXPROCS(0)
	free, err := confine(all[:1], all)
	if err != nil {
		t.Fatal(err)
	}
	check := func(want []int) {
		t.Helper()
		tasks, err := filepath.Glob("/proc/self/task/*")
		if err != nil || len(tasks) == 0 {
			t.Fatal(err)
		}
		for _, path := range tasks {
			tid, _ := strconv.Atoi(filepath.Base(path))
			var set unix.CPUSet
			if err := unix.SchedGetaffinity(tid, &set); err == nil && set != *setOf(want) {
				t.Errorf("%s is on other processors than %v", path, want)
			}
		}
	}
	check(all[:1])
	if n := runtime.GOMAXPROCS(0); n != 1 {
		t.Errorf("%d goroutines run at a time on one processor", n)
	}
	if err := free(); err != nil {
		t.Fatal(err)
	}
	check(all)
	if n := runtime.GOMAXPROCS(0); n != places {
		t.Errorf("%d goroutines run at a time, %d did before", n, places)
	}
}
