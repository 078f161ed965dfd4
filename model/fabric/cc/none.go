package cc

import "farflash/numeric/units"

// LineRate is the configuration of no congestion control: what a lossless fabric does
// with flow control alone.
type LineRate struct {
	// Window bounds what is in flight.
	Window Window
}

// Validate says what is wrong with c, if anything.
func (c LineRate) Validate() error {
	var f faults
	f.window(c.Window)
	return f.Err()
}

// NewNone returns congestion control that does nothing: every queue pair sends at the
// rate of its line, always. minRate is not used but must be possible.
func NewNone(c LineRate, minRate units.BitRate) (Algorithm, error) {
	if err := possible("none", minRate, c); err != nil {
		return nil, err
	}
	return none{limits{minRate, c.Window}}, nil
}

type none struct{ limits }

func (none) Wants() Wants                  { return Wants{} }
func (n none) Start(_ int32, s *Sender)    { n.start(s) }
func (none) React(int32, *Sender, *Signal) {}
