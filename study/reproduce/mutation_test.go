package reproduce

import (
	"context"
	"regexp"
	"slices"
	"testing"

	"farflash/internal/patience"
	"farflash/scenario/shape"
)

// mutations are the mutations of each experiment, by its id.
var mutations = map[string][]mutation{
	"mqsim-fairness": fairnessMutations, "reality-software": softwareMutations, "snis-fig2": snisFig2Mutations, "snis-table2": snisTable2Mutations,
	"snis-fig4": snisFig4Mutations, "snis-fig5": snisFig5Mutations, "snis-fig6": snisFig6Mutations,
	"snis-fig7":        snisFig7Mutations,
	"replicast-table2": replicastMutations["table2"], "replicast-table3": replicastMutations["table3"],
	"replicast-table4": replicastMutations["table4"], "replicast-table5": replicastMutations["table5"],
	"replicast-fig8": replicastMutations["fig8"], "replicast-fig9": replicastMutations["fig9"],
	"replicast-fig10": replicastMutations["fig10"], "replicast-fig11": replicastMutations["fig11"],
	"replicast-fig12": replicastMutations["fig12"],
	"replicast-fig13": replicastMutations["fig13"],
	"src-fig2":        srcMutations["fig2"], "src-fig5": srcMutations["fig5"], "src-table1": srcMutations["table1"],
	"src-table3": srcMutations["table3"], "src-fig7": srcMutations["fig7"], "src-fig8": srcMutations["fig8"],
	"src-fig9": srcMutations["fig9"], "src-fig10": srcMutations["fig10"], "src-table4": srcMutations["table4"],
	"mintco-table4": table4Mutations, "mintco-fig6": fig6Mutations, "mintco-fig7": fig7Mutations,
	"mintco-fig8": fig8Mutations, "mintco-fig9": fig9Mutations, "mintco-fig10": fig10Mutations,
	"flashnet-waf": flashnetMutations,
}

// all applies changes to every run of an experiment.
func all(changes ...shape.Change) func(string) []shape.Change {
	return func(string) []shape.Change { return changes }
}

// in applies changes to the runs whose name matches a regular expression.
func in(runs string, changes ...shape.Change) func(string) []shape.Change {
	fits := regexp.MustCompile(runs)
	return func(run string) []shape.Change {
		if fits.MatchString(run) {
			return changes
		}
		return nil
	}
}

// turnedBy returns the mutation that flips the verdict of an experiment's row, or nil.
func turnedBy(id, label, metric string) *mutation {
	list := mutations[id]
	for i := range list {
		if regexp.MustCompile(list[i].rows).MatchString(label + "\t" + metric) {
			if list[i].name == "" {
				break // none is known
			}
			return &list[i]
		}
	}
	return nil
}

// thrifty is the number of seeds for mutated experiments that take longer than seconds (some also shorten their runs);
// the others run unchanged.
var thrifty = map[string]int{
	"replicast-table2": 5, "replicast-table3": 5, "replicast-table4": 1, "replicast-table5": 1, "replicast-fig8": 1,
	"replicast-fig9": 1, "replicast-fig11": 1, "replicast-fig12": 1,
	"replicast-fig13": 1, "src-fig5": 1, "src-fig8": 3, "src-fig9": 2, "src-fig10": 3,
	"src-table4": 3,
}

// swift are the experiments whose mutations take seconds in total, which always run; FARFLASH_LONG runs all.
var swift = []string{"mqsim-fairness", "reality-software", "mintco-table4", "mintco-fig9"}

// TestMutations runs each experiment with each of its mutations, and verifies that the declared rows change from the
// recorded verdict. So it finds rows that cannot fail, and rows that cannot hold, which feeding numbers to their
// criterion would not show.
func TestMutations(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	trainer := sharedTrainer(t)
	for _, e := range All() {
		if e.Measured {
			continue // no verdict is recorded
		}
		t.Run(e.ID, func(t *testing.T) {
			if !slices.Contains(swift, e.ID) && !patience.Long(t) {
				t.Skip("FARFLASH_LONG is not set")
			}
			rows := heldRows(e.ID)
			options := Options{Seed: 1, Trainer: trainer, few: thrifty[e.ID]}
			if options.few > 0 {
				// Fewer seeds alone must not flip the rows.
				turned(t, &e, options, rows, false)
			}
			for i := range mutations[e.ID] {
				m := &mutations[e.ID][i]
				if m.name == "" {
					continue
				}
				var its []heldRow
				for _, h := range rows {
					if h.turns == m.name {
						its = append(its, h)
					}
				}
				if len(its) == 0 {
					t.Errorf("%q turns no row", m.name)
					continue
				}
				options.mutant = m
				turned(t, &e, options, its, true)
			}
		})
	}
}

// turned runs an experiment and compares verdicts of rows with the recorded ones: all must have changed, or none.
func turned(t *testing.T, e *Experiment, o Options, rows []heldRow, want bool) {
	t.Helper()
	name := "nothing"
	if o.mutant != nil {
		name = o.mutant.name
	}
	r, err := e.Run(context.Background(), o)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	for _, h := range rows {
		i := slices.IndexFunc(r.Rows, func(x Row) bool { return x.Label == h.label && x.Metric == h.metric })
		if i < 0 {
			t.Errorf("%s: the row %s, %s is gone", name, h.label, h.metric)
			continue
		}
		x := &r.Rows[i]
		if was, is := h.verdict == NotReproduced, x.Verdict() == NotReproduced; (was != is) != want {
			t.Errorf("%s: %s, %s is %v with %.5g (%v), and %v without", name, h.label, h.metric, x.Verdict(), x.Ours,
				x.Meets, h.verdict)
		}
	}
}

// TestDeclared verifies that every row that is ok or not stated names a mutation of its experiment, and so does a row
// that is not reproduced if one is known that changes it; and that every mutation flips a row.
func TestDeclared(t *testing.T) {
	for _, e := range All() {
		used := map[string]int{}
		for _, h := range heldRows(e.ID) {
			m := turnedBy(e.ID, h.label, h.metric)
			switch {
			case h.measured != e.Measured:
				t.Errorf("%s: %s, %s: held as measured %v", e.ID, h.label, h.metric, h.measured)
			case h.measured:
				continue
			case m == nil && h.turns == "" && h.verdict == NotReproduced:
				continue // no known mutation makes it ok
			case m == nil || h.turns != m.name:
				t.Errorf("%s: %s, %s: nothing that is declared turns it, but %q", e.ID, h.label, h.metric, h.turns)
			}
			used[h.turns]++
		}
		for i := range mutations[e.ID] {
			if name := mutations[e.ID][i].name; name != "" && used[name] == 0 {
				t.Errorf("%s: %q turns no row", e.ID, name)
			}
		}
		if !e.Measured && e.inputs == "" {
			t.Errorf("%s: what its rows rest on is not said", e.ID)
		}
	}
}
