// Package columnar writes and reads the Parquet files of a run: requests.parquet (one row per request), a network's
// flows.parquet and pauses.parquet, an object cluster's chunks.parquet, and series.parquet.
//
// Its main types are [Request], [Flow], [Pause], [Chunk], their writers, and [SeriesRow]. Rows are written during the
// run, one row group at a time, so that memory does not grow with the length of the run. DuckDB, pandas and Polars read
// the files. The format is Apache Parquet 2.9; columns are compressed with Zstandard.
//
// It leaves out Parquet in general. It is the only package that depends on the Parquet library.
package columnar

import (
	"errors"
	"fmt"
	"io"

	"farflash/numeric/units"
	"farflash/result"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// Absent marks a time that a request does not have, such as the network arrival of a request to a local drive. It is
// written as null.
const Absent units.Duration = -1

// Request is one row of requests.parquet. Times are in picoseconds of simulated time.
type Request struct {
	ID                int64
	Workload          int32 // index of the scenario's workload
	Tenant            string
	Volume            int64                  // the trace's volume number
	Initiator, Target int32                  // for a local drive, the initiator is the number of the job
	Drive             int32                  // numbered over all targets
	Op                string                 // read, write, trim or flush
	Offset, Size      int64                  // bytes
	Arrival           units.Duration         // when the host issued it
	StorageArrival    units.Duration         // when it arrived at the drive
	StorageDeparture  units.Duration         // when the drive completed it
	NetworkArrival    units.Duration         // when its data or capsule entered the network
	NetworkDeparture  units.Duration         // when it left the network
	Completion        units.Duration         // when the host saw the completion
	Stage             [stages]units.Duration // time in each stage, in the order of a read
	// Local is the time in each stage of a local drive, if recorded. BlockedBy names the stage that delayed the request
	// longest, and BlockedByStream is the placement stream of a host's program in that stage, or -1 if there was none.
	Local           [localStages]units.Duration
	BlockedBy       string
	BlockedByStream int32
}

// localStages is the number of stages of a request to a local drive.
const localStages = 17

// stages is the number of stages of a request.
const stages = 7

// row is the Parquet schema of Request. The names are those of the documented columns.
type row struct {
	ID               int64  `parquet:"id,delta"`
	Workload         int32  `parquet:"workload,dict"`
	Tenant           string `parquet:"tenant,dict"`
	Volume           int64  `parquet:"volume,dict"`
	Initiator        int32  `parquet:"initiator,dict"`
	Target           int32  `parquet:"target,dict"`
	Drive            int32  `parquet:"drive,dict"`
	Op               string `parquet:"op,dict"`
	Offset           int64  `parquet:"offset"`
	Size             int64  `parquet:"size,dict"`
	Arrival          int64  `parquet:"arrival_ps,delta"`
	StorageArrival   *int64 `parquet:"storage_arrival_ps,optional"`
	StorageDeparture *int64 `parquet:"storage_departure_ps,optional"`
	NetworkArrival   *int64 `parquet:"network_arrival_ps,optional"`
	NetworkDeparture *int64 `parquet:"network_departure_ps,optional"`
	Completion       int64  `parquet:"completion_ps,delta"`
	AtInitiator      *int64 `parquet:"initiator_ps,optional"`
	NetworkOut       *int64 `parquet:"network_out_ps,optional"`
	AtTarget         *int64 `parquet:"target_ps,optional"`
	DriveWait        *int64 `parquet:"drive_wait_ps,optional"`
	Flash            *int64 `parquet:"flash_ps,optional"`
	TXQ              *int64 `parquet:"txq_ps,optional"`
	NetworkBack      *int64 `parquet:"network_back_ps,optional"`

	HostQueue      *int64  `parquet:"host_queue_ps,optional"`
	Queue          *int64  `parquet:"queue_ps,optional"`
	HostLink       *int64  `parquet:"host_link_ps,optional"`
	DRAM           *int64  `parquet:"dram_ps,optional"`
	Cache          *int64  `parquet:"cache_ps,optional"`
	Mapping        *int64  `parquet:"mapping_ps,optional"`
	BehindReads    *int64  `parquet:"behind_reads_ps,optional"`
	BehindPrograms *int64  `parquet:"behind_programs_ps,optional"`
	BehindGC       *int64  `parquet:"behind_gc_ps,optional"`
	BehindErases   *int64  `parquet:"behind_erases_ps,optional"`
	BehindMap      *int64  `parquet:"behind_map_ps,optional"`
	BehindBus      *int64  `parquet:"behind_bus_ps,optional"`
	Held           *int64  `parquet:"held_ps,optional"`
	Array          *int64  `parquet:"array_ps,optional"`
	Transfer       *int64  `parquet:"transfer_ps,optional"`
	Other          *int64  `parquet:"other_ps,optional"`
	Controller     *int64  `parquet:"controller_ps,optional"`
	BlockedBy      *string `parquet:"blocked_by,optional,dict"`
	BlockedStream  *int32  `parquet:"blocked_by_stream,optional"`
}

const (
	rowGroup = 1 << 17 // rows in a row group: several MB in memory, yet small enough for readers to skip groups
	chunk    = 1 << 10 // rows passed to the library in one call
)

// RequestWriter writes requests.parquet.
type RequestWriter struct {
	w       *parquet.GenericWriter[row]
	rows    []row
	times   [][4 + stages + localStages]int64 // backing array of the rows' optional times
	names   []string
	streams []int32
	group   int
}

// NewRequestWriter starts a file on w. The caller must call Close, which does not close w.
func NewRequestWriter(w io.Writer) *RequestWriter {
	return &RequestWriter{
		w: parquet.NewGenericWriter[row](w, parquet.Compression(&zstd.Codec{}),
			parquet.CreatedBy("farflash", "1", "")),
		rows: make([]row, 0, chunk), times: make([][4 + stages + localStages]int64, chunk),
		names: make([]string, chunk), streams: make([]int32, chunk),
	}
}

// Add writes one request.
func (w *RequestWriter) Add(q Request) error {
	t := &w.times[len(w.rows)]
	optional := func(i int, d units.Duration) *int64 {
		if d == Absent {
			return nil
		}
		t[i] = int64(d)
		return &t[i]
	}
	s := func(k int) *int64 { return optional(4+k, q.Stage[k]) }
	l := func(k int) *int64 { return optional(4+stages+k, q.Local[k]) }
	var by *string
	var stream *int32
	if n := len(w.rows); q.BlockedBy != "" {
		w.names[n], by = q.BlockedBy, &w.names[n]
		if w.streams[n] = q.BlockedByStream; q.BlockedByStream >= 0 {
			stream = &w.streams[n]
		}
	}
	w.rows = append(w.rows,
		row{q.ID, q.Workload, q.Tenant, q.Volume, q.Initiator, q.Target, q.Drive, q.Op, q.Offset, q.Size,
			int64(q.Arrival),
			optional(0, q.StorageArrival), optional(1, q.StorageDeparture), optional(2, q.NetworkArrival),
			optional(3, q.NetworkDeparture),
			int64(q.Completion), s(0), s(1), s(2), s(3), s(4), s(5), s(6),
			l(0), l(1), l(2), l(3), l(4), l(5), l(6), l(7), l(8), l(9), l(10), l(11), l(12), l(13), l(14), l(15), l(16),
			by, stream})
	if len(w.rows) < chunk {
		return nil
	}
	return w.flush()
}

func (w *RequestWriter) flush() error {
	if len(w.rows) == 0 {
		return nil
	}
	if _, err := w.w.Write(w.rows); err != nil {
		return fmt.Errorf("requests: %w", err)
	}
	w.group += len(w.rows)
	w.rows = w.rows[:0]
	if w.group < rowGroup {
		return nil
	}
	w.group = 0
	return w.w.Flush()
}

// Close writes the buffered rows and the footer.
func (w *RequestWriter) Close() error {
	return errors.Join(w.flush(), w.w.Close())
}

// ReadRequests calls f for every request of a file, in file order, until f returns an error.
func ReadRequests(r io.ReaderAt, size int64, f func(Request) error) (err error) {
	// The library panics on some kinds of damage.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("requests: damaged file: %v", p)
		}
	}()
	file, err := open(r, size)
	if err != nil {
		return fmt.Errorf("requests: %w", err)
	}
	want := parquet.SchemaOf(row{})
	for _, c := range want.Columns() {
		if _, ok := file.Schema().Lookup(c...); !ok && c[0] != "controller_ps" { // absent from older files
			return fmt.Errorf("requests: no column %s", c[0])
		}
	}
	reader := parquet.NewGenericReader[row](file)
	defer reader.Close()
	time := func(p *int64) units.Duration {
		if p == nil {
			return Absent
		}
		return units.Duration(*p)
	}
	text := func(p *string) string {
		if p == nil {
			return ""
		}
		return *p
	}
	stream := func(p *int32) int32 {
		if p == nil {
			return -1
		}
		return *p
	}
	rows := make([]row, chunk)
	for {
		n, err := reader.Read(rows)
		for _, q := range rows[:n] {
			if err := f(Request{q.ID, q.Workload, q.Tenant, q.Volume, q.Initiator, q.Target, q.Drive, q.Op, q.Offset,
				q.Size, units.Duration(q.Arrival),
				time(q.StorageArrival), time(q.StorageDeparture), time(q.NetworkArrival), time(q.NetworkDeparture),
				units.Duration(q.Completion),
				[stages]units.Duration{time(q.AtInitiator), time(q.NetworkOut), time(q.AtTarget), time(q.DriveWait),
					time(q.Flash), time(q.TXQ), time(q.NetworkBack)},
				[localStages]units.Duration{time(q.HostQueue), time(q.Queue), time(q.HostLink), time(q.DRAM),
					time(q.Cache), time(q.Mapping), time(q.BehindReads), time(q.BehindPrograms), time(q.BehindGC),
					time(q.BehindErases), time(q.BehindMap), time(q.BehindBus), time(q.Held), time(q.Array),
					time(q.Transfer), time(q.Other), time(q.Controller)}, text(q.BlockedBy),
				stream(q.BlockedStream)}); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("requests: %w", err)
		case n == 0:
			return errors.New("requests: damaged file: fewer rows than its footer states")
		}
	}
}

// SeriesRow is one row of series.parquet: one bin of one series. Value is nil if the bin has no value.
type SeriesRow struct {
	Series   string   `parquet:"series,dict"`
	Unit     string   `parquet:"unit,dict"`
	T        float64  `parquet:"t"`
	TimeUnit string   `parquet:"t_unit,dict"`
	Value    *float64 `parquet:"value,optional"`
}

// WriteSeries writes series.parquet.
func WriteSeries(w io.Writer, series []result.Series) error {
	p := parquet.NewGenericWriter[SeriesRow](w, parquet.Compression(&zstd.Codec{}),
		parquet.CreatedBy("farflash", "1", ""))
	for _, s := range series {
		rows := make([]SeriesRow, len(s.T))
		for i := range rows {
			rows[i] = SeriesRow{Series: s.Name, Unit: s.Unit, T: s.T[i], TimeUnit: s.TimeUnit}
			if v := s.V[i]; v == v {
				rows[i].Value = &v
			}
		}
		if _, err := p.Write(rows); err != nil {
			return fmt.Errorf("series: %w", err)
		}
	}
	return p.Close()
}
