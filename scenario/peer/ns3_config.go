package peer

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"farflash/internal/spelling"
	"farflash/numeric/units"
)

// NS3RateBytes is a threshold for ports of one rate, in units of 1000 bytes.
type NS3RateBytes struct {
	Rate units.BitRate
	KB   uint32
}

// NS3RateProbability is a marking probability for ports of one rate.
type NS3RateProbability struct {
	Rate        units.BitRate
	Probability float64
}

// NS3LinkDown takes down the link between nodes A and B, Time after second 2 of
// the simulation. Time 0 takes down none.
type NS3LinkDown struct {
	Time units.Duration
	A, B int
}

// settings holds the positions of a configuration's keys.
type settings struct {
	file string
	at   map[string]position
}

// At returns a key's position, as file:line:column, for errors about its value; it is the file alone if the key is
// absent.
func (s *settings) At(key string) string {
	if at, ok := s.at[key]; ok {
		return at.String()
	}
	return s.file
}

// Has reports whether the file has the key; otherwise its field holds the default.
func (s *settings) Has(key string) bool {
	_, ok := s.at[key]
	return ok
}

// need returns an error unless the file has the key. why describes the reference's behaviour without it, and by is the
// setting that requires it.
func (s *settings) need(key, by, why string) error {
	if s.Has(key) {
		return nil
	}
	at := position{s.file, 1, 1}
	if p, ok := s.at[by]; ok {
		at = p
	}
	return fmt.Errorf("%v: no %s; %s", at, key, why)
}

// wrong returns an error about a key's value.
func (s *settings) wrong(key, format string, args ...any) error {
	at, ok := s.at[key]
	if !ok {
		at = position{s.file, 1, 1}
	}
	return fmt.Errorf("%v: %s: %s", at, key, fmt.Sprintf(format, args...))
}

// NS3Layout is one of the two configuration layouts, which share names for settings with different meanings.
type NS3Layout uint8

// The layouts.
const (
	LayoutHPCC    NS3Layout = iota + 1 // of HPCC's ns-3
	LayoutNS3RDMA                      // of ns3-rdma
)

// String returns the layout's name.
func (l NS3Layout) String() string {
	switch l {
	case LayoutHPCC:
		return "hpcc"
	case LayoutNS3RDMA:
		return "ns3-rdma"
	}
	return fmt.Sprintf("NS3Layout(%d)", uint8(l))
}

var (
	hpccType = reflect.TypeFor[HPCCConfig]()
	rdmaType = reflect.TypeFor[NS3RDMAConfig]()
)

// keysOf lists the keys of a configuration: its exported fields.
func keysOf(t reflect.Type) []string {
	var keys []string
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() {
			keys = append(keys, f.Name)
		}
	}
	return keys
}

// hasKey reports whether a configuration has a key.
func hasKey(t reflect.Type, key string) bool {
	f, ok := t.FieldByName(key)
	return ok && f.IsExported() && len(f.Index) == 1
}

// DetectNS3 identifies the program of a configuration file by the keys that only one of them has. A file with keys of
// both, or without any, is an error.
func DetectNS3(name string, r io.Reader) (NS3Layout, error) {
	w, err := newWords(name, r)
	if err != nil {
		return 0, err
	}
	var hpcc, rdma word
	for v, ok := w.next(); ok; v, ok = w.next() {
		if !v.first {
			continue
		}
		switch inHPCC, inRDMA := hasKey(hpccType, v.text), hasKey(rdmaType, v.text); {
		case inHPCC && !inRDMA && hpcc.text == "":
			hpcc = v
		case inRDMA && !inHPCC && rdma.text == "":
			rdma = v
		}
	}
	switch {
	case hpcc.text != "" && rdma.text != "":
		return 0, fmt.Errorf(
			"%v: %s is a key only of HPCC's ns-3, but %s on line %d is one only of ns3-rdma; keep the keys of one "+
				"of them",
			w.at(hpcc), hpcc.text, rdma.text, rdma.line)
	case hpcc.text != "":
		return LayoutHPCC, nil
	case rdma.text != "":
		return LayoutNS3RDMA, nil
	}
	return 0, fmt.Errorf(
		"%s:1:1: unknown configuration, of HPCC's ns-3 or of ns3-rdma: it has no key that only one "+
			"of them has, such as CC_MODE or KMAX_MAP of the former and CNP_INTERVAL or KMAX of the latter", name)
}

// readSettings sets the fields that the words of a file name. v is the configuration, which holds the defaults; peer
// and other are the programs' names.
func readSettings(name string, r io.Reader, v reflect.Value, other reflect.Type, peer, otherPeer string) (settings,
	error) {
	s := settings{name, map[string]position{}}
	w, err := newWords(name, r)
	if err != nil {
		return s, err
	}
	t := v.Type()
	for {
		k, ok := w.next()
		if !ok {
			break
		}
		if strings.HasPrefix(k.text, "#") {
			if err := w.comment(t, peer); err != nil {
				return s, err
			}
			continue
		}
		switch first, twice := s.at[k.text]; {
		case hasKey(t, k.text) && twice:
			return s, w.fail(k, "%s is given twice; first on line %d. %s would use the last one; leave one of them out",
				k.text, first.line, peer)
		case hasKey(t, k.text):
		case !k.first:
			return s, w.fail(k, "unexpected %q after the value of a key; start a new line for each key", clip(k.text))
		case hasKey(other, k.text):
			return s, w.fail(k, "%s is a key of %s, not of %s", k.text, otherPeer, peer)
		default:
			if best := spelling.Nearest(k.text, keysOf(t)); best != "" {
				return s, w.fail(k, "unknown key %q; did you mean %s?", clip(k.text), best)
			}
			return s, w.fail(k, "unknown key %q; the keys of %s are %s", clip(k.text), peer,
				strings.Join(keysOf(t), ", "))
		}
		s.at[k.text] = w.at(k)
		field, _ := t.FieldByName(k.text)
		if err := w.setting(v.FieldByIndex(field.Index), k.text, field.Tag.Get("in")); err != nil {
			return s, err
		}
	}
	return s, nil
}

