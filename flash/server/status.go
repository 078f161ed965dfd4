package server

import (
	"time"

	"farflash/flash/ctl"
	"farflash/flash/meter"
	"farflash/flash/qos"
)

// Status is the state of a server for the operators of its machine, and the JSON of farflash flash ctl status --json.
type Status struct {
	Pool      string    `json:"pool"`  // UUID
	Began     time.Time `json:"began"` // when it began to serve
	Unready   string    `json:"unready,omitempty"`
	Addresses []string  `json:"addresses"`

	Used     int64 `json:"used"`     // bytes
	Capacity int64 `json:"capacity"` // bytes
	Hits     int64 `json:"hits"`     // requests of pages in memory
	Misses   int64 `json:"misses"`   // and of others
	// Map is the memory of the map, in bytes, and MapReads the reads of parts that were not there, with checksums.
	Map      int64 `json:"map"`
	MapReads int64 `json:"map_reads"`
	Damaged  int64 `json:"damaged"` // pages found damaged or unreadable
	// WriteAmplification is pages written over pages written for users.
	WriteAmplification float64 `json:"write_amplification"`

	// Limits are those in force, by export.
	Limits map[string]qos.Limit `json:"limits"`
	// Configured are those of the configuration, in place of which flash ctl has set others; none is a limit here too.
	Configured map[string]qos.Limit `json:"configured"`
	Draining   []Drain              `json:"draining"`
	Exports    []ExportStatus       `json:"exports"`
}

// ExportStatus is the use of an export over a protocol since the server began, as of its metrics.
type ExportStatus struct {
	Export      string             `json:"export"`
	Protocol    string             `json:"protocol"`
	Clients     int                `json:"clients"` // that have it open now: connections, or hosts of NVMe
	Outstanding int64              `json:"outstanding"`
	Failed      int64              `json:"failed"`
	Kinds       map[string]OfAKind `json:"operations"` // by kind, those that occurred
}

// OfAKind are the operations of one kind.
type OfAKind struct {
	Count int64 `json:"count"`
	Bytes int64 `json:"bytes"`
	// P50 and P99 are percentiles of latencies, in seconds, up to 9 % too high; 0 if the kind has none.
	P50 float64 `json:"p50,omitempty"`
	P99 float64 `json:"p99,omitempty"`
}

// Status returns the present status.
func (s *Server) Status() Status {
	p := s.cfg.Pool
	counts, used := p.Stats(), int64(0)
	x := Status{Pool: p.Shape().UUID.String(), Began: s.began, Unready: s.unready(), Hits: counts.Hits,
		Misses: counts.Misses, Damaged: counts.Damaged, WriteAmplification: counts.WAF(), Exports: []ExportStatus{},
		Limits: s.gates.limits(), Configured: s.limits.replacements(), Draining: s.drains()}
	used, x.Capacity = p.Use()
	ofPages, ofPlaces := p.MapBytes()
	x.Map, x.MapReads = ofPages+ofPlaces, counts.MapReads+counts.Sums
	x.Used, x.Capacity = used*ctl.Page, x.Capacity*ctl.Page
	for _, l := range []struct {
		name string
		at   string
	}{{"iwarp", text(s.listener)}, {"nbd", text(s.nbdAt)}, {"metrics", text(s.metricsL)}} {
		if l.at != "" {
			x.Addresses = append(x.Addresses, l.name+" "+l.at)
		}
	}
	for _, a := range s.Paths() {
		x.Addresses = append(x.Addresses, "nvme "+a.String())
	}
	all, _ := s.meter.Samples()
	for _, m := range all {
		e := ExportStatus{Export: m.Export, Protocol: m.Protocol, Clients: m.Uses, Outstanding: m.Outstanding,
			Kinds: map[string]OfAKind{}}
		for k := range meter.Kinds {
			for _, n := range m.Failed[k] {
				e.Failed += n
			}
			if m.Operations[k] == 0 {
				continue
			}
			of := OfAKind{Count: m.Operations[k], Bytes: m.Bytes[k]}
			if k.Timed() {
				of.P50, of.P99 = m.Latency[k].Quantile(0.5).Seconds(), m.Latency[k].Quantile(0.99).Seconds()
			}
			e.Kinds[k.String()] = of
		}
		x.Exports = append(x.Exports, e)
	}
	return x
}
