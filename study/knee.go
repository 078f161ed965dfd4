package study

import "math"

// Knee is where a curve bends most: the point farthest from the straight line between its ends, both axes scaled to
// 1. That is Kneedle's definition (Satopää, Albrecht, Irwin and Raghavan, "Finding a 'Kneedle' in a Haystack", ICDCSW
// 2011, section III), without smoothing, for means over replicates are smooth enough.
type Knee struct {
	Metric string  `json:"metric"`
	Axis   string  `json:"axis"`
	At     string  `json:"at"`       // the axis' value
	Point  int     `json:"point"`    // its number in the grid
	Bend   float64 `json:"distance"` // how far from the line, of 1
}

// The least that is called a knee: so many points, and a bend of so much. A parabola through its ends bends by 0.25.
const (
	kneePoints = 5
	kneeBend   = 0.1
)

// Knees finds those of metrics over a sweep's only axis, if that is one of rising numbers. Distances along a
// geometric axis are those of logarithms, as it is drawn. A bend that the intervals of the ends and of the point
// itself could make is none.
func (c *Curves) Knees(metrics []string) []Knee {
	if len(c.Axes) != 1 || len(c.Points) < kneePoints {
		return nil
	}
	at, _, ok := c.Axes[0].Numbers()
	if !ok || len(at) != len(c.Points) {
		return nil
	}
	if c.Axes[0].Geometric && at[0] > 0 {
		for i := range at {
			at[i] = math.Log(at[i])
		}
	}
	for i := 1; i < len(at); i++ {
		if !(at[i] > at[i-1]) {
			return nil
		}
	}
	var out []Knee
	for _, name := range metrics {
		y, half := make([]float64, len(at)), make([]float64, len(at))
		whole := true
		for i := range c.Points {
			e, ok := c.Points[i].Metric(name)
			whole = whole && ok
			y[i], half[i] = e.Mean, e.Half
		}
		if i, bend := knee(at, y, half); whole && i > 0 {
			out = append(out, Knee{Metric: name, Axis: c.Axes[0].Path, At: c.Points[i].Values[0], Point: i, Bend: bend})
		}
	}
	return out
}

// knee is the number of the point farthest from the line between the ends, and how far that is; 0 if there is no knee.
func knee(x, y, half []float64) (point int, bend float64) {
	last := len(x) - 1
	width, height := x[last]-x[0], math.Abs(y[last]-y[0])
	if !(height > 0) {
		return 0, 0
	}
	for i := 1; i < last; i++ {
		line := y[0] + float64((y[last]-y[0])*((x[i]-x[0])/width))
		if d := math.Abs(y[i]-line) / height; d > bend {
			point, bend = i, d
		}
	}
	if noise := (half[0] + half[point] + half[last]) / height; bend < kneeBend || bend <= noise {
		return 0, 0
	}
	// A curve that leaves the line's side as far as it keeps to it waves rather than bends.
	side := math.Signbit(y[point] - y[0] - float64((y[last]-y[0])*((x[point]-x[0])/width)))
	for i := 1; i < last; i++ {
		off := y[i] - y[0] - float64((y[last]-y[0])*((x[i]-x[0])/width))
		if math.Signbit(off) != side && math.Abs(off)/height > bend/2 {
			return 0, 0
		}
	}
	return point, bend
}
