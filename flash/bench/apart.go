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

// Clients and servers on separate processors. In a deployment they are on separate machines, and a server's response
// wakes no thread on its own processor. On one machine the kernel prefers to run a woken thread on the waking
// processor, so a response may or may not preempt the server that sends it, and whichever happens persists for a while:
// the same server then shows one of two rates, a third apart.

// cpu is a processor with its position: its package and its core, whose processors share resources.
type cpu struct{ number, pack, core int }

// allowed returns the processors in this process's affinity mask.
func allowed() ([]cpu, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("bench: reading the processor affinity: %w", err)
	}
	var out []cpu
	for n := 0; len(out) < set.Count(); n++ {
		if set.IsSet(n) {
			out = append(out, cpu{n, topology(n, "physical_package_id"), topology(n, "core_id")})
		}
	}
	return out, nil
}

// topology reads a number from Linux's description of a processor's position. Without one, each processor counts as its
// own core.
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

// halves divides the processors: the first half is for clients, the second for servers, which get the extra one of an
// odd number. If there are two or more cores, none is split.
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

// startOn starts a process restricted to some processors.
func startOn(cmd *exec.Cmd, processors []int) error {
	runtime.LockOSThread() // the child inherits the thread's affinity
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

// confine restricts all threads of this process, and those they create, to some processors, and lowers GOMAXPROCS to
// their number. free undoes both.
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

// everyThread sets the affinity of all threads of this process. A thread that still has the old affinity may create
// another in the meantime, so it repeats until there are no new ones.
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
			if err := unix.SchedSetaffinity(tid, set); err != nil && !errors.Is(err, syscall.ESRCH) { // it exited
				return fmt.Errorf("bench: setting the processor affinity: %w", err)
			}
		}
	}
	return nil
}
