package ratecontrol

import (
	"fmt"

	"farflash/block"
)

// Features are what a drive was asked for in a window of time: SRC's Ch (section III-B).
type Features struct {
	ReadShare float64         // requests that are reads, of reads and writes; 0 of none
	Of        [2]FlowFeatures // by block.Read, block.Write
}

// FlowFeatures are those of the requests of one direction.
type FlowFeatures struct {
	Size            float64 // mean, bytes; 0 of no request
	SizeSCV         float64 // variance over squared mean; 0 of fewer than two
	Interarrival    float64 // mean of the times between neighbours, s; the window's length where there are no two
	InterarrivalSCV float64 // 0 of fewer than three requests
	Speed           float64 // bytes that came a second
}

// Inputs is how many numbers a model of a drive takes: the features and the weight ratio.
const Inputs = 12

// Outputs is how many it gives: bytes a second that are read and written.
const Outputs = 2

// InputNames are what a model's inputs are, in their order. Models on disk are held to them.
func InputNames() []string {
	names := []string{"read_share"}
	for _, op := range []block.Op{block.Read, block.Write} {
		for _, what := range []string{"size", "size_scv", "interarrival", "interarrival_scv", "flow_speed"} {
			names = append(names, fmt.Sprintf("%v.%s", op, what))
		}
	}
	return append(names, "weight_ratio")
}

// OutputNames are what a model's outputs are, in their order.
func OutputNames() []string { return []string{"read.throughput", "write.throughput"} }

// Vector is what a model takes of the features and a weight ratio, in the order of InputNames.
func (f *Features) Vector(w int) [Inputs]float64 {
	r, x := &f.Of[block.Read], &f.Of[block.Write]
	return [Inputs]float64{
		f.ReadShare,
		r.Size, r.SizeSCV, r.Interarrival, r.InterarrivalSCV, r.Speed,
		x.Size, x.SizeSCV, x.Interarrival, x.InterarrivalSCV, x.Speed,
		float64(w),
	}
}
