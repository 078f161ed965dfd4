package ratecontrol

import (
	"errors"
	"fmt"
	"slices"

	"farflash/block"
	"farflash/policy/forest"
)

// Predictor predicts a drive's read and write throughput.
type Predictor interface {
	// Predict returns the expected bytes per second that a drive reads and writes under the load ch, with the weight
	// ratio w, the write weight over the read weight, at least 1. It neither retains nor changes ch, does not allocate,
	// and is deterministic.
	Predict(ch *Features, w int) (read, write float64)
}

// Model is a random forest trained on a drive (SRC, section III-B), safe for concurrent use.
type Model struct {
	forest *forest.Forest
}

// NewModel wraps a forest that was trained on InputNames and OutputNames.
func NewModel(f *forest.Forest) (*Model, error) {
	if f == nil {
		return nil, errors.New("ratecontrol: the model's forest is nil")
	}
	if want := InputNames(); !slices.Equal(f.Inputs, want) {
		return nil, fmt.Errorf("the model has inputs %q; a drive model needs %q", f.Inputs, want)
	}
	if want := OutputNames(); !slices.Equal(f.Outputs, want) {
		return nil, fmt.Errorf("the model has outputs %q; a drive model needs %q", f.Outputs, want)
	}
	return &Model{f}, nil
}

// Partition returns the partition that the model was trained under; ok is false if its file does not say.
func (m *Model) Partition() (p Partition, ok bool) {
	for _, n := range m.forest.Notes {
		if n.Name == PartitionNote {
			return p, p.UnmarshalText([]byte(n.Value)) == nil
		}
	}
	return p, false
}

// PartitionNote is the name of a model's note of its partition.
const PartitionNote = "partition"

// Predict implements Predictor.
func (m *Model) Predict(ch *Features, w int) (read, write float64) {
	x := ch.Vector(w)
	var y [Outputs]float64
	m.forest.Predict(x[:], y[:])
	return y[block.Read], y[block.Write]
}
