package peer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"farflash/numeric/units"
)

// HTSimTier is one tier of switches in a topology file of csg-htsim.
type HTSimTier struct {
	Line          int           // of its first line, from 1
	Speed         units.BitRate // of the links below it
	Delay         units.Duration
	SwitchLatency units.Duration
	Down, Up      int // ports
	Oversub       int
	Bundle        int // parallel links below it
	QueueDown     units.Bytes
	QueueUp       units.Bytes
	given         map[string]bool
}

// HTSimTopology is a topology file (.topo) of csg-htsim: a fat-tree of two or three tiers of switches.
type HTSimTopology struct {
	File    string
	Hosts   int
	PodSize int
	Tiers   []HTSimTier
}

// Limits of the files. A line of them has some ten words.
const (
	htsimLine  = 64 << 10
	htsimNodes = 1 << 16
	htsimMost  = 1 << 20 // connections, and triggers
)

// htsimLines reads a file line by line, as words without comments. It stops at an error.
func htsimLines(name string, r io.Reader, each func(line int, words []string) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 4096), htsimLine)
	line := 0
	for s.Scan() {
		line++
		words := strings.Fields(s.Text())
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		if err := each(line, words); err != nil {
			return fmt.Errorf("%s:%d: %w", name, line, err)
		}
	}
	switch err := s.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("%s:%d: the line is longer than %d bytes; this is not a file of htsim", name, line+1,
			htsimLine)
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// htsimNumber parses a whole number from least to most, the word after a key.
func htsimNumber(words []string, at int, least, most int64) (int64, error) {
	key := words[at-1]
	if at >= len(words) {
		return 0, fmt.Errorf("%s: the number is missing", key)
	}
	v, err := strconv.ParseInt(words[at], 10, 64)
	if err != nil || v < least || v > most {
		return 0, fmt.Errorf("%s: %q is not possible; use a whole number from %d to %d", key, words[at], least, most)
	}
	return v, nil
}

