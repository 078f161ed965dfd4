package cc

import "farflash/numeric/units"

// LineRate configures no congestion control: flow control only.
type LineRate struct {
	Window Window // Window bounds the data in flight.
}

// validate reports invalid settings.
func (c LineRate) validate() error {
	var f faults
	f.window(c.Window)
	return f.Err()
}

// NewNone returns no congestion control: line rate. minRate must be valid.
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