// comment skips a line that starts with #. The reference has no comments: it skips words that are not keys, so a key in
// a comment takes effect.
func (w *words) comment(t reflect.Type, peer string) error {
	for v, ok := w.peek(); ok && !v.first; v, ok = w.peek() {
		if hasKey(t, v.text) {
			return w.fail(v, "%s has no comments and would read this %s; write #%s, or leave the line out", peer,
				v.text, v.text)
		}
		w.peeked = false
	}
	return nil
}

// scales maps the tags of time fields to their units.
var scales = map[string]units.Duration{"s": units.Second, "us": units.Microsecond, "ns": units.Nanosecond}

// setting parses the value of a key.
func (w *words) setting(v reflect.Value, key, in string) error {
	take := func(what string) (word, error) {
		x, ok := w.next()
		if !ok {
			return x, w.fail(w.last, "%s has no %s", key, what)
		}
		return x, nil
	}
	if v.Kind() == reflect.Slice {
		return w.rateMap(v, key, take)
	}
	if v.Type() == reflect.TypeFor[NS3LinkDown]() {
		return w.linkDown(v.Addr().Interface().(*NS3LinkDown), key, take)
	}
	x, err := take("value")
	if err != nil {
		return err
	}
	if hasKey(hpccType, x.text) || hasKey(rdmaType, x.text) {
		return w.fail(x, "%s has no value; the key %s is in its place", key, x.text)
	}
	switch p := v.Addr().Interface().(type) {
	case *string:
		*p = x.text
	case *bool:
		switch x.text {
		case "0", "1":
			*p = x.text == "1"
		default:
			err = fmt.Errorf("%q is neither 0 (no) nor 1 (yes)", clip(x.text))
		}
	case *uint32:
		var n uint64
		n, err = whole(x.text, 1<<32-1)
		*p = uint32(n)
	case *float64:
		*p, err = decimal(x.text, 1e18)
	case *units.BitRate:
		*p, err = ns3Rate(x.text)
	case *units.Duration:
		*p, err = duration(x.text, scales[in])
		if err == nil && in != "s" && *p%scales[in] != 0 {
			err = fmt.Errorf("%s is truncated to whole %s by the reference; write a whole number", x.text, in)
		}
	default:
		panic("peer: cannot read a " + v.Type().String())
	}
	if err != nil {
		return w.fail(x, "%s: %w", key, err)
	}
	return nil
}

// mostRates bounds a map from rates; no network has that many kinds of links.
const mostRates = 1024

// rateMap parses the number of pairs, and the pairs: a rate in bit/s and a value.
func (w *words) rateMap(v reflect.Value, key string, take func(string) (word, error)) error {
	x, err := take("number of pairs")
	if err != nil {
		return err
	}
	n, err := whole(x.text, mostRates)
	if err != nil {
		return w.fail(x, "%s: number of pairs: %w", key, err)
	}
	var seen []units.BitRate
	for i := range n {
		what := fmt.Sprintf("rate of pair %d of %d", i+1, n)
		r, err := take(what)
		if err != nil {
			return err
		}
		bps, err := whole(r.text, 1<<63-1)
		if err != nil {
			return w.fail(r, "%s: %s, in bit/s: %w", key, what, err)
		}
		rate := units.BitRate(bps)
		if slices.Contains(seen, rate) {
			return w.fail(r, "%s: %v is given twice", key, rate)
		}
		seen = append(seen, rate)
		y, err := take(fmt.Sprintf("value of pair %d of %d", i+1, n))
		if err != nil {
			return err
		}
		switch p := v.Addr().Interface().(type) {
		case *[]NS3RateBytes:
			var kb uint64
			kb, err = whole(y.text, (1<<32-1)/1000)
			*p = append(*p, NS3RateBytes{rate, uint32(kb)})
		case *[]NS3RateProbability:
			var x float64
			x, err = decimal(y.text, 1)
			*p = append(*p, NS3RateProbability{rate, x})
		}
		if err != nil {
			return w.fail(y, "%s: value for %v: %w", key, rate, err)
		}
	}
	return nil
}

func (w *words) linkDown(d *NS3LinkDown, key string, take func(string) (word, error)) error {
	t, err := take("time")
	if err != nil {
		return err
	}
	us, err := whole(t.text, uint64(units.Forever/units.Microsecond))
	if err != nil {
		return w.fail(t, "%s: time in us: %w", key, err)
	}
	d.Time = units.Duration(us) * units.Microsecond
	for _, to := range []*int{&d.A, &d.B} {
		x, err := take("two nodes after its time")
		if err != nil {
			return err
		}
		n, err := whole(x.text, ns3MaxNodes-1)
		if err != nil {
			return w.fail(x, "%s: node: %w", key, err)
		}
		*to = int(n)
	}
	return nil
}
