package server

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"farflash/flash/meter"
	"farflash/flash/verbs"
)

// mostSeries bounds the pairs of an export and a protocol that have metrics of their own; see meter.New.
const mostSeries = 1000

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

// handler serves /metrics, /healthz and /readyz.
func (s *Server) handler() http.Handler {
	all := prometheus.NewRegistry()
	all.MustRegister(gauges{s}, newExportMetrics(s.meter), conditions{s}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(all, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if why := s.unready(); why != "" {
			answer(w, http.StatusServiceUnavailable, why)
			return
		}
		answer(w, http.StatusOK, "ready")
	})
	if s.farMetrics() {
		return s.bearer(mux)
	}
	return s.ownName(mux)
}

// farMetrics reports whether other machines can reach the metrics. They are then served with TLS.
func (s *Server) farMetrics() bool {
	a, is := s.at[2].(*net.TCPAddr)
	return is && !a.IP.IsLoopback()
}

// bearer demands the token, if there is one, for all but the probes, which give nothing away. A page in a browser has
// neither the token nor a certificate.
func (s *Server) bearer(next http.Handler) http.Handler {
	if s.cfg.Token == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if r.URL.Path == "/metrics" && (!ok || !s.known([]byte(token))) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			answer(w, http.StatusUnauthorized, "give the token of clients: Authorization: Bearer TOKEN")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// answer sends a line of text.
func answer(w http.ResponseWriter, code int, text string) { http.Error(w, text, code) }

// unready returns the reason why clients should not be sent here, "" if there is none.
func (s *Server) unready() string {
	s.mu.Lock()
	ending := s.ending
	s.mu.Unlock()
	if ending {
		return "stopping: requests in flight are completed, and no more are accepted"
	}
	if err := s.cfg.Pool.ReadOnly(); err != nil {
		return err.Error()
	}
	return ""
}

// ownName refuses requests for another host's name. A page in a browser on this machine may be from a host whose name
// its owner lets resolve to this machine, so that the browser takes the daemon for a part of that host and lets the
// page read the answer (DNS rebinding). Browsers reach no Unix socket.
func (s *Server) ownName(next http.Handler) http.Handler {
	own, _, err := net.SplitHostPort(s.cfg.Metrics)
	if err != nil || strings.HasPrefix(s.cfg.Metrics, unixPrefix) {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		} else if n := len(host); n > 1 && host[0] == '[' && host[n-1] == ']' {
			host = host[1 : n-1]
		}
		at, err := netip.ParseAddr(host)
		loopback := err == nil && at.Unmap().IsLoopback()
		// A browser sends a name with every request; some monitors send none.
		if host == "" || loopback || strings.EqualFold(host, own) || strings.EqualFold(host, "localhost") {
			next.ServeHTTP(w, r)
			return
		}
		answer(w, http.StatusMisdirectedRequest,
			"only requests for "+own+", localhost or a loopback address are answered here")
	})
}

// metric is one sample of /metrics.
type metric struct {
	name  string
	kind  prometheus.ValueType
	help  string
	value float64
}

const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// measure collects the metrics of the server as a whole.
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
	nvme, hosts := 0, 0
	if s.spaces != nil {
		var waiting int
		nvme, waiting = s.spaces.driver.Connections()
		hosts, _ = s.spaces.target.Associations()
		early, displaced = early+waiting, displaced+s.spaces.driver.Displaced()
	}
	var spans, lost int64
	if s.traces != nil {
		spans, lost = s.traces.Spans()
	}
	var recorded, unrecorded int64
	if s.cfg.Recorder != nil {
		recorded, unrecorded = s.cfg.Recorder.Counts()
	}
	return []metric{
		{"connections", gauge, "iWARP connections", float64(conns)},
		{"handshakes", gauge, "connections in their handshakes", float64(early)},
		{"nbd_connections", gauge, "NBD connections", float64(nbd)},
		{"nvme_connections", gauge, "NVMe/TCP connections, one for each queue", float64(nvme)},
		{"nvme_hosts", gauge, "associations of NVMe hosts", float64(hosts)},
		{"regions", gauge, "exports open on connections", float64(s.adapter.Regions())},
		{"connections_accepted_total", counter, "connections that completed their handshakes",
			float64(s.accepted.Load())},
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
		{"spans_sent_total", counter, "spans of traces that the collector has taken", float64(spans)},
		{"spans_lost_total", counter, "spans of traces that the collector did not get", float64(lost)},
		{"recorded_total", counter, "operations in the recording", float64(recorded)},
		{"recorded_lost_total", counter, "operations that the recording lost", float64(unrecorded)},
	}
}

