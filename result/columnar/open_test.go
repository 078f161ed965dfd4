package columnar

import (
	"bytes"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// TestFooter: a footer length that exceeds the file is refused before the footer is allocated.
func TestFooter(t *testing.T) {
	for text, want := range map[string]string{
		"":         "requests: damaged file: 0 bytes are too few for a table",
		"PAR1PAR1": "requests: damaged file: 8 bytes are too few for a table",
		"PAR1\xff\xff\xff\x7fPAR1": "requests: damaged file: its footer should have 2147483647 bytes, and 0 " +
			"bytes precede the end",
		"PAR1abc\x04\x00\x00\x00PAR1": "requests: damaged file: its footer should have 4 bytes, and 3 bytes " +
			"precede the end",
	} {
		if err := ReadRequests(strings.NewReader(text), int64(len(text)), nil); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

// TestBeforeController: requests written before the controller stage existed are read with that stage Absent.
func TestBeforeController(t *testing.T) {
	var now, before bytes.Buffer
	w := NewRequestWriter(&now)
	q := Request{ID: 7, Workload: 1, Op: "read", Size: 4096, Arrival: 5, Completion: 9}
	for k := range q.Local {
		q.Local[k] = 3
	}
	if err := w.Add(q); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := open(bytes.NewReader(now.Bytes()), int64(now.Len()))
	if err != nil {
		t.Fatal(err)
	}
	group := parquet.Group{}
	for _, f := range file.Schema().Fields() {
		if f.Name() != "controller_ps" {
			group[f.Name()] = f
		}
	}
	old := parquet.NewSchema("row", group)
	convert, err := parquet.Convert(old, file.Schema())
	if err != nil {
		t.Fatal(err)
	}
	out := parquet.NewGenericWriter[any](&before, old)
	if _, err := parquet.CopyRows(out, parquet.ConvertRowReader(file.RowGroups()[0].Rows(), convert)); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	n := 0
	err = ReadRequests(bytes.NewReader(before.Bytes()), int64(before.Len()), func(x Request) error {
		n++
		last := len(x.Local) - 1
		if x.ID != 7 || x.Size != 4096 || x.Completion != 9 || x.Local[last-1] != 3 || x.Local[last] != Absent {
			t.Errorf("%+v", x)
		}
		return nil
	})
	if err != nil || n != 1 {
		t.Errorf("%d requests: %v", n, err)
	}
}
