package study

import "math"

// Knee is the point of largest curvature: the point farthest from the straight line between the curve's ends, with both
// axes scaled to 1. That is Kneedle's definition (Satopää, Albrecht, Irwin and Raghavan, "Finding a 'Kneedle' in a
// Haystack", ICDCSW 2011, section III), without smoothing, because means over replicates are smooth enough.
type Knee struct {
	Metric string  `json:"metric"`
	Axis   string  `json:"axis"`
	At     string  `json:"at"`       // the axis' value
	Point  int     `json:"point"`    // its index in the grid
	Bend   float64 `json:"distance"` // distance from the line, on a scale of 1
}

// Minimum requirements for a knee: the number of points, and the distance. A parabola through the ends has a distance
// of 0.25.
const (
	kneePoints = 5
	kneeBend   = 0.1
)

// Knees finds the knees of metrics over a sweep's only axis, if its values are ascending numbers. On a geometric axis
// distances are logarithmic, as drawn. A bend within the intervals of the ends and of the point itself does not count.
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

// knee returns the index of the point farthest from the line between the ends, and its distance; 0 if there is no knee.
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
	// A curve that deviates to the other side by more than half as much is a wave, not a bend.
	side := math.Signbit(y[point] - y[0] - float64((y[last]-y[0])*((x[point]-x[0])/width)))
	for i := 1; i < last; i++ {
		off := y[i] - y[0] - float64((y[last]-y[0])*((x[i]-x[0])/width))
		if math.Signbit(off) != side && math.Abs(off)/height > bend/2 {
			return 0, 0
		}
	}
	return point, bend
}
