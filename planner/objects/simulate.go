package objects

import (
	"context"
	"crypto/sha256"
	_ "embed" // the template
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"

	"farflash/experiment/trial"
	"farflash/result"
	"farflash/scenario"
	"farflash/scenario/shape"
	"farflash/study"
)

// Template is a commented example need.
//
//go:embed need.yaml
var Template string

// File is a need as read from YAML.
type File struct {
	*Need
	Text   string // with every default, in a form that can be loaded again; comments mark the defaults
	Plain  string // the same without marks
	Digest string // of the inputs of a search, except its seeds
}

// Load reads a need, with the changes of the command line.
func Load(src shape.Source, changes []shape.Change) (*File, error) {
	n := DefaultNeed()
	set, err := shape.ParseDocument(src, &n, changes...)
	if err != nil {
		return nil, err
	}
	written := func(key string) bool { _, ok := set[key]; return ok }
	if err := shape.Locate(set, n.Validate(written)); err != nil {
		return nil, err
	}
	if n.Name == "" {
		name := filepath.Base(src.File)
		if n.Name = strings.TrimSuffix(name, filepath.Ext(name)); src.File == "" {
			n.Name = "cluster" // the flags alone state the need
		}
	}
	decided := decidedKeys()
	sum := sha256.Sum256([]byte(schema + "\n" + shape.WriteDocument(&n, nil, append(decided, "description"))))
	return &File{&n, shape.WriteDocument(&n, set, decided), shape.WriteDocument(&n, nil, decided),
		hex.EncodeToString(sum[:16])}, nil
}

// Sizer simulates designs.
type Sizer struct {
	Need   *Need
	Runner *study.Runner
}

// scenarioFor returns the scenario for a design with the given number of nodes down.
func scenarioFor(n *Need, d Design, down int) (*scenario.Scenario, error) {
	name := n.Label(d)
	if down > 0 {
		name += fmt.Sprintf(", %d down", down)
	}
	s, err := scenario.ForCluster(name, n.Config(d, down), n.Until(), n.Search.WarmUp)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// Evaluate implements Evaluator.
func (z *Sizer) Evaluate(ctx context.Context, d Design, down int, seeds []uint64) ([]Sample, error) {
	s, err := scenarioFor(z.Need, d, down)
	if err != nil {
		return nil, err
	}
	digest, err := s.Digest()
	if err != nil {
		return nil, err
	}
	trials := make([]trial.Trial, len(seeds))
	for i, seed := range seeds {
		trials[i] = trial.Trial{Scenario: s, Digest: digest, Seed: seed}
	}
	var out []Sample
	for _, o := range z.Runner.Run(ctx, trials) {
		switch o.State {
		case study.Failed:
			return nil, fmt.Errorf("%s, seed %d: %w", s.Name, o.Seed, o.Err)
		case study.Pending:
			return nil, trial.ErrInterrupted
		}
		out = append(out, sample(o.Result))
	}
	return out, nil
}

// leastRebuilding is the minimum number of operations for a 99th percentile of the time during a rebuild.
const leastRebuilding = 1000

// sample extracts the figures for the search from a result.
func sample(r *result.Result) Sample {
	value := func(name string) float64 {
		m, _ := r.Metric(name)
		return m.Value
	}
	// If pieces are rebuilt, the time during the rebuild counts.
	p99 := func(op string) float64 {
		all := value(op + ".latency.p99")
		if value(op+".rebuild.count") < leastRebuilding {
			return all
		}
		return max(all, value(op+".rebuild.p99"))
	}
	return Sample{Seed: r.Seed, Digest: r.Digest, Put: p99("cluster.put"), Get: p99("cluster.get"),
		Rate: value("cluster.put.iops") + value("cluster.get.iops"), Growth: value("cluster.backlog.growth"),
		Drift:  value("cluster.drift"),
		Failed: value("cluster.failed") + value("cluster.get.unavailable")}
}
