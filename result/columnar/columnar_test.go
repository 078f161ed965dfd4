package columnar

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"farflash/internal/patience"
	"farflash/numeric/units"
	"farflash/result"

	"github.com/parquet-go/parquet-go"
)

func request(i int) Request {
	q := Request{ID: int64(i), Initiator: int32(i % 3), Target: int32(i % 2),
		Op:     []string{"read", "write", "trim"}[i%3],
		Offset: int64(i) * 4096 % 1e9, Size: 4096, Arrival: units.Duration(i) * units.Microsecond,
		NetworkArrival: Absent, NetworkDeparture: Absent}
	q.Drive = int32(i % 4)
	q.Workload, q.Tenant, q.Volume, q.BlockedByStream = int32(i%5), []string{"web", ""}[i%2], int64(i%6)<<20, -1
	for k := range q.Local {
		q.Local[k] = Absent
		if i%4 == 1 {
			q.Local[k] = units.Duration(i + k)
		}
	}
	if i%4 == 1 {
		q.BlockedBy = "behind_gc"
		if i%8 == 1 {
			q.BlockedBy, q.BlockedByStream = "behind_programs", int32(i%3)
		}
	}
	for k := range q.Stage {
		q.Stage[k] = Absent
		if i%3 == 0 {
			q.Stage[k] = units.Duration(i * k)
		}
	}
	q.StorageArrival = q.Arrival
	q.StorageDeparture = q.Arrival + 90*units.Microsecond
	q.Completion = q.StorageDeparture + units.Duration(i%7)
	if i%5 == 0 {
		q.NetworkArrival, q.NetworkDeparture = q.Arrival, 0
	}
	return q
}

func file(tb testing.TB, n int) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := NewRequestWriter(&b)
	for i := range n {
		if err := w.Add(request(i)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func TestRequests(t *testing.T) {
	for _, n := range []int{0, 1, chunk, 2*rowGroup + 17} {
		if n > rowGroup && testing.Short() {
			continue
		}
		text := file(t, n)
		i := 0
		err := ReadRequests(bytes.NewReader(text), int64(len(text)), func(q Request) error {
			if q != request(i) {
				t.Fatalf("request %d is %+v, want %+v", i, q, request(i))
			}
			i++
			return nil
		})
		if err != nil || i != n {
			t.Fatalf("%d of %d requests came back: %v", i, n, err)
		}
		f, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := len(f.RowGroups()), (n+rowGroup-1)/rowGroup; got != want {
			t.Errorf("%d rows are in %d row groups, want %d", n, got, want)
		}
		if n > 0 {
			t.Logf("%d rows take %.1f bytes each", n, float64(len(text))/float64(n))
		}
	}
}

func TestDeterministic(t *testing.T) {
	if !bytes.Equal(file(t, 5000), file(t, 5000)) {
		t.Error("two files of the same requests differ")
	}
}

func TestReadStops(t *testing.T) {
	text := file(t, 100)
	stop := errors.New("stop")
	if err := ReadRequests(bytes.NewReader(text), int64(len(text)),
		func(Request) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error is %v", err)
	}
}

func TestWrongColumns(t *testing.T) {
	var b bytes.Buffer
	if err := WriteSeries(&b, nil); err != nil {
		t.Fatal(err)
	}
	err := ReadRequests(bytes.NewReader(b.Bytes()), int64(b.Len()), func(Request) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "no column id") {
		t.Errorf("error is %v", err)
	}
}

func TestSeries(t *testing.T) {
	var b bytes.Buffer
	if err := WriteSeries(&b,
		[]result.Series{{Name: "read.iops", Unit: "1/s", TimeUnit: "s", T: []float64{0, 1},
			V: []float64{5, math.NaN()}}}); err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.Read[SeriesRow](bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil || len(rows) != 2 || *rows[0].Value != 5 || rows[1].Value != nil || rows[1].T != 1 {
		t.Errorf("%v %v", rows, err)
	}
}

// FuzzRequests writes requests with arbitrary values, including ones that no simulation produces, and reads them back.
func FuzzRequests(f *testing.F) {
	f.Add(int64(1), int32(0), int32(0), "read", int64(0), int64(4096), int64(0), int64(0), int64(-1), int64(5), 1)
	f.Add(int64(-1), int32(-1), int32(7), "", int64(1)<<62, int64(-5), int64(math.MaxInt64), int64(math.MinInt64),
		int64(0), int64(0), 3000)
	f.Fuzz(func(t *testing.T, id int64, initiator, target int32, op string, offset, size, a, b, c, d int64, n int) {
		defer patience.Limit()()
		want := make([]Request, 1+uint(n)%(2*chunk))
		var out bytes.Buffer
		w := NewRequestWriter(&out)
		for i := range want {
			want[i] = Request{ID: id + int64(i), Initiator: initiator, Target: target, Op: op, Offset: offset,
				Size: size * int64(i), Arrival: units.Duration(a),
				StorageArrival: units.Duration(b), StorageDeparture: units.Duration(c),
				NetworkArrival: units.Duration(d), NetworkDeparture: Absent, Completion: units.Duration(a + b),
				BlockedByStream: -1}
			if err := w.Add(want[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		i := 0
		err := ReadRequests(bytes.NewReader(out.Bytes()), int64(out.Len()), func(q Request) error {
			if q != want[i] {
				t.Fatalf("request %d is %+v, want %+v", i, q, want[i])
			}
			i++
			return nil
		})
		if err != nil || i != len(want) {
			t.Fatalf("%d of %d requests came back: %v", i, len(want), err)
		}
	})
}

// TestDamage truncates a file and flips single bits: reading it returns an error or succeeds, and never panics.
func TestDamage(t *testing.T) {
	text := file(t, 50)
	read := func(text []byte) error {
		i := 0
		return ReadRequests(bytes.NewReader(text), int64(len(text)), func(q Request) error {
			i++
			return nil
		})
	}
	// A few hundred positions of each kind suffice: a file has many columns, and each attempt reads all of them.
	for n := 0; n < len(text); n += max(7, len(text)/151) {
		if read(text[:n]) == nil {
			t.Errorf("the first %d of %d bytes passed for a whole file", n, len(text))
		}
	}
	refused, tried := 0, 0
	for n := 0; n < len(text); n += max(11, len(text)/211|1) {
		tried++
		bad := bytes.Clone(text)
		bad[n] ^= 1 << (n % 8)
		if read(bad) != nil {
			refused++
		}
	}
	if refused < tried/2 {
		t.Errorf("%d of %d damaged files were refused", refused, tried)
	}
}

func BenchmarkAdd(b *testing.B) {
	var out bytes.Buffer
	w := NewRequestWriter(&out)
	b.ReportAllocs()
	for i := range b.N {
		if err := w.Add(request(i)); err != nil {
			b.Fatal(err)
		}
		if i%rowGroup == 0 {
			out.Reset()
		}
	}
}
