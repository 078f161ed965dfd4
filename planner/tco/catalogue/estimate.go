package catalogue

import (
	"fmt"
	"slices"

	"farflash/numeric/units"
)

// Figure is a property of a drive that a plan needs and that data sheets may omit.
type Figure uint8

// The figures, in order of estimation: writes depend on reads.
const (
	PriceFigure Figure = iota
	EnduranceFigure
	ReadFigure
	WriteFigure
	ActiveFigure
	IdleFigure
)

var figureNames = units.Names[Figure]{"price", "tbw", "read_iops", "write_iops", "active_w", "idle_w"}

// String returns the figure's name, which is its key in a plan.
func (f Figure) String() string { return figureNames.Name(f) }

// MarshalText writes the figure's name.
func (f Figure) MarshalText() ([]byte, error) { return figureNames.Marshal(f) }

// UnmarshalText reads a figure's name.
func (f *Figure) UnmarshalText(text []byte) error { return figureNames.Unmarshal(text, f) }

// figure returns a pointer to the model's field.
func (m *Model) figure(f Figure) *float64 {
	return [...]*float64{&m.Price, &m.TBW, &m.ReadIOPS, &m.WriteIOPS, &m.ActiveW, &m.IdleW}[f]
}

// knows reports whether the model has the figure. A price of 0 can be known, and so can a hard disk's unlimited
// endurance.
func (m *Model) knows(f Figure) bool {
	return *m.figure(f) > 0 || f == PriceFigure && m.Free || f == EnduranceFigure && m.Disk
}

// Unknown lists the figures that a plan needs and the model lacks. One rating of I/Os suffices, and then applies to
// reads and writes.
func (m *Model) Unknown() (list []Figure) {
	for f := PriceFigure; f <= IdleFigure; f++ {
		rated := f == WriteFigure && m.ReadIOPS > 0 || f == ReadFigure && m.WriteIOPS > 0
		if !m.knows(f) && !rated {
			list = append(list, f)
		}
	}
	return list
}

// Estimate replaces a figure that a drive's data sheet omits: the median of other drives, with their minimum and
// maximum.
type Estimate struct {
	Figure           Figure
	Value, Low, High float64 // in the figure's unit
	Drives           int     // number of drives that have it
}

// estimateScale is the quantity to which a figure is proportional: capacity for price and endurance, and the read
// rating for writes if that is known. Reads and power hardly depend on the capacity: 1 TB and 4 TB of one family share
// a controller.
func (m *Model) estimateScale(f Figure) float64 {
	switch f {
	case PriceFigure, EnduranceFigure:
		return m.Capacity
	case WriteFigure:
		return m.ReadIOPS
	}
	return 1
}

// Estimate estimates a figure of a flash drive from other models that have it: their median, in proportion to the
// capacity for price and endurance, and to the reads for writes. The models span a decade in which prices fell to less
// than a tenth and rose again; Low and High show the uncertainty of such an estimate. The model is not changed.
func (m *Model) Estimate(f Figure, from []Model) (Estimate, error) {
	if m.Disk {
		return Estimate{}, fmt.Errorf("%s is a hard disk, and estimates are from flash drives only; state it",
			m.Name)
	}
	if m.knows(f) {
		return Estimate{}, fmt.Errorf("it is known of %s; leave it out", m.Name)
	}
	proportional := m.estimateScale(f) > 0
	var ratios []float64
	for i := range from {
		x := &from[i]
		scale := 1.0
		if proportional {
			scale = x.estimateScale(f)
		}
		if x.Disk || *x.figure(f) == 0 || scale == 0 || x.Name == m.Name {
			continue
		}
		ratios = append(ratios, *x.figure(f)/scale)
	}
	if ratios == nil {
		return Estimate{}, fmt.Errorf("no other drive has it; state it")
	}
	slices.Sort(ratios)
	n := len(ratios)
	scale := 1.0
	if proportional {
		scale = m.estimateScale(f)
	}
	middle := (ratios[(n-1)/2] + ratios[n/2]) / 2
	return Estimate{Figure: f, Value: middle * scale, Low: ratios[0] * scale, High: ratios[n-1] * scale, Drives: n}, nil
}

// Take stores an estimate in the model.
func (m *Model) Take(e Estimate) { *m.figure(e.Figure) = e.Value }
