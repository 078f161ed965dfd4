package cosim

import (
	"farflash/block"
	"farflash/block/raid"
	"farflash/internal/slab"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/sim"
)

// volume is what one host makes of all drives behind the network.
type volume struct {
	array    *Array
	raid     *raid.Raid
	commands slab.Slab[uint64] // the volume's tags of commands under way
	last     nvmf.Done         // the command that ended last
}

// Stripe makes one volume of all drives, in place of the route. The first initiator is its host.
func (a *Array) Stripe(cfg raid.Config, each int64) error {
	v := &volume{array: a}
	var err error
	if v.raid, err = raid.New(cfg, a.sys.Drives(), each, v.issue, v.end); err != nil {
		return err
	}
	a.volume, a.capacity = v, v.raid.Capacity()
	Rebuild(a.eng, v.raid.Rebuild)
	return nil
}

// Volume is what the drives are made one of; nil if they are not.
func (a *Array) Volume() *raid.Raid {
	if a.volume == nil {
		return nil
	}
	return a.volume.raid
}

// issue sends a command to a drive.
func (v *volume) issue(member int, part block.Request) {
	c := v.commands.Take()
	*v.commands.At(c) = part.Tag
	if owner, ok := v.raid.Owner(part.Tag); ok {
		v.array.pending.At(int32(owner)).count++
	}
	part.Tag = uint64(c)
	v.array.sys.Submit(0, int32(member), part)
}

// ended takes the end of a command.
func (v *volume) ended(d *nvmf.Done) {
	c := int32(d.Tag)
	tag := *v.commands.At(c)
	v.commands.Give(c)
	v.last = *d
	v.raid.Ended(tag, d.Status)
}

// end tells of a request's end, which was the last command's.
func (v *volume) end(tag uint64, status block.Status) {
	x := v.array.pending.At(int32(tag))
	x.status = status
	v.last.Since(x.at) // what was before it, such as the reads that a parity needs, was spent with the host
	v.array.end(int32(tag), &v.last)
}

// Rebuild has a volume's rebuild go on at the times that it asks for.
func Rebuild(eng *sim.Engine, step func(since units.Duration) (next units.Duration, more bool)) {
	if _, more := step(-1); !more {
		return
	}
	r := &rebuilder{eng: eng, step: step}
	r.self, r.target = eng.NewComponent(), eng.AddHandler(r)
	eng.Schedule(r.self, r.target, eng.Now(), 0, 0)
}

// rebuilder wakes a rebuild.
type rebuilder struct {
	eng    *sim.Engine
	self   sim.Component
	target sim.Target
	step   func(since units.Duration) (next units.Duration, more bool)
}

// Handle implements sim.Handler.
func (r *rebuilder) Handle(sim.Event) {
	if next, more := r.step(r.eng.Now()); more {
		r.eng.Schedule(r.self, r.target, next, 0, 0)
	}
}
