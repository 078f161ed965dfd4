package cosim

import (
	"errors"

	"farflash/block"
	"farflash/block/raid"
	"farflash/internal/slab"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/sim"
)

// volume presents all drives behind the network to one host as a single RAID volume.
type volume struct {
	array    *Array
	raid     *raid.Raid
	commands slab.Slab[uint64] // the volume's tags of outstanding commands
	last     nvmf.Done         // the last completed command
}

// Stripe makes all drives one volume of the first initiator, in place of the route, once and before the first request.
func (a *Array) Stripe(cfg raid.Config, each int64) error {
	if a.volume != nil || a.Inside() > 0 {
		return errors.New("cosim: the array is a volume, or has requests in flight; use Stripe once, before any request")
	}
	v := &volume{array: a}
	var err error
	if v.raid, err = raid.New(cfg, a.sys.Drives(), each, v.issue, v.end); err != nil {
		return err
	}
	a.volume, a.capacity = v, v.raid.Capacity()
	Rebuild(a.eng, v.raid.Rebuild)
	return nil
}

// Volume returns the RAID volume of the drives; nil if there is none.
func (a *Array) Volume() *raid.Raid {
	if a.volume == nil {
		return nil
	}
	return a.volume.raid
}

// issue sends a command to a drive. The volume's tag is kept here, since the system needs one that identifies the
// entry. Commands of a rebuild have no owner.
func (v *volume) issue(member int, part block.Request) {
	c := v.commands.Take()
	*v.commands.At(c) = part.Tag
	if owner, ok := v.raid.Owner(part.Tag); ok {
		v.array.pending.At(int32(owner)).count++
	}
	part.Tag = uint64(c)
	v.array.sys.Submit(0, int32(member), part)
}

// ended handles a completed command. last is set before raid.Ended, which calls end if the request is complete.
func (v *volume) ended(d *nvmf.Done) {
	c := int32(d.Tag)
	tag := *v.commands.At(c)
	v.commands.Give(c)
	v.last = *d
	v.raid.Ended(tag, d.Status)
}

// end completes a request, together with its last command.
func (v *volume) end(tag uint64, status block.Status) {
	x := v.array.pending.At(int32(tag))
	x.status = status
	// the time before that command, such as for the reads that a parity needs, was spent with the host
	v.last.Since(x.at)
	v.array.end(int32(tag), &v.last)
}

// Rebuild runs a volume's rebuild: it calls step at the times that step requests.
func Rebuild(eng *sim.Engine, step func(since units.Duration) (next units.Duration, more bool)) {
	if eng == nil || step == nil {
		panic("cosim: Rebuild with a nil engine or step")
	}
	if _, more := step(-1); !more {
		return
	}
	r := &rebuilder{eng: eng, step: step}
	r.self, r.target = eng.NewComponent(), eng.AddHandler(r)
	eng.Schedule(r.self, r.target, eng.Now(), 0, 0)
}

// rebuilder schedules the steps of a rebuild.
type rebuilder struct {
	eng    *sim.Engine
	self   sim.Component
	target sim.Target
	step   func(since units.Duration) (next units.Duration, more bool)
}

func (r *rebuilder) Handle(sim.Event) {
	if next, more := r.step(r.eng.Now()); more {
		if next < r.eng.Now() {
			panic("cosim: the step of a rebuild requests a time in the past")
		}
		r.eng.Schedule(r.self, r.target, next, 0, 0)
	}
}
