package ssd_test

import (
	"reflect"
	"slices"
	"testing"

	"farflash/model/ssd"
	"farflash/numeric/units"
)

// numbered sets every number in v, at any depth, to a distinct multiple of k.
func numbered(v reflect.Value, n *int, k int) {
	next := func() int { *n += 7; return *n * k }
	switch v.Kind() {
	case reflect.Struct:
		if _, ok := v.Interface().(units.Total); ok {
			v.Set(reflect.ValueOf(units.TotalOf(units.Duration(next()))))
			return
		}
		for i := range v.NumField() {
			numbered(v.Field(i), n, k)
		}
	case reflect.Array:
		for i := range v.Len() {
			numbered(v.Index(i), n, k)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			numbered(v.Index(i), n, k)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		x := reflect.New(v.Type().Elem()).Elem()
		numbered(x, n, k)
		v.SetMapIndex(reflect.ValueOf("read"), x)
	case reflect.String:
		v.SetString("queue")
		next()
	case reflect.Float64:
		v.SetFloat(float64(next()))
	case reflect.Uint64:
		v.SetUint(uint64(next()))
	default:
		v.SetInt(int64(next()))
	}
}

func statsOf(k int) *ssd.Stats {
	s, n := new(ssd.Stats), 0
	numbered(reflect.ValueOf(s).Elem(), &n, k)
	s.Queues = s.Queues[:1]
	return s
}

// TestStatsSums verifies that every field of Stats is summed and subtracted, so that no new field is forgotten;
// exceptions are named here.
func TestStatsSums(t *testing.T) {
	sum := statsOf(3)
	sum.Add(statsOf(4))
	compare(t, "sum", sum, statsOf(7), map[string]*ssd.Stats{
		"Span": statsOf(3), "FewestFree": statsOf(3), "MaxWait": statsOf(4), "MaxLength": statsOf(4),
	})
	since := statsOf(9).Since(statsOf(4))
	compare(t, "difference", &since, statsOf(5), map[string]*ssd.Stats{
		"Span": statsOf(9), "FewestFree": statsOf(9), "FreeBlocks": statsOf(9),
		"ValidPages": statsOf(9), "ZoneLevels": statsOf(9), "Cached": statsOf(9), "CacheRoom": statsOf(9),
		"Commands": statsOf(9), "MaxWait": statsOf(9), "MaxLength": statsOf(9),
	})
}

// compare compares each field with want's, or with that of the exception of its name.
func compare(t *testing.T, what string, got, want *ssd.Stats, but map[string]*ssd.Stats) {
	t.Helper()
	g, w := reflect.ValueOf(got).Elem(), reflect.ValueOf(want).Elem()
	for i := range g.NumField() {
		name := g.Type().Field(i).Name
		from := w
		if x := but[name]; x != nil {
			from = reflect.ValueOf(x).Elem()
		}
		if name == "Queues" {
			q, expected := got.Queues[0], want.Queues[0]
			expected.MaxWait, expected.MaxLength = but["MaxWait"].Queues[0].MaxWait,
				but["MaxLength"].Queues[0].MaxLength
			if len(got.Queues) != 1 || q != expected {
				t.Errorf("%s of queues: %+v, want %+v", what, got.Queues, expected)
			}
			continue
		}
		if !reflect.DeepEqual(g.Field(i).Interface(), from.Field(i).Interface()) {
			t.Errorf("%s of %s: %+v, want %+v", what, name, g.Field(i).Interface(), from.Field(i).Interface())
		}
	}
}

// TestStatsOfUnlikeDrives covers a queue that only one drive has, and drives of different shapes.
func TestStatsOfUnlikeDrives(t *testing.T) {
	a, b := statsOf(1), statsOf(2)
	b.Queues[0].Name, b.LaneBusy = "other", b.LaneBusy[:1]
	a.Add(b)
	if len(a.Queues) != 2 || !slices.Equal(a.Queues[1:], b.Queues) || a.LaneBusy != nil || len(a.ChannelBusy) != 2 {
		t.Errorf("queues %+v, dies %v, channels %v", a.Queues, a.LaneBusy, a.ChannelBusy)
	}
}
