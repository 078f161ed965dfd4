package nvmf

import (
	"farflash/block"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
	"farflash/sim"
)

// Limits are the most that a target lets pass to its drives, in slices of a millisecond (SPDK's bdev_set_qos_limit). 0
// is no limit.
type Limits struct {
	Per       Tenant         // Per says whose limits they are.
	IOs       int64          // IOs is the number of reads and writes a second, a multiple of 1000.
	Bytes     units.ByteRate // Bytes is for reads and writes together.
	ReadBytes units.ByteRate // ReadBytes is for reads alone.
	// WriteBytes is for writes alone.
	WriteBytes units.ByteRate
}

// Tenant is whose limits apply.
type Tenant uint8

const (
	Namespace    Tenant = iota // a drive, whoever uses it
	PerInitiator               // an initiator at a target, whichever drives it uses
)

var tenantNames = units.Names[Tenant]{"namespace", "initiator"}

func (t Tenant) String() string { return tenantNames.Name(t) }

func (t Tenant) MarshalText() ([]byte, error) { return tenantNames.Marshal(t) }

func (t *Tenant) UnmarshalText(text []byte) error { return tenantNames.Unmarshal(text, t) }

// Any reports whether there is a limit.
func (l *Limits) Any() bool { return l.IOs > 0 || l.Bytes > 0 || l.ReadBytes > 0 || l.WriteBytes > 0 }

func (l *Limits) validate() error {
	var bad units.Faults
	bad.Hold(l.IOs >= 0 && l.IOs%1000 == 0 && l.IOs <= 1e9, "rw_ios",
		"%d is not possible; use a multiple of 1000 up to 1e9, or 0 for no limit", l.IOs)
	for _, x := range []struct {
		key  string
		rate units.ByteRate
	}{{"rw_bytes", l.Bytes}, {"r_bytes", l.ReadBytes}, {"w_bytes", l.WriteBytes}} {
		bad.Hold(x.rate == 0 || x.rate >= 1<<20 && x.rate <= 1<<50, x.key,
			"%v is not possible; use 1MiB/s or more, or 0B/s for no limit", x.rate)
	}
	return bad.Err()
}

// gate holds back the commands of a tenant that its limits do not let pass.
type gate struct {
	quotas  ratecontrol.Quotas
	waiting list
	timer   sim.Timer
	timed   bool // the timer exists
}

// makeGates allocates the gates of all tenants.
func (s *System) makeGates() {
	l := &s.cfg.Limits
	if !l.Any() {
		return
	}
	n := len(s.drives)
	if l.Per == PerInitiator {
		n = len(s.initiators) * len(s.targets)
	}
	s.gates = make([]gate, n)
	for i := range s.gates {
		s.gates[i].quotas = ratecontrol.NewQuotas(l.IOs, int64(l.Bytes), int64(l.ReadBytes), int64(l.WriteBytes))
	}
}

// gateOf returns the number of a command's gate.
func (s *System) gateOf(x *command) int32 {
	if s.cfg.Limits.Per == PerInitiator {
		return s.pair(x.initiator, x.target)
	}
	return x.drive
}

// passes reports whether a command may go to its drive now. If not, it waits for a slice that lets it pass.
func (s *System) passes(c int32) bool {
	x := s.commands.At(c)
	n := s.gateOf(x)
	g := &s.gates[n]
	if g.quotas.Take(s.eng.Now(), x.req.Op, x.req.Length) {
		return true
	}
	x.at = limited
	s.push(&g.waiting, c)
	s.Counters.HeldByLimits++
	if g.waiting.n == 1 {
		s.armGate(n)
	}
	return false
}

// armGate wakes a gate at the next slice.
func (s *System) armGate(n int32) {
	g := &s.gates[n]
	if !g.timed {
		g.timer, g.timed = s.eng.NewTimer(s.self, s.target, evSlice, uint32(n)), true
	}
	s.eng.Arm(g.timer, g.quotas.Next(s.eng.Now()))
}

// nextSlice lets commands pass in their order. One that waits for one operation's limit does not hold up the other's.
func (s *System) nextSlice(n int32) {
	old := s.gates[n].waiting
	s.gates[n].waiting = list{}
	for old.n > 0 {
		c := s.pop(&old)
		x := s.commands.At(c)
		if s.gates[n].quotas.Take(s.eng.Now(), x.req.Op, x.req.Length) {
			x.at = inDrive
			s.toDrive(c)
		} else {
			s.push(&s.gates[n].waiting, c)
		}
	}
	if s.gates[n].waiting.n > 0 {
		s.armGate(n)
	}
}

// limitable reports whether limits apply to a command.
func (s *System) limitable(x *command) bool { return s.gates != nil && x.req.Op <= block.Write }
