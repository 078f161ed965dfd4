package columnar

import (
	"errors"
	"fmt"
	"io"

	"farflash/numeric/units"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// Flow is one row of flows.parquet. Times are in picoseconds of simulated time.
type Flow struct {
	ID       int64
	Group    int32  // index of the scenario's source of flows
	Src, Dst int32  // nodes
	SrcPort  uint16 // UDP source port of its queue pair
	Size     int64  // bytes
	Start    units.Duration
	FCT      units.Duration // from Start until the sender received the last acknowledgement; Absent if it did not
	Ideal    units.Duration // on an idle network
}

// Pause is one row of pauses.parquet: a port that received a pause, or a resume.
type Pause struct {
	Time   units.Duration
	Node   int32
	Switch bool // whether Node is a switch
	Port   int32
	Class  int32
	Resume bool
}

// flowRow is the Parquet schema of Flow. The names are those of the documented columns.
type flowRow struct {
	ID      int64  `parquet:"id,delta"`
	Group   int32  `parquet:"group,dict"`
	Src     int32  `parquet:"src,dict"`
	Dst     int32  `parquet:"dst,dict"`
	SrcPort int32  `parquet:"src_port,dict"`
	Size    int64  `parquet:"size,dict"`
	Start   int64  `parquet:"start_ps,delta"`
	FCT     *int64 `parquet:"fct_ps,optional"`
	Ideal   int64  `parquet:"ideal_ps"`
}

type pauseRow struct {
	Time   int64 `parquet:"time_ps,delta"`
	Node   int32 `parquet:"node,dict"`
	Switch bool  `parquet:"switch"`
	Port   int32 `parquet:"port,dict"`
	Class  int32 `parquet:"class,dict"`
	Resume bool  `parquet:"resume"`
}

// rows writes rows of one kind, one row group at a time.
type rows[R any] struct {
	what  string
	w     *parquet.GenericWriter[R]
	held  []R
	group int
}

func newRows[R any](what string, w io.Writer) rows[R] {
	return rows[R]{what: what,
		w: parquet.NewGenericWriter[R](w, parquet.Compression(&zstd.Codec{}), parquet.CreatedBy("farflash", "1", ""))}
}

func (t *rows[R]) add(r R) error {
	if t.held = append(t.held, r); len(t.held) < chunk {
		return nil
	}
	return t.flush()
}

func (t *rows[R]) flush() error {
	if len(t.held) == 0 {
		return nil
	}
	if _, err := t.w.Write(t.held); err != nil {
		return fmt.Errorf("%s: %w", t.what, err)
	}
	t.group += len(t.held)
	clear(t.held)
	t.held = t.held[:0]
	if t.group < rowGroup {
		return nil
	}
	t.group = 0
	return t.w.Flush()
}

func (t *rows[R]) close() error { return errors.Join(t.flush(), t.w.Close()) }

// FlowWriter writes flows.parquet.
type FlowWriter struct{ rows[flowRow] }

// NewFlowWriter starts a file on w. The caller must call Close, which does not close w.
func NewFlowWriter(w io.Writer) *FlowWriter { return &FlowWriter{newRows[flowRow]("flows", w)} }

// Add writes one flow.
func (w *FlowWriter) Add(f Flow) error {
	r := flowRow{ID: f.ID, Group: f.Group, Src: f.Src, Dst: f.Dst, SrcPort: int32(f.SrcPort), Size: f.Size,
		Start: int64(f.Start), Ideal: int64(f.Ideal)}
	if f.FCT != Absent {
		t := int64(f.FCT)
		r.FCT = &t
	}
	return w.add(r)
}

// Close writes the buffered rows and the footer.
func (w *FlowWriter) Close() error { return w.close() }

// PauseWriter writes pauses.parquet.
type PauseWriter struct{ rows[pauseRow] }

// NewPauseWriter starts a file on w. The caller must call Close, which does not close w.
func NewPauseWriter(w io.Writer) *PauseWriter { return &PauseWriter{newRows[pauseRow]("pauses", w)} }

// Add writes one pause.
func (w *PauseWriter) Add(p Pause) error {
	return w.add(pauseRow{int64(p.Time), p.Node, p.Switch, p.Port, p.Class, p.Resume})
}

// Close writes the buffered rows and the footer.
func (w *PauseWriter) Close() error { return w.close() }

// ReadFlows calls f for every flow of a file, in file order, until f returns an error.
func ReadFlows(r io.ReaderAt, size int64, f func(Flow) error) error {
	return readRows("flows", r, size, func(x flowRow) error {
		fct := Absent
		if x.FCT != nil {
			fct = units.Duration(*x.FCT)
		}
		return f(Flow{x.ID, x.Group, x.Src, x.Dst, uint16(x.SrcPort), x.Size, units.Duration(x.Start), fct,
			units.Duration(x.Ideal)})
	})
}

// ReadPauses calls f for every pause of a file, in file order, until f returns an error.
func ReadPauses(r io.ReaderAt, size int64, f func(Pause) error) error {
	return readRows("pauses", r, size, func(x pauseRow) error {
		return f(Pause{units.Duration(x.Time), x.Node, x.Switch, x.Port, x.Class, x.Resume})
	})
}

func readRows[R any](what string, r io.ReaderAt, size int64, f func(R) error) (err error) {
	// The library panics on some kinds of damage.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: damaged file: %v", what, p)
		}
	}()
	file, err := open(r, size)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	for _, c := range parquet.SchemaOf(*new(R)).Columns() {
		if _, ok := file.Schema().Lookup(c...); !ok {
			return fmt.Errorf("%s: no column %s", what, c[0])
		}
	}
	reader := parquet.NewGenericReader[R](file)
	defer reader.Close()
	held := make([]R, chunk)
	for {
		n, err := reader.Read(held)
		for _, x := range held[:n] {
			if err := f(x); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", what, err)
		case n == 0:
			return fmt.Errorf("%s: damaged file: fewer rows than its footer states", what)
		}
	}
}
