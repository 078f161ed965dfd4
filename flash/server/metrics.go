package server

import (
	"fmt"
	"net/http"
	"strings"

	"farflash/flash/verbs"
)

func add(to *verbs.Counters, c verbs.Counters) {
	to.SegmentsIn += c.SegmentsIn
	to.SegmentsOut += c.SegmentsOut
	to.Reads += c.Reads
	to.Writes += c.Writes
	to.Atomics += c.Atomics
	to.ReadBytes += c.ReadBytes
	to.WriteBytes += c.WriteBytes
	to.Stalls += c.Stalls
}

// metric is one sample of /metrics.
type metric struct {
	name, kind, help string
	value            float64
}

// measure collects all metrics.
func (s *Server) measure() []metric {
	s.mu.Lock()
	sum, conns, early, displaced := s.past, len(s.conns), s.early.Len(), s.early.Displaced()
	for c := range s.conns {
		add(&sum, c.Counters())
	}
	s.mu.Unlock()
	nbd := 0
	if s.blocks != nil {
		nbd, early, displaced = s.blocks.Connections(), early+s.blocks.Handshakes(), displaced+s.blocks.Displaced()
	}
	p := s.cfg.Pool.Stats()
	used, capacity := s.cfg.Pool.Use()
	readOnly := 0.0
	if s.cfg.Pool.ReadOnly() != nil {
		readOnly = 1
	}
	const counter, gauge = "counter", "gauge"
	return []metric{
		{"connections", gauge, "iWARP connections", float64(conns)},
		{"handshakes", gauge, "connections in their handshakes", float64(early)},
		{"nbd_connections", gauge, "NBD connections", float64(nbd)},
		{"regions", gauge, "exports open on connections", float64(s.adapter.Regions())},
		{"connections_accepted_total", counter, "connections that completed their handshakes", float64(s.accepted.Load())},
		{"connections_refused_total", counter, "connections refused because of a limit", float64(s.refused.Load())},
		{"handshakes_failed_total", counter, "connections that failed during their handshakes",
			float64(s.failed.Load())},
		{"handshakes_displaced_total", counter, "connections closed in their handshakes to admit others",
			float64(displaced)},
		{"tokens_wrong_total", counter, "clients with a wrong token", float64(s.denied.Load())},
		{"reads_total", counter, "one-sided reads", float64(sum.Reads)},
		{"read_bytes_total", counter, "bytes read by one-sided reads", float64(sum.ReadBytes)},
		{"write_segments_total", counter, "segments of one-sided writes", float64(sum.Writes)},
		{"write_bytes_total", counter, "bytes written by one-sided writes", float64(sum.WriteBytes)},
		{"atomics_total", counter, "one-sided atomics", float64(sum.Atomics)},
		{"stalls_total", counter, "times a connection's input waited for flash", float64(sum.Stalls)},
		{"accesses_waiting", gauge, "accesses that wait for their export's rate limit", float64(s.gates.waiting())},
		{"pool_pages", gauge, "pages of 4 KiB in use", float64(used)},
		{"pool_capacity_pages", gauge, "capacity in pages of 4 KiB", float64(capacity)},
		{"pool_read_only", gauge, "1 if the pool is read-only because a write or a flush failed", readOnly},
		{"pool_put_pages_total", counter, "pages written for users", float64(p.Puts)},
		{"pool_moved_pages_total", counter, "pages written by collection", float64(p.Moved)},
		{"pool_damaged_pages_total", counter, "pages found damaged or unreadable", float64(p.Damaged)},
		{"pool_flushes_total", counter, "flushes of the devices", float64(p.Flushes)},
		{"pool_write_amplification", gauge, "pages written over pages written for users", p.WAF()},
	}
}

// serveMetrics responds in the Prometheus text format, version 0.0.4.
func (s *Server) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	var b strings.Builder
	for _, m := range s.measure() {
		fmt.Fprintf(&b, "# HELP farflash_%s %s\n# TYPE farflash_%s %s\nfarflash_%s %g\n", m.name, m.help, m.name,
			m.kind, m.name, m.value)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = w.Write([]byte(b.String())) // a failed response concerns only the reader
}
