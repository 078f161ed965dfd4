package headroom

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"farflash/internal/spelling"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/scenario/shape"
)

// Key is a key of a scenario that represents load.
type Key struct {
	Path string
	Base string // its value in the scenario
	// Divided means that a higher load is a smaller value, such as a time between requests.
	Divided bool
	// Whole means that it is an integer, so that only some loads are possible.
	Whole bool

	of string // the item to which it belongs
	at func(load float64) (string, error)
}

// At returns the key's value at a multiple of the scenario's load.
func (k *Key) At(load float64) (string, error) { return k.at(load) }

// Times describes the effect of a load on the key.
func (k *Key) Times() string {
	if k.Divided {
		return "divided by the load"
	}
	return "times the load"
}

// changes returns the changes of the keys for a load; none at 1, so that the scenario's own trials are found in earlier
// studies' results.
func changes(keys []Key, load float64) ([]shape.Change, error) {
	if load == 1 {
		return nil, nil
	}
	var out []shape.Change
	for i := range keys {
		value, err := keys[i].At(load)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", keys[i].Path, err)
		}
		out = append(out, shape.Change{Path: keys[i].Path, Value: value, Flag: "load x" + number(load)})
	}
	return out, nil
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// apart returns a key that is a time between two events.
func apart(path, of string, d units.Duration) Key {
	return Key{Path: path, of: of, Base: d.String(), Divided: true, at: func(load float64) (string, error) {
		x := math.Round(float64(d) / load)
		if x < 1 || x > float64(units.Forever)/2 {
			return "", fmt.Errorf("%v divided by %s is not a valid time", d, number(load))
		}
		return units.Duration(x).String(), nil
	}}
}

// real returns a key that is a real number, in units of its own.
func real(path, of string, base float64, divided bool, write func(float64) string) Key {
	return Key{Path: path, of: of, Base: write(base), Divided: divided, at: func(load float64) (string, error) {
		if divided {
			return write(base / load), nil
		}
		return write(base * load), nil
	}}
}

// whole returns a key that is an integer.
func whole(path, of string, base int) Key {
	return Key{Path: path, of: of, Base: strconv.Itoa(base), Whole: true, at: func(load float64) (string, error) {
		return strconv.Itoa(max(1, int(math.Round(float64(base)*load)))), nil
	}}
}

// Keys returns the keys that scale the load of a scenario. only names the items whose load is scaled, such as
// workload[0] or an item's own name; none means all of them. With depth, the load of a closed loop is its number of
// outstanding requests; without it closed loops are rejected. Errors name the item and the remedy.
func Keys(s *scenario.Scenario, only []string, depth bool) ([]Key, error) {
	var keys []Key
	var names []string
	loops := 0
	closed := func(item, key string, n int) error {
		if !depth {
			return fmt.Errorf("%s is a closed loop: its load follows from its completions; --depth "+
				"scales its outstanding requests (%s.%s), or give it interarrival times", item, item, key)
		}
		loops++
		keys = append(keys, whole(item+"."+key, item, n))
		return nil
	}
	wanted := func(item, name string) bool {
		names = append(names, item)
		if name != item {
			names = append(names, name)
		}
		return len(only) == 0 || slices.Contains(only, item) || slices.Contains(only, name)
	}
	for i := range s.Workload {
		item := fmt.Sprintf("workload[%d]", i)
		if !wanted(item, s.LoadName(i)) {
			continue
		}
		l := &s.Workload[i]
		switch {
		case l.Fio != nil:
			return nil, fmt.Errorf(
				"%s: a fio job file sets its own load, which no key of the scenario scales; convert it to a "+
					"scenario with farflash convert fio %s, or exclude the item with --scale", item, l.Fio.File)
		case l.Closed > 0:
			if err := closed(item, "closed", l.Closed); err != nil {
				return nil, err
			}
		case l.Trace != nil:
			keys = append(keys, real(item+".trace.scale", item, l.Trace.Scale, true, number))
		case l.MQSim != nil:
			if l.MQSim.Bandwidth == 0 {
				return nil, fmt.Errorf(
					"%s.mqsim.bandwidth is 0, a closed loop whose depth cannot be scaled; set it, or exclude the item "+
						"with --scale", item)
			}
			keys = append(keys, real(item+".mqsim.bandwidth", item, float64(l.MQSim.Bandwidth), false,
				func(v float64) string { return units.ByteRate(math.Round(v)).String() }))
		case l.Synthetic != nil:
			path := item + ".synthetic."
			if d := l.Synthetic.Interarrival.Mean; d > 0 {
				keys = append(keys, apart(path+"interarrival.mean", item, d))
			}
			if f := l.Synthetic.Reads; f != nil && f.Interarrival.Mean > 0 {
				keys = append(keys, apart(path+"reads.interarrival.mean", item, f.Interarrival.Mean))
			}
			if f := l.Synthetic.Writes; f != nil && f.Interarrival.Mean > 0 {
				keys = append(keys, apart(path+"writes.interarrival.mean", item, f.Interarrival.Mean))
			}
		}
	}
	for i := range s.Flows {
		item := fmt.Sprintf("flows[%d]", i)
		f := &s.Flows[i]
		if !wanted(item, item) {
			continue
		}
		switch {
		case f.Poisson != nil:
			keys = append(keys, real(item+".poisson.load", item, float64(f.Poisson.Load), false, number))
		case f.Incast != nil && f.Incast.Every > 0:
			keys = append(keys, apart(item+".incast.every", item, f.Incast.Every))
		default:
			return nil, fmt.Errorf(
				"%s: its flows start at fixed times, so there is no load to scale; use "+
					"poisson, or incast with every, or exclude the item with --scale", item)
		}
	}
	if c := s.ObjectCluster; c != nil && wanted("object_cluster", "object_cluster") {
		switch {
		case c.Load.Rate > 0:
			keys = append(keys, real("object_cluster.load.rate", "object_cluster", c.Load.Rate, false, number))
		case c.Load.Share > 0:
			keys = append(keys, real("object_cluster.load.share", "object_cluster", float64(c.Load.Share), false,
				number))
		default:
			if err := closed("object_cluster", "outstanding", c.Outstanding); err != nil {
				return nil, fmt.Errorf("%w with object_cluster.load.rate", err)
			}
		}
	}
	for _, x := range only {
		if !slices.Contains(names, x) {
			if near := spelling.Nearest(x, names); near != "" {
				return nil, fmt.Errorf("--scale: no item %q; did you mean %s?", x, near)
			}
			return nil, fmt.Errorf("--scale: no item %q; the items are %s", x, strings.Join(names, ", "))
		}
	}
	if depth && loops == 0 {
		return nil, fmt.Errorf("--depth: %s has no closed loop to scale; leave --depth out", s.Name)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf(
			"%s has no load to scale; give its workload an interarrival, its flows a poisson.load or its "+
				"cluster a load.rate", s.Name)
	}
	return keys, nil
}
