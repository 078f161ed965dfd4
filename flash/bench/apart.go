package bench

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Clients and servers on processors of their own. Elsewhere they are on machines of their own, and a server's answer
// wakes nobody on its processor. On one machine the kernel likes to run who is woken where it was woken from, so that
// an answer takes the processor from the server that sends it, or does not, for as long as it happens to stay so: the
// same server then has one rate or another one, a third apart.

// cpu is a processor, and its place in the machine: those of one core share what it has.
type cpu struct{ number, pack, core int }

// allowed are the processors that this process may run on.
func allowed() ([]cpu, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("bench: the processors that may be used: %w", err)
	}
	var out []cpu
	for n := 0; len(out) < set.Count(); n++ {
		if set.IsSet(n) {
			out = append(out, cpu{n, topology(n, "physical_package_id"), topology(n, "core_id")})
		}
	}
	return out, nil
}

// topology is a number that Linux has of a processor's place. Where it has none each is a core of its own.
func topology(number int, name string) int {
	text, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/%s", number, name))
	if x, wrong := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && wrong == nil {
		return x
	}
	if name == "core_id" {
		return number
	}
	return 0
}

// halves divides processors: the first half is the clients', the second the servers', who have one more of an odd
// number. A core goes to one of them, if there are two.
func halves(all []cpu) (clients, servers []int) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b cpu) int {
		return cmp.Or(cmp.Compare(a.pack, b.pack), cmp.Compare(a.core, b.core), cmp.Compare(a.number, b.number))
	})
	split := func(at int) bool {
		a, b := all[at-1], all[at]
		return a.pack != b.pack || a.core != b.core
	}
	cut := len(all) / 2
	for d := range len(all) / 2 {
		if cut-d > 0 && split(cut-d) {
			cut -= d
			break
		}
		if cut+d < len(all) && split(cut+d) {
			cut += d
			break
		}
	}
	for i, c := range all {
		if i < cut {
			clients = append(clients, c.number)
		} else {
			servers = append(servers, c.number)
		}
	}
	slices.Sort(clients)
	slices.Sort(servers)
	return clients, servers
}

func numbers(cpus []cpu) (out []int) {
	for _, c := range cpus {
		out = append(out, c.number)
	}
	return out
}

func setOf(numbers []int) *unix.CPUSet {
	set := new(unix.CPUSet)
	for _, n := range numbers {
		set.Set(n)
	}
	return set
}

// startOn starts a process that may use some processors only.
func startOn(cmd *exec.Cmd, processors []int) error {
	runtime.LockOSThread() // which the process begins as a copy of
	defer runtime.UnlockOSThread()
	var old unix.CPUSet
	if err := unix.SchedGetaffinity(0, &old); err != nil {
		return err
	}
	if err := unix.SchedSetaffinity(0, setOf(processors)); err != nil {
		return err
	}
	return errors.Join(cmd.Start(), unix.SchedSetaffinity(0, &old))
}

// confine has all of this process's threads, and those that they begin, use some processors only, and as many
// goroutines run as there are of these. free ends that.
func confine(processors, all []int) (free func() error, err error) {
	if err := everyThread(setOf(processors)); err != nil {
		return nil, errors.Join(err, everyThread(setOf(all)))
	}
	places := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(min(places, len(processors)))
	return func() error {
		runtime.GOMAXPROCS(places)
		return everyThread(setOf(all))
	}, nil
}

// everyThread sets the processors of all threads of this process. One may be begun meanwhile by another that has the
// old ones, so it looks until there is none.
func everyThread(set *unix.CPUSet) error {
	seen := map[int]bool{}
	for found := true; found; {
		found = false
		tasks, err := filepath.Glob("/proc/self/task/*")
		if err != nil {
			return err
		}
		for _, path := range tasks {
			tid, err := strconv.Atoi(filepath.Base(path))
			if err != nil || seen[tid] {
				continue
			}
			seen[tid], found = true, true
			if err := unix.SchedSetaffinity(tid, set); err != nil && !errors.Is(err, syscall.ESRCH) { // it has ended
				return fmt.Errorf("bench: processors for clients alone: %w", err)
			}
		}
	}
	return nil
}
