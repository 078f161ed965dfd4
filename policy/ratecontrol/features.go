package ratecontrol

import (
	"fmt"

	"farflash/block"
)

// Features describe a drive's load in a window: SRC's Ch (section III-B).
type Features struct {
	ReadShare float64         // share of reads among reads and writes; 0 if there are none
	Of        [2]FlowFeatures // by block.Read, block.Write
}

// FlowFeatures are the features of the requests of one direction.
type FlowFeatures struct {
	Size            float64 // mean, in bytes; 0 without requests
	SizeSCV         float64 // variance over squared mean; 0 with fewer than two requests
	Interarrival    float64 // mean time between neighbours, s; the window's length with fewer than two requests
	InterarrivalSCV float64 // 0 with fewer than three requests
	Speed           float64 // arriving bytes per second
}

// Inputs is the number of a model's inputs: the features and the weight ratio.
const Inputs = 12

// Outputs is the number of its outputs: bytes per second read and written.
const Outputs = 2

// InputNames returns the names of a model's inputs, as its file must have them.
func InputNames() []string {
	names := []string{"read_share"}
	for _, op := range []block.Op{block.Read, block.Write} {
		for _, what := range []string{"size", "size_scv", "interarrival", "interarrival_scv", "flow_speed"} {
			names = append(names, fmt.Sprintf("%v.%s", op, what))
		}
	}
	return append(names, "weight_ratio")
}

// OutputNames returns the names of a model's outputs, in order.
func OutputNames() []string { return []string{"read.throughput", "write.throughput"} }

// Vector returns the inputs for a weight ratio, in the order of InputNames.
func (f *Features) Vector(w int) [Inputs]float64 {
	r, x := &f.Of[block.Read], &f.Of[block.Write]
	return [Inputs]float64{
		f.ReadShare,
		r.Size, r.SizeSCV, r.Interarrival, r.InterarrivalSCV, r.Speed,
		x.Size, x.SizeSCV, x.Interarrival, x.InterarrivalSCV, x.Speed,
		float64(w),
	}
}