// ReadHTSimTopology reads a topology file of csg-htsim. name is used in errors.
func ReadHTSimTopology(name string, r io.Reader) (*HTSimTopology, error) {
	t := &HTSimTopology{File: name}
	var tier *HTSimTier
	tiers := [3]*HTSimTier{}
	count := 0
	seen := map[string]bool{}
	err := htsimLines(name, r, func(line int, words []string) error {
		key := strings.ToLower(words[0])
		set := seen
		if tier != nil {
			set = tier.given
		}
		if key != "tier" {
			if set[key] {
				return fmt.Errorf("%s: given twice", words[0])
			}
			set[key] = true
		}
		number := func(least, most int64) (int64, error) { return htsimNumber(words, 1, least, most) }
		var v int64
		var err error
		switch key {
		case "nodes":
			v, err = number(2, htsimNodes)
			t.Hosts = int(v)
		case "tiers":
			v, err = number(2, 3)
			count = int(v)
		case "podsize":
			v, err = number(1, htsimNodes)
			t.PodSize = int(v)
		case "tier":
			if v, err = number(0, 2); err != nil {
				return err
			}
			if tiers[v] != nil {
				return fmt.Errorf("tier %d is defined twice; first on line %d", v, tiers[v].Line)
			}
			tier = &HTSimTier{Line: line, Oversub: 1, Bundle: 1, given: map[string]bool{}}
			tiers[v] = tier
		default:
			if tier == nil {
				return fmt.Errorf("unknown key %q before the first tier; there are Nodes, Tiers, Podsize and Tier",
					words[0])
			}
			err = tier.read(key, words)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, x := range []struct {
		key string
		v   int
	}{{"Nodes", t.Hosts}, {"Tiers", count}, {"Podsize", t.PodSize}} {
		if x.v == 0 {
			return nil, fmt.Errorf("%s:1: %s is missing", name, x.key)
		}
	}
	for i, x := range tiers {
		switch {
		case i >= count && x != nil:
			return nil, fmt.Errorf("%s:%d: tier %d of %d tiers, which count from 0", name, x.Line, i, count)
		case i >= count:
			continue
		case x == nil:
			return nil, fmt.Errorf("%s:1: tier %d is missing", name, i)
		}
		for _, key := range []string{"downlink_speed_gbps", "downlink_latency_ns", "radix_down"} {
			if !x.given[key] {
				return nil, fmt.Errorf("%s:%d: %s is missing in tier %d", name, x.Line, key, i)
			}
		}
		if i < count-1 && x.Up == 0 {
			return nil, fmt.Errorf("%s:%d: radix_up is missing in tier %d", name, x.Line, i)
		}
		if i == count-1 && i == 2 && x.Up != 0 {
			return nil, fmt.Errorf("%s:%d: tier %d is the top and has no radix_up", name, x.Line, i)
		}
		t.Tiers = append(t.Tiers, *x)
	}
	return t, nil
}

// read parses a key of a tier.
func (x *HTSimTier) read(key string, words []string) error {
	number := func(least, most int64) (int64, error) { return htsimNumber(words, 1, least, most) }
	var v int64
	var err error
	switch key {
	case "downlink_speed_gbps":
		v, err = number(1, 1_000_000)
		x.Speed = units.BitRate(v) * units.Gbps
	case "downlink_latency_ns":
		v, err = number(1, 1_000_000_000)
		x.Delay = units.Duration(v) * units.Nanosecond
	case "switch_latency_ns":
		v, err = number(0, 1_000_000_000)
		x.SwitchLatency = units.Duration(v) * units.Nanosecond
	case "radix_down":
		v, err = number(1, htsimNodes)
		x.Down = int(v)
	case "radix_up":
		v, err = number(1, htsimNodes)
		x.Up = int(v)
	case "oversubscribed":
		v, err = number(1, htsimNodes)
		x.Oversub = int(v)
	case "bundle":
		v, err = number(1, htsimNodes)
		x.Bundle = int(v)
	case "queue_down":
		v, err = number(1, math.MaxInt32)
		x.QueueDown = units.Bytes(v)
	case "queue_up":
		v, err = number(1, math.MaxInt32)
		x.QueueUp = units.Bytes(v)
	default:
		return fmt.Errorf("unknown key %q in a tier; there are Downlink_speed_Gbps, Downlink_Latency_ns, "+
			"Switch_Latency_ns, Radix_Down, Radix_Up, Oversubscribed, Bundle, Queue_Down and Queue_Up", words[0])
	}
	return err
}

// HTSimConnection is a flow of a connection matrix.
type HTSimConnection struct {
	Line     int
	Src, Dst int
	ID       int64 // 0: none
	Size     units.Bytes
	Start    units.Duration // without a trigger
	// Trigger starts the flow, SendDone is activated when its sender knows that all data have arrived, RecvDone when
	// they have; 0 is none.
	Trigger, SendDone, RecvDone int64
	Priority                    bool // whether one is given
}

// HTSimTriggerKind is a trigger's behaviour.
type HTSimTriggerKind uint8

// The kinds.
const (
	HTSimOneShot   HTSimTriggerKind = iota // starts its flows when it is activated
	HTSimMultiShot                         // starts one more flow each time
	HTSimBarrier                           // starts its flows after Count activations
)

// HTSimTrigger is a trigger of a connection matrix.
type HTSimTrigger struct {
	Line  int
	ID    int64
	Kind  HTSimTriggerKind
	Count int
}

// HTSimMatrix is a connection matrix (.cm) of csg-htsim.
type HTSimMatrix struct {
	File        string
	Hosts       int
	Connections []HTSimConnection
	Triggers    []HTSimTrigger
}

// ReadHTSimMatrix reads a connection matrix of csg-htsim. name is used in errors.
func ReadHTSimMatrix(name string, r io.Reader) (*HTSimMatrix, error) {
	m := &HTSimMatrix{File: name}
	counts := map[string]int64{}
	err := htsimLines(name, r, func(line int, words []string) error {
		switch head := words[0]; {
		case head == "Nodes" || head == "Connections" || head == "Triggers" || head == "Failures":
			if len(m.Connections)+len(m.Triggers) > 0 {
				return fmt.Errorf("%s: must precede the connections", head)
			}
			least, most := int64(0), int64(htsimMost)
			if head == "Nodes" {
				least, most = 2, htsimNodes
			}
			v, err := htsimNumber(words, 1, least, most)
			counts[head] = v
			return err
		case strings.Contains(head, "->"):
			c, err := readHTSimConnection(words, int(counts["Nodes"]))
			if err != nil {
				return err
			}
			if len(m.Connections) == htsimMost {
				return fmt.Errorf("more than %d connections", htsimMost)
			}
			c.Line = line
			m.Connections = append(m.Connections, c)
			return nil
		case head == "trigger":
			t, err := readHTSimTrigger(words)
			if err != nil {
				return err
			}
			if len(m.Triggers) == htsimMost {
				return fmt.Errorf("more than %d triggers", htsimMost)
			}
			t.Line = line
			m.Triggers = append(m.Triggers, t)
			return nil
		case head == "failure":
			return errors.New("failure: a failed link of htsim runs at a tenth of its rate, which has no " +
				"counterpart; remove the line")
		default:
			return fmt.Errorf("unknown word %q; a line is Nodes, Connections, Triggers, a connection such as 0->5, "+
				"or a trigger", head)
		}
	})
	if err != nil {
		return nil, err
	}
	if m.Hosts = int(counts["Nodes"]); m.Hosts == 0 {
		return nil, fmt.Errorf("%s:1: Nodes is missing", name)
	}
	if n, ok := counts["Connections"]; ok && n != int64(len(m.Connections)) {
		return nil, fmt.Errorf("%s:1: the file declares %d connections and has %d", name, n, len(m.Connections))
	}
	if len(m.Connections) == 0 {
		return nil, fmt.Errorf("%s:1: no connections, so there is nothing to simulate", name)
	}
	return m, nil
}

// readHTSimConnection parses a line such as "0->5 id 1 start 0 size 2000000".
func readHTSimConnection(words []string, hosts int) (HTSimConnection, error) {
	var c HTSimConnection
	from, to, _ := strings.Cut(words[0], "->")
	for _, end := range []struct {
		text string
		into *int
	}{{from, &c.Src}, {to, &c.Dst}} {
		v, err := strconv.Atoi(end.text)
		if err != nil || v < 0 || v >= hosts {
			return c, fmt.Errorf("%s: %q is not a host; there are %d, from 0", words[0], end.text, hosts)
		}
		*end.into = v
	}
	if c.Src == c.Dst {
		return c, fmt.Errorf("%s: host %d sends to itself", words[0], c.Src)
	}
	started := false
	for i := 1; i < len(words); i++ {
		key := words[i]
		i++
		var err error
		var v int64
		switch key {
		case "start":
			// In picoseconds; htsim reads a number with a fraction and truncates it.
			var f float64
			if i < len(words) {
				f, err = strconv.ParseFloat(words[i], 64)
			}
			if i == len(words) || err != nil || !(f >= 0 && f < 1e18) {
				return c, errors.New("start: use a number of picoseconds")
			}
			c.Start, started = units.Duration(f), true
		case "size":
			v, err = htsimNumber(words, i, 1, math.MaxInt32)
			c.Size = units.Bytes(v)
		case "id":
			c.ID, err = htsimNumber(words, i, 1, math.MaxUint32)
		case "trigger":
			c.Trigger, err = htsimNumber(words, i, 1, math.MaxUint32)
		case "send_done_trigger":
			c.SendDone, err = htsimNumber(words, i, 1, math.MaxUint32)
		case "recv_done_trigger":
			c.RecvDone, err = htsimNumber(words, i, 1, math.MaxUint32)
		case "prio":
			_, err = htsimNumber(words, i, math.MinInt32, math.MaxInt32)
			c.Priority = true
		case "addon":
			return c, errors.New(
				"addon: connections that are joined to others when a trigger fires have no counterpart")
		default:
			return c, fmt.Errorf(
				"unknown word %q; there are start, size, id, trigger, send_done_trigger, recv_done_trigger and prio",
				key)
		}
		if err != nil {
			return c, err
		}
	}
	switch {
	case c.Size == 0:
		return c, errors.New("size is missing")
	case !started && c.Trigger == 0:
		return c, errors.New("neither start nor trigger, so that it never starts")
	case started && c.Trigger != 0:
		return c, errors.New("both start and trigger; leave one out")
	}
	return c, nil
}

// readHTSimTrigger parses a line such as "trigger id 7 barrier count 3".
func readHTSimTrigger(words []string) (HTSimTrigger, error) {
	var t HTSimTrigger
	kinds := 0
	for i := 1; i < len(words); i++ {
		var v int64
		var err error
		switch words[i] {
		case "id":
			i++
			t.ID, err = htsimNumber(words, i, 1, math.MaxUint32)
		case "count":
			i++
			v, err = htsimNumber(words, i, 1, htsimMost)
			t.Count = int(v)
		case "oneshot":
			t.Kind = HTSimOneShot
			kinds++
		case "multishot":
			t.Kind = HTSimMultiShot
			kinds++
		case "barrier":
			t.Kind = HTSimBarrier
			kinds++
		default:
			return t, fmt.Errorf(
				"unknown word %q; a trigger has id, count, and one of oneshot, multishot and barrier", words[i])
		}
		if err != nil {
			return t, err
		}
	}
	switch {
	case t.ID == 0:
		return t, errors.New("a trigger needs an id")
	case kinds != 1:
		return t, errors.New("a trigger is one of oneshot, multishot and barrier")
	case t.Kind == HTSimBarrier && t.Count == 0:
		return t, errors.New("a barrier needs a count")
	}
	return t, nil
}