// measurePool collects the metrics of the pool.
func (s *Server) measurePool() []metric {
	p, x := s.cfg.Pool.Stats(), s.cfg.Pool.Found()
	used, capacity := s.cfg.Pool.Use()
	empty, segments := s.cfg.Pool.Segments()
	ofPages, ofPlaces := s.cfg.Pool.MapBytes()
	return []metric{
		{"pool_pages", gauge, "pages of 4 KiB in use", float64(used)},
		{"pool_capacity_pages", gauge, "capacity in pages of 4 KiB", float64(capacity)},
		{"pool_read_only", gauge, "1 if the pool is read-only because a write or a flush failed",
			one(s.cfg.Pool.ReadOnly() != nil)},
		{"pool_hits_total", counter, "requests of pages that were in memory", float64(p.Hits)},
		{"pool_misses_total", counter, "requests of pages that had to be read from a device", float64(p.Misses)},
		{"pool_map_reads_total", counter,
			"reads of parts of the map, checksums included, that were not in memory", float64(p.MapReads + p.Sums)},
		{"pool_map_writes_total", counter, "pages of the map written so that they need not be in memory",
			float64(p.MapWrites)},
		{"pool_map_bytes", gauge, "memory of the map", float64(ofPages + ofPlaces)},
		{"pool_put_pages_total", counter, "pages written for users", float64(p.Puts)},
		{"pool_moved_pages_total", counter, "pages written by collection", float64(p.Moved)},
		{"pool_log_pages_total", counter, "pages of the log, of checkpoints and of summaries that were written",
			float64(p.Log + p.Checkpoint + p.Summaries)},
		{"pool_rewritten_pages_total", counter, "pages written again elsewhere because a write failed",
			float64(p.Rewritten)},
		{"pool_erased_segments_total", counter, "segments freed by collection and by trims", float64(p.Erased)},
		{"pool_empty_segments", gauge, "segments without data", float64(empty)},
		{"pool_segments", gauge, "segments", float64(segments)},
		{"pool_damaged_pages_total", counter, "pages found damaged or unreadable", float64(p.Damaged)},
		{"pool_flushes_total", counter, "flushes of the devices", float64(p.Flushes)},
		{"pool_checkpoints_total", counter, "checkpoints written", float64(p.Checkpoints)},
		{"pool_write_amplification", gauge, "pages written over pages written for users, since the pool was opened",
			p.WAF()},
		{"pool_recovery_clean", gauge, "1 if the pool had been closed cleanly when it was opened", one(x.Clean)},
		{"pool_recovery_records", gauge, "log records applied when the pool was opened", float64(x.Records)},
		{"pool_recovery_checked_pages", gauge, "pages whose content was verified when the pool was opened",
			float64(x.Checked)},
		{"pool_recovery_dropped_pages", gauge,
			"pages without content when the pool was opened: writes that had not been reported durable",
			float64(x.Dropped)},
		{"pool_recovery_rebuilt_pages", gauge,
			"damaged pages of the pool's own records that were rebuilt when it was opened", float64(len(x.Lost))},
	}
}

// gauges collects the metrics of the server and of the pool.
type gauges struct{ s *Server }

// Describe implements prometheus.Collector.
func (g gauges) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(g, to) }

// Collect implements prometheus.Collector.
func (g gauges) Collect(to chan<- prometheus.Metric) {
	for _, all := range [][]metric{g.s.measure(), g.s.measurePool()} {
		for _, m := range all {
			to <- prometheus.MustNewConstMetric(prometheus.NewDesc("farflash_"+m.name, m.help, nil, nil), m.kind,
				m.value)
		}
	}
	to <- prometheus.MustNewConstMetric(prometheus.NewDesc("farflash_build_info",
		"1, labelled with the program's build",
		[]string{"version", "goversion"}, nil), gauge, 1, cmp.Or(g.s.cfg.Version, "unknown"), runtime.Version())
}

// Metrics by export and protocol.
var (
	whose      = []string{"export", "protocol"}
	whoseKind  = append(whose[:2:2], "kind")
	operations = prometheus.NewDesc("farflash_operations_total",
		"operations that ended; over iWARP, reads in windows, segments of writes, and atomics as writes", whoseKind,
		nil)
	bytesDone  = prometheus.NewDesc("farflash_bytes_total", "bytes of operations that succeeded", whoseKind, nil)
	errorsSeen = prometheus.NewDesc("farflash_errors_total", "operations that failed",
		append(whoseKind[:3:3], "error"), nil)
	outstanding = prometheus.NewDesc("farflash_operations_outstanding",
		"operations that arrived and have not ended, those that wait for a rate limit included", whose, nil)
	duration = prometheus.NewDesc("farflash_operation_seconds",
		"time of an operation from its arrival, with the wait for a rate limit, to the data or the answer", whoseKind,
		nil)
	replacedSeries = prometheus.NewDesc("farflash_exports_forgotten_total",
		"pairs of an export and a protocol whose metrics made room for others'", nil, nil)
)

// Metrics of what operators have set for exports.
var (
	limitBytes = prometheus.NewDesc("farflash_export_limit_bytes_per_second",
		"rate limit of an export that has one", whose[:1], nil)
	limitOperations = prometheus.NewDesc("farflash_export_limit_operations_per_second",
		"rate limit of an export that has one", whose[:1], nil)
	drainedExport = prometheus.NewDesc("farflash_export_drained",
		"1 for each export that is closed to new clients", whose[:1], nil)
	drainedUsers = prometheus.NewDesc("farflash_export_drained_users",
		"clients that still have an export open that is closed to new ones", whose[:1], nil)
)

