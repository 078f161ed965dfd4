// Package columnar writes and reads the Parquet files of a run: requests.parquet (one row a request), a network's flows.parquet and
// pauses.parquet, an object cluster's chunks.parquet, and series.parquet.
//
// Its main types are [Request], [Flow], [Pause], [Chunk], their writers, and [SeriesRow]. Rows are written as the run goes, a row group at a time,
// so that memory does not grow with the length of the run. DuckDB, pandas and Polars read the files. Parquet is Apache
// Parquet format 2.9; columns are compressed with Zstandard.
//
// What it leaves out: Parquet in general. It is the only package that knows the Parquet library.
package columnar

import (
	"errors"
	"fmt"
	"io"

	"farflash/result"
	"farflash/units"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// Absent marks a time that a request does not have, such as the arrival over a network when there is none. It is written as
// null.
const Absent units.Duration = -1

// Request is one row of requests.parquet. Times are in picoseconds of simulated time.
type Request struct {
	ID                int64
	Initiator, Target int32
	Drive             int32                  // numbered over all targets
	Op                string                 // read, write, trim or flush
	Offset, Size      int64                  // bytes
	Arrival           units.Duration         // when the host wanted it
	StorageArrival    units.Duration         // when the drive got it
	StorageDeparture  units.Duration         // when the drive was done
	NetworkArrival    units.Duration         // when its data or capsule entered the network
	NetworkDeparture  units.Duration         // when it left the network
	Completion        units.Duration         // when the host knew
	Stage             [stages]units.Duration // how long it was in each stage, in the order of a read
}

// stages is how many stages a request has.
const stages = 7

// row is Request as Parquet sees it. The names are those of the documented columns.
type row struct {
	ID               int64  `parquet:"id,delta"`
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
}

const (
	rowGroup = 1 << 17 // rows of a row group: some MB in memory, few enough for readers to skip
	chunk    = 1 << 10 // rows handed to the library at once
)

// RequestWriter writes requests.parquet.
type RequestWriter struct {
	w     *parquet.GenericWriter[row]
	rows  []row
	times [][4 + stages]int64 // what the rows' optional times point to
	group int
}

// NewRequestWriter begins a file on w. The caller calls Close, which does not close w.
func NewRequestWriter(w io.Writer) *RequestWriter {
	return &RequestWriter{
		w:    parquet.NewGenericWriter[row](w, parquet.Compression(&zstd.Codec{}), parquet.CreatedBy("farflash", "1", "")),
		rows: make([]row, 0, chunk), times: make([][4 + stages]int64, chunk),
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
	w.rows = append(w.rows, row{q.ID, q.Initiator, q.Target, q.Drive, q.Op, q.Offset, q.Size, int64(q.Arrival),
		optional(0, q.StorageArrival), optional(1, q.StorageDeparture), optional(2, q.NetworkArrival), optional(3, q.NetworkDeparture),
		int64(q.Completion), s(0), s(1), s(2), s(3), s(4), s(5), s(6)})
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

// Close writes what is left and the end of the file.
func (w *RequestWriter) Close() error {
	return errors.Join(w.flush(), w.w.Close())
}

// ReadRequests calls f for every request of a file, in the order they were written, until f returns an error.
func ReadRequests(r io.ReaderAt, size int64, f func(Request) error) (err error) {
	// The library reports some kinds of damage by panicking.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("requests: damaged file: %v", p)
		}
	}()
	file, err := parquet.OpenFile(r, size)
	if err != nil {
		return fmt.Errorf("requests: %w", err)
	}
	want := parquet.SchemaOf(row{})
	for _, c := range want.Columns() {
		if _, ok := file.Schema().Lookup(c...); !ok {
			return fmt.Errorf("requests: there is no column %s", c[0])
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
	rows := make([]row, chunk)
	for {
		n, err := reader.Read(rows)
		for _, q := range rows[:n] {
			if err := f(Request{q.ID, q.Initiator, q.Target, q.Drive, q.Op, q.Offset, q.Size, units.Duration(q.Arrival),
				time(q.StorageArrival), time(q.StorageDeparture), time(q.NetworkArrival), time(q.NetworkDeparture),
				units.Duration(q.Completion), [stages]units.Duration{time(q.AtInitiator), time(q.NetworkOut), time(q.AtTarget), time(q.DriveWait),
					time(q.Flash), time(q.TXQ), time(q.NetworkBack)}}); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("requests: %w", err)
		case n == 0:
			return errors.New("requests: damaged file: no rows where there should be some")
		}
	}
}

// SeriesRow is one row of series.parquet: one bin of one series. Value is nil where the bin holds none.
type SeriesRow struct {
	Series   string   `parquet:"series,dict"`
	Unit     string   `parquet:"unit,dict"`
	T        float64  `parquet:"t"`
	TimeUnit string   `parquet:"t_unit,dict"`
	Value    *float64 `parquet:"value,optional"`
}

// WriteSeries writes series.parquet.
func WriteSeries(w io.Writer, series []result.Series) error {
	p := parquet.NewGenericWriter[SeriesRow](w, parquet.Compression(&zstd.Codec{}), parquet.CreatedBy("farflash", "1", ""))
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
