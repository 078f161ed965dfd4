package ctl

// Fetch brings the parts of the map that Remap needs for steps into memory, with step executing the devices'
// operations, and keeps them there until the function that it returns is called.
func (p *Pool) Fetch(steps []Step, step func()) (release func()) {
	var pins []uint64
	p.lock()
	for done := true; done; p.lock() {
		if !p.core.leavesFor(steps, &pins, func(error) { done = false }) {
			break
		}
		p.leave()
		for done {
			step()
		}
		done = true
	}
	p.leave()
	return func() {
		p.lock()
		p.core.unpinAll(&pins)
		p.leave()
	}
}
