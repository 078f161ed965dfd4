package ratecontrol

import (
	"fmt"
	"slices"

	"farflash/block"
	"farflash/policy/forest"
)

// Predictor foresees what a drive reads and writes.
type Predictor interface {
	// Predict returns how many bytes a second a drive is expected to read and to write when it is asked for what ch
	// says and w is its weight ratio, the write weight over the read weight, at least 1. It neither keeps ch nor
	// changes it, allocates nothing, and gives the same for the same.
	Predict(ch *Features, w int) (read, write float64)
}

// Model predicts with a random forest that was trained on a drive (SRC, section III-B). Any number of goroutines may
// use it.
type Model struct {
	forest *forest.Forest
}

// NewModel takes a forest that was trained on InputNames and OutputNames.
func NewModel(f *forest.Forest) (*Model, error) {
	if want := InputNames(); !slices.Equal(f.Inputs, want) {
		return nil, fmt.Errorf("the model takes %q; a drive's takes %q", f.Inputs, want)
	}
	if want := OutputNames(); !slices.Equal(f.Outputs, want) {
		return nil, fmt.Errorf("the model gives %q; a drive's gives %q", f.Outputs, want)
	}
	return &Model{f}, nil
}

// Forest is what predicts.
func (m *Model) Forest() *forest.Forest { return m.forest }

// Predict implements Predictor.
func (m *Model) Predict(ch *Features, w int) (read, write float64) {
	x := ch.Vector(w)
	var y [Outputs]float64
	m.forest.Predict(x[:], y[:])
	return y[block.Read], y[block.Write]
}
