package nvme_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"farflash/flash/nbd"
	"farflash/flash/nvme"
	"farflash/flash/nvme/nvmetest"
	"farflash/flash/nvme/wire"
)

// opened is a namespace that counts what happens to its export, and opens when it may.
type opened struct {
	opens, leaves, closes atomic.Int32
	begun                 chan bool
	may                   chan error // nil: it opens
}

func (o *opened) set(t *testing.T, target *nvme.Target, m *nvmetest.Memory) {
	t.Helper()
	o.begun, o.may = make(chan bool, 1), make(chan error, 1)
	space := nvmetest.Space(1, m)
	space.Open = func(string) (nbd.Export, error) {
		o.opens.Add(1)
		o.begun <- true
		if err := <-o.may; err != nil {
			return nbd.Export{}, err
		}
		return nbd.Export{Volume: m, Leave: func() { o.leaves.Add(1) }, Close: func() { o.closes.Add(1) }}, nil
	}
	if err := target.Set(nvme.Subsystem{Name: login.Subsystem, Namespaces: []nvme.Namespace{space}}); err != nil {
		t.Fatal(err)
	}
}

// begins passes a read to a queue, and returns its task.
func (r *rig) begins(t *testing.T) *nvme.Task {
	t.Helper()
	r.queue.Input(ioCommand(wire.Read, 1, 8))
	tasks := r.queue.Starts(nil)
	if len(tasks) != 1 {
		t.Fatalf("%d tasks", len(tasks))
	}
	return tasks[0]
}

// status returns the status of a command that was answered.
func (r *rig) status(t *testing.T) wire.Status {
	t.Helper()
	r.settle()
	b := r.output(1 << 20)
	if wire.Common(b).Type != wire.CapsuleResp {
		t.Fatalf("the answer is % x", b)
	}
	return wire.DecodeCQE(b[wire.CommonSize:]).Status
}

// TestOpening verifies that a namespace opens with its first task, which says that it waits for that, and that an
// export that cannot be opened fails the commands only.
func TestOpening(t *testing.T) {
	var o opened
	target, m := newTarget(t, nil)
	o.set(t, target, m)
	_, r := associate(target, m, wire.Digests{}, 0)
	first := r.begins(t)
	if !first.Waits() || o.opens.Load() != 0 {
		t.Fatalf("waits %t, opened %d times", first.Waits(), o.opens.Load())
	}
	o.may <- nil
	r.queue.Start([]*nvme.Task{first}, 0)
	r.settle()
	r.output(1 << 20)
	if second := r.begins(t); second.Waits() {
		t.Error("a task waits for a namespace that is open")
	} else {
		r.queue.Start([]*nvme.Task{second}, 0)
	}
	r.end(t)
	target.Remove(login.Subsystem)
	if o.opens.Load() != 1 || o.leaves.Load() != 1 || o.closes.Load() != 1 {
		t.Errorf("opened %d times, left %d, closed %d", o.opens.Load(), o.leaves.Load(), o.closes.Load())
	}

	o = opened{}
	target, m = newTarget(t, nil)
	o.set(t, target, m)
	_, r = associate(target, m, wire.Digests{}, 0)
	o.may <- errors.New("out of paper")
	r.queue.Start([]*nvme.Task{r.begins(t)}, 0)
	if st := r.status(t); st != wire.NamespaceNotReady {
		t.Errorf("of an export that cannot be opened: %v", st)
	}
	r.end(t)
	if o.leaves.Load() != 0 || o.closes.Load() != 0 {
		t.Errorf("left %d times, closed %d", o.leaves.Load(), o.closes.Load())
	}
}

// TestRemovedWhileOpening verifies that removing a namespace waits neither for its export to open nor for its tasks,
// and that the export is left and closed once nevertheless. A task that begins after that is refused.
func TestRemovedWhileOpening(t *testing.T) {
	var o opened
	target, m := newTarget(t, nil)
	o.set(t, target, m)
	_, r := associate(target, m, wire.Digests{}, 0)
	task, started := r.begins(t), make(chan bool)
	go func() {
		r.queue.Start([]*nvme.Task{task}, 0)
		close(started)
	}()
	<-o.begun
	set := make(chan error)
	go func() { set <- target.Set(nvme.Subsystem{Name: login.Subsystem}) }()
	select {
	case err := <-set:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("removing a namespace waits until it is open")
	}
	o.may <- nil
	<-started
	r.settle()
	r.output(1 << 20)
	r.end(t)
	if o.leaves.Load() != 1 || o.closes.Load() != 1 {
		t.Errorf("left %d times, closed %d", o.leaves.Load(), o.closes.Load())
	}

	o = opened{}
	target, m = newTarget(t, nil)
	o.set(t, target, m)
	_, r = associate(target, m, wire.Digests{}, 0)
	task = r.begins(t)
	if err := target.Set(nvme.Subsystem{Name: login.Subsystem}); err != nil {
		t.Fatal(err)
	}
	r.queue.Start([]*nvme.Task{task}, 0)
	if st := r.status(t); st != wire.InvalidNamespace|wire.NoRetry || o.opens.Load() != 0 {
		t.Errorf("%v, opened %d times", st, o.opens.Load())
	}
	r.end(t)
}
