package report

import (
	"fmt"

	"farflash/internal/term"
)

// fault is a fault in an object cluster that is counted: something lost or repeated.
type fault struct{ metric, label, what string }

// faults lists the faults, shown where the run counted any.
var faults = []fault{
	{"cluster.lost", "lost", "frames and messages lost"},
	{"cluster.retried", "retried", "puts and gets of a chunk that timed out"},
	{"cluster.failed", "failed", "chunks that could not be put or got"},
	{"cluster.get.hedged", "hedged", "reads that asked a second target"},
	{"cluster.get.degraded", "degraded", "reads of chunks with a piece missing"},
	{"cluster.get.unavailable", "unavailable", "reads of chunks with too many pieces missing"},
}

// repair describes the rebuilding of pieces lost to failures. Pieces of chunks that newer chunks have replaced since
// then are not rebuilt.
func (r *Run) repair() (text string, ok bool) {
	if lost, ok := r.value("cluster.repair.lost"); !ok || lost == 0 {
		return "", false
	}
	text = fmt.Sprintf("of %s lost pieces rebuilt", r.written("cluster.repair.lost"))
	if at := r.written("cluster.repair.until"); at != "" {
		text += "; the last at " + at
	}
	return text, true
}

// mishapRows prints the faults.
func (r *Run) mishapRows(t *term.Table, style term.Style) {
	for _, x := range faults {
		if v, ok := r.value(x.metric); ok && v > 0 {
			t.Row(x.label, r.written(x.metric), style.Dim(x.what))
		}
	}
	if text, ok := r.repair(); ok {
		t.Row("repaired", r.written("cluster.repair.done"), style.Dim(text))
	}
}

// faultTable returns the same for a page, nil if there were none.
func faultTable(r *Run) *table {
	t := &table{Caption: "Losses and retries", Full: true, Head: []heading{{"", true}, {}, {"", true}}}
	for _, x := range faults {
		if v, ok := r.value(x.metric); ok && v > 0 {
			t.Rows = append(t.Rows,
				[]cell{{Text: capital(x.label), Class: "text"}, {Text: r.shown(x.metric)},
					{Text: x.what, Class: "text"}})
		}
	}
	if text, ok := r.repair(); ok {
		t.Rows = append(t.Rows,
			[]cell{{Text: "Repaired", Class: "text"}, {Text: r.shown("cluster.repair.done")},
				{Text: text, Class: "text"}})
	}
	if t.Rows == nil {
		return nil
	}
	return t
}
