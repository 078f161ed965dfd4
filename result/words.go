package result

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Definition defines the meaning of a name.
type Definition struct {
	Name   string
	Unit   string    // for a metric, a key of Units
	Help   string    // one sentence fragment, without a full stop
	Better Direction // better of two values, where beyond doubt
}

// Words are the names of a kind of experiment, each defined once.
type Words struct {
	Metrics, series, Histograms, matrices []Definition
	scopes                                []Scope
}

// Scope is a division into parts, such as tenants, each with its own figures: "tenant[2].read.latency.p99".
type Scope struct {
	Name                string // the first part of such names
	Noun                string // word for a part in help texts: "tenant"
	Metrics, histograms []Definition
}

// Vocabulary is the names that results can have. It is immutable.
type Vocabulary struct {
	Metrics, Series, Histograms, Matrices *Table
	Scopes                                []Scope
}

// NewVocabulary combines words in order. It panics on a duplicate name.
func NewVocabulary(parts ...Words) *Vocabulary {
	var all Words
	for _, p := range parts {
		all.Metrics, all.series = append(all.Metrics, p.Metrics...), append(all.series, p.series...)
		all.Histograms, all.matrices = append(all.Histograms, p.Histograms...), append(all.matrices, p.matrices...)
		all.scopes = append(all.scopes, p.scopes...)
	}
	groups := map[string]int{}
	metrics := newTable("metric", all.Metrics, groups, all.scopes, func(s *Scope) []Definition { return s.Metrics })
	histograms := newTable("histogram", all.Histograms, groups, all.scopes,
		func(s *Scope) []Definition { return s.histograms })
	none := func(*Scope) []Definition { return nil }
	return &Vocabulary{metrics, newTable("series", all.series, groups, nil, none), histograms,
		newTable("matrix", all.matrices, groups, nil, none), all.scopes}
}

// Table is an ordered list of definitions. A name's first part can carry an index: "ssd[2].waf".
type Table struct {
	what  string
	list  []Definition
	rank  map[string]int
	group map[string]int // order of the names' first parts, from 1; shared by all tables of a vocabulary
	parts map[string]scopeTable
}

// scopeTable is the definitions of the parts of a scope.
type scopeTable struct {
	noun string
	list []Definition
	rank map[string]int
}

// indexed lists the groups of which a system may have several instances.
var indexed = []string{"ssd", "initiator", "target", "flow"}

// newTable panics on a duplicate name.
func newTable(what string, list []Definition, groups map[string]int, scopes []Scope,
	of func(*Scope) []Definition) *Table {
	t := &Table{what: what, list: list, rank: make(map[string]int, len(list)), group: groups,
		parts: map[string]scopeTable{}}
	for i, d := range list {
		if _, twice := t.rank[d.Name]; twice {
			panic("result: two definitions of " + d.Name)
		}
		t.rank[d.Name] = i
		if g := groupOf(d.Name); groups[g] == 0 {
			groups[g] = len(groups) + 1
		}
	}
	for i := range scopes {
		s := scopeTable{noun: scopes[i].Noun, list: of(&scopes[i]), rank: map[string]int{}}
		for k, d := range s.list {
			s.rank[d.Name] = k
		}
		t.parts[scopes[i].Name] = s
		if g := scopes[i].Name; groups[g] == 0 {
			groups[g] = len(groups) + 1
		}
	}
	return t
}

// All returns the definitions in order. The caller must not change them.
func (t *Table) All() []Definition { return t.list }

// Lookup returns the definition of a name, which can carry an index.
func (t *Table) Lookup(name string) (Definition, bool) {
	plain, index, ok := t.cut(name)
	if !ok {
		return Definition{}, false
	}
	if i, ok := t.rank[plain]; ok {
		d := t.list[i]
		d.Name = name
		return d, true
	}
	scope, rest, _ := strings.Cut(plain, ".")
	s := t.parts[scope]
	i, ok := s.rank[rest]
	if !ok || index < 0 {
		return Definition{}, false
	}
	d := s.list[i]
	d.Name, d.Help = name, d.Help+", of one "+s.noun
	return d, true
}

// cut is cutIndex for the names of the table, whose scopes can carry indices too.
func (t *Table) cut(name string) (plain string, index int, ok bool) {
	plain, index, ok = cutIndex(name)
	if group := groupOf(plain); ok && index >= 0 && !slices.Contains(indexed, group) {
		_, ok = t.parts[group]
	}
	return plain, index, ok
}

// place returns a name's position within its group.
func (t *Table) place(plain string) (rank int, known bool) {
	if rank, known = t.rank[plain]; known {
		return rank, true
	}
	scope, rest, _ := strings.Cut(plain, ".")
	rank, known = t.parts[scope].rank[rest]
	return rank + len(t.list), known
}