// conditions collects what operators have set for exports.
type conditions struct{ s *Server }

// Describe implements prometheus.Collector.
func (conditions) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{limitBytes, limitOperations, drainedExport, drainedUsers} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c conditions) Collect(to chan<- prometheus.Metric) {
	put := func(d *prometheus.Desc, n float64, export string) {
		to <- prometheus.MustNewConstMetric(d, gauge, n, export)
	}
	for export, l := range c.s.gates.limits() {
		if l.Bytes > 0 {
			put(limitBytes, float64(l.Bytes), export)
		}
		if l.Operations > 0 {
			put(limitOperations, float64(l.Operations), export)
		}
	}
	for _, d := range c.s.drains() {
		put(drainedExport, 1, d.Export)
		put(drainedUsers, float64(len(d.Users)), d.Export)
	}
}

// exportMetrics collects the metrics of exports.
type exportMetrics struct {
	meter    *meter.Meter
	bounds   []meter.Bound // of the cells
	decimals []float64     // upper bounds of the decimal buckets, in seconds
}

func newExportMetrics(m *meter.Meter) *exportMetrics {
	e := &exportMetrics{meter: m, bounds: meter.Bounds()}
	for _, n := range meter.Decimal() {
		e.decimals = append(e.decimals, time.Duration(n).Seconds())
	}
	return e
}

// Describe implements prometheus.Collector.
func (*exportMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{operations, bytesDone, errorsSeen, outstanding, duration, replacedSeries} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (e *exportMetrics) Collect(to chan<- prometheus.Metric) {
	all, replaced := e.meter.Samples()
	to <- prometheus.MustNewConstMetric(replacedSeries, counter, float64(replaced))
	for _, x := range all {
		to <- prometheus.MustNewConstMetric(outstanding, gauge, float64(x.Outstanding), x.Export, x.Protocol)
		for k := range meter.Kinds {
			put := func(d *prometheus.Desc, n int64, more ...string) {
				labels := append([]string{x.Export, x.Protocol, k.String()}, more...)
				to <- prometheus.MustNewConstMetric(d, counter, float64(n), labels...)
			}
			put(operations, x.Operations[k])
			if k != meter.Flush {
				put(bytesDone, x.Bytes[k])
			}
			for f := meter.Succeeded + 1; f < meter.Failures; f++ {
				put(errorsSeen, x.Failed[k][f], f.String())
			}
			if k.Timed() {
				to <- latencies{e, x, k}
			}
		}
	}
}

// latencies is the histogram of one kind of operation of an export: decimal buckets for the text format, and native
// ones beside them for scrapers that ask for protocol buffers.
type latencies struct {
	*exportMetrics
	of   *meter.Sample
	kind meter.Kind
}

// Desc implements prometheus.Metric.
func (latencies) Desc() *prometheus.Desc { return duration }

// Write implements prometheus.Metric.
func (l latencies) Write(to *dto.Metric) error {
	x := &l.of.Latency[l.kind]
	count, zero, schema := uint64(0), uint64(0), int32(meter.Schema)
	by := make([]uint64, len(l.decimals)+1)
	native := map[int]int64{}
	for i, n := range x.Cells {
		if n == 0 {
			continue
		}
		count += uint64(n)
		by[l.bounds[i].Decimal] += uint64(n)
		if at := l.bounds[i].Native; at < meter.First {
			zero += uint64(n)
		} else {
			native[at] += n
		}
	}
	seconds, threshold := time.Duration(x.Nanos).Seconds(), meter.Least
	h := &dto.Histogram{SampleCount: &count, SampleSum: &seconds, Schema: &schema, ZeroThreshold: &threshold,
		ZeroCount: &zero}
	sum := uint64(0)
	for i := range l.decimals {
		sum += by[i]
		upTo := sum
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: &l.decimals[i], CumulativeCount: &upTo})
	}
	spans(h, native)
	for _, p := range [][2]string{{"export", l.of.Export}, {"kind", l.kind.String()}, {"protocol", l.of.Protocol}} {
		to.Label = append(to.Label, &dto.LabelPair{Name: &p[0], Value: &p[1]})
	}
	to.Histogram = h
	return nil
}

// spans adds the native buckets: runs of buckets with their distances, and the difference of each to the one before.
func spans(h *dto.Histogram, native map[int]int64) {
	last, before := 0, int64(0)
	for at := meter.First; at <= meter.Last; at++ {
		n := native[at]
		if n == 0 {
			continue
		}
		if len(h.PositiveSpan) == 0 || at != last+1 {
			gap, none := int32(at), uint32(0)
			if len(h.PositiveSpan) > 0 {
				gap = int32(at - last - 1)
			}
			h.PositiveSpan = append(h.PositiveSpan, &dto.BucketSpan{Offset: &gap, Length: &none})
		}
		*h.PositiveSpan[len(h.PositiveSpan)-1].Length++
		h.PositiveDelta = append(h.PositiveDelta, n-before)
		last, before = at, n
	}
}