// Better returns which of two values of a metric is better. It accepts an index.
func (t *Table) Better(name string) Direction {
	d, _ := t.Lookup(name)
	return d.Better
}

// must returns the definition of a name that is fixed in the program.
func must(t *Table, name string) Definition {
	d, ok := t.Lookup(name)
	if !ok {
		panic(fmt.Sprintf("result: %q is not a %s; add it to the words of its kind of experiment", name, t.what))
	}
	return d
}

// cutIndex splits "ssd[2].waf" into "ssd.waf" and 2; the index of a plain name is -1.
func cutIndex(name string) (plain string, index int, ok bool) {
	open := strings.IndexByte(name, '[')
	if open < 0 {
		return name, -1, true
	}
	group := name[:open]
	number, rest, found := strings.Cut(name[open+1:], "]")
	n, err := strconv.Atoi(number)
	if !found || err != nil || n < 0 || strconv.Itoa(n) != number || strings.Contains(group, ".") {
		return "", 0, false
	}
	return group + rest, n, true
}

// compare orders names: by group (the part before the first dot) in the order in which groups first appear in the
// vocabulary, metrics first, then by index with the plain name first, then by position in the table. Names that are not
// in the table come last, in alphabetical order.
func (t *Table) compare(a, b string) int {
	if a == b {
		return 0
	}
	pa, ia, okA := t.cut(a)
	pb, ib, okB := t.cut(b)
	ra, knownA := t.place(pa)
	rb, knownB := t.place(pb)
	knownA, knownB = knownA && okA, knownB && okB
	switch {
	case !knownA && !knownB:
		return strings.Compare(a, b)
	case !knownA:
		return 1
	case !knownB:
		return -1
	}
	return cmp.Or(cmp.Compare(t.group[groupOf(pa)], t.group[groupOf(pb)]), cmp.Compare(ia, ib), cmp.Compare(ra, rb))
}

// groupOf returns the part of a name before the first dot.
func groupOf(name string) string {
	group, _, _ := strings.Cut(name, ".")
	return group
}

// Lexicon collects words.
type Lexicon struct{ Words }

// Metric defines a metric.
func (l *Lexicon) Metric(name, unit, help string) {
	l.Metrics = append(l.Metrics, Definition{name, unit, help, direction(name)})
}

// Scope defines a division into parts, which have the words so far that of selects, and more.
func (l *Lexicon) Scope(name, noun string, of func(name string) bool, more ...Definition) {
	pick := func(list []Definition) (out []Definition) {
		for _, d := range list {
			if of(d.Name) {
				out = append(out, d)
			}
		}
		return out
	}
	l.scopes = append(l.scopes, Scope{name, noun, append(pick(l.Metrics), more...), pick(l.Histograms)})
}

// Series defines a series.
func (l *Lexicon) Series(name, unit, help string) {
	l.Words.series = append(l.Words.series, Definition{Name: name, Unit: unit, Help: help})
}

// Histogram defines a histogram of times.
func (l *Lexicon) Histogram(name, help string) {
	l.Histograms = append(l.Histograms, Definition{Name: name, Unit: "us", Help: help})
}

// Matrix defines a matrix.
func (l *Lexicon) Matrix(name, unit, help string) {
	l.matrices = append(l.matrices, Definition{Name: name, Unit: unit, Help: help})
}

// Latency defines what SetLatencies sets. what begins with " of" and names the times.
func (l *Lexicon) Latency(prefix, what, histogram string) {
	l.Metric(prefix+".latency.mean", "us", "mean"+what)
	l.Metric(prefix+".latency.stddev", "us", "standard deviation"+what)
	l.Metric(prefix+".latency.min", "us", "minimum"+what)
	l.Quantiles(prefix+".latency", "us", what, Quantiles)
	l.Metric(prefix+".latency.max", "us", "maximum"+what)
	l.Histogram(prefix+".latency", histogram)
}

// Quantiles defines a metric for each quantile of the list.
func (l *Lexicon) Quantiles(prefix, unit, what string, list []Quantile) {
	for _, q := range list {
		l.Metric(prefix+"."+q.Name, unit, strconv.FormatFloat(q.Share*100, 'g', 6, 64)+"th percentile"+what)
	}
}

// Fewer declares that lower values of defined metrics are better.
func (l *Lexicon) Fewer(names ...string) { l.better(LowerIsBetter, names) }

// More declares that higher values are better.
func (l *Lexicon) More(names ...string) { l.better(HigherIsBetter, names) }

func (l *Lexicon) better(d Direction, names []string) {
	for i := range l.Metrics {
		if slices.Contains(names, l.Metrics[i].Name) {
			l.Metrics[i].Better = d
		}
	}
}
