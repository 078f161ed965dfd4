package trial_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/experiment/trial/trialtest"
	"farflash/result"
	"farflash/scenario"
	"farflash/scenario/shape"
)

// everyOperation is a trace in fio's format with requests of each kind.
const everyOperation = `fio version 2 iolog
/dev/x add
/dev/x open
/dev/x write 0 65536
/dev/x read 0 4096
/dev/x trim 0 65536
/dev/x sync 0 0
/dev/x close
`

// aboutZones is a trace with every zone command.
const aboutZones = `time,op,offset,size
0,open,0,0
0.001,append,0,4096
0.002,close,0,0
0.003,finish,0,0
0.004,reset,0,0
`

// TestProducers verifies that some experiment produces every word of the vocabulary, because a metric without a
// producer would be a broken promise.
func TestProducers(t *testing.T) {
	if testing.Short() {
		t.Skip("some twenty runs")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "all.log"), []byte(everyOperation), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "zones.csv"), []byte(aboutZones), 0o666); err != nil {
		t.Fatal(err)
	}
	const cluster = "object_cluster: {gateways: 18, targets: 18, chunk: 64KiB}\nmeasure: {until: 20ms, warm_up: 20%}\n"
	said := map[string]bool{}
	index := regexp.MustCompile(`\[\d+\]`)
	say := func(what, name string) { said[what+" "+index.ReplaceAllString(name, "")] = true }
	for i, x := range []struct {
		text string
		set  []string
	}{
		{"ssd: {preset: tlc-enterprise, geometry: {blocks_per_plane: 64, pages_per_block: 64}}\nworkload: [{trace: " +
			"{file: all.log, format: fio}}]\n",
			[]string{"ssd.energy={idle_watts: 2, program: 100uJ}", "ssd.power_limit={watts: 3}"}},
		{trialtest.Mixed, []string{"ssd.wear.cycles=3000", "ssd.mapping={ideal: false, cmt_capacity: 4KiB}",
			"ssd.cache={mode: read-write, capacity: 1MiB}",
			"ssd.scheduling={classes: true, suspend_erase: true, suspend_program: true}",
			"workload[0].queue.class=urgent", "workload[1].queue.class=high"}},
		{trialtest.Mixed, []string{"workload[0].queue.class=medium", "workload[1].queue.class=low",
			"ssd.scheduling.classes=true"}},
		{trialtest.Mixed, []string{"workload[1].queue.class=urgent", "workload[0].queue.class=high",
			"ssd.scheduling.classes=true"}},
		{trialtest.Mixed, []string{"workload[1].queue.class=medium", "workload[0].queue.class=low",
			"ssd.scheduling.classes=true"}},
		{"ssd: " + trialtest.TinyDrive +
			"\nworkload: [{synthetic: {writes: {size: 4KiB, interarrival: 50us}, requests: 20000}}]\n", nil},
		{trialtest.Mixed, []string{"measure.alone=true", "workload[0].tenant=web"}},
		{trialtest.Mixed, []string{"host_raid={level: 5, drives: 3}"}},
		{trialtest.Mixed, []string{"ssd.reliability={cycles: 3000, retention: 90d, refresh: {at: 90%}}"}},
		{trialtest.Mixed, []string{"ssd.controller={command: 1us}", "ssd.power_states=[{after: 20us, exit: 10us}]"}},
		{"ssd: " + trialtest.TinyDrive +
			"\nworkload: [{synthetic: {writes: {size: 4KiB, interarrival: 50us}, requests: 20000}}]\n",
			[]string{"ssd.slc_cache={capacity: 8MiB, fold: always}", "ssd.preconditioning.fill=none"}},
		{"ssd: {preset: tlc-enterprise, geometry: {blocks_per_plane: 64, pages_per_block: 64}, zones: {}}\nworkload: " +
			"[{trace: {file: zones.csv, columns: {time: time, op: op, offset: offset, size: size}}}]\n", nil},
		{trialtest.Mixed, []string{"ssd.fdp={handles: 2, groups: 2}", "workload[1].group=1"}},
		{trialtest.SmallFabric, nil},
		{trialtest.SmallFabric,
			[]string{"measure.progress=true", "fabric.trimming={enabled: true, queue: 8KB}",
				"fabric.pfc.enabled=false", "fabric.recovery.kind=selective-repeat",
				"fabric.congestion_control.algorithm=ndp"}},
		{trialtest.SmallFabric,
			[]string{"fabric.load_balancing={choice: random}",
				"fabric.recovery={kind: selective-repeat, reordering: 64}",
				"flows=[{collective: {operation: all-reduce, size: 1MB}}]"}},
		{trialtest.SmallSystem, []string{"workload[0].synthetic.writes={size: 4KiB, interarrival: 20us}"}},
		{trialtest.SmallSystem, []string{"nvmf.limits={rw_ios: 10000}", "nvmf.host={io_timeout: 1ms, reconnect_delay: " +
			"1ms}", "fabric.failures=[{a: h0, b: s0, at: 100us, until: 5ms}]"}},
		{trialtest.SmallSystem, []string{"nvmf.receives={shared: 1, rnr_timer: 10us}"}},
		{trialtest.SmallSystem, []string{"nvmf.multipath.ana=[{path: 0, at: 100us, state: inaccessible}, {path: 0, at: " +
			"1ms}]", "nvmf.host.keep_alive=5s", "nvmf.keep_alive_timer=linux"}},
		{trialtest.SmallSystem,
			[]string{"workload[0].synthetic.writes={size: 4KiB, interarrival: 20us}",
				"rate_control={kind: static, demands: [{at: 1ms, rate: 1Gbps}]}",
				"workload[0].synthetic.requests=5000", "measure.until=15ms"}},
		{trialtest.SmallSystem,
			[]string{"coupling={mode: both, iterative: {full: true, iterations: 20}}",
				"workload[0].synthetic.writes={size: 4KiB, interarrival: 20us}"}},
		{cluster, []string{"object_cluster.protocol=pull", "object_cluster.reads=50%", "object_cluster.read=hedged",
			"object_cluster.durability={afr: 2%}"}},
		{cluster, []string{"object_cluster.protocol=replicast-m", "object_cluster.load={share: 50%}",
			"object_cluster.durability={afr: 2%}"}},
		{cluster, []string{"object_cluster.protocol=replicast-h", "object_cluster.processor.message=1us"}},
		{cluster, []string{"object_cluster.protocol=uch-ccp", "object_cluster.disk.rate=10GB/s",
			"object_cluster.gateways=4", "object_cluster.link.rate=1Gbps"}},
		{cluster, []string{"object_cluster.protocol=chain", "object_cluster.reads=50%",
			"object_cluster.link={loss: 0.1%}", "object_cluster.failures=[{target: 3, at: 2ms}]",
			"object_cluster.quorum=2"}},
		{cluster, []string{"object_cluster.protocol=pull", "object_cluster.replicas=3",
			"object_cluster.code={data: 2, parity: 1}", "object_cluster.update={share: 50%, size: 4KiB}",
			"object_cluster.disk.count=2", "object_cluster.memory=4MiB"}},
		{"object_cluster: {protocol: storm}\nmeasure: {until: 200us, warm_up: 20%}\n", nil},
		{"object_cluster: {protocol: tiering}\nmeasure: {until: 1s, warm_up: 20%}\n", nil},
	} {
		var changes []shape.Change
		for _, s := range x.set {
			c, err := shape.ParseChange(s)
			if err != nil {
				t.Fatal(err)
			}
			changes = append(changes, c)
		}
		s, err := scenario.Parse(shape.Source{File: "a.yaml", Dir: dir, Text: []byte(x.text)}, changes)
		if err != nil {
			t.Errorf("%d: %v", i, err)
			continue
		}
		o, err := trial.Run(context.Background(), s, experiment.Options{Seed: 1})
		if err != nil {
			t.Errorf("%d: %v", i, err)
			continue
		}
		for _, m := range o.Result.Metrics {
			say("metric", m.Name)
		}
		for _, m := range o.Result.Series {
			say("series", m.Name)
		}
		for _, m := range o.Result.Histograms {
			say("histogram", m.Name)
		}
		for _, m := range o.Result.Matrices {
			say("matrix", m.Name)
		}
	}
	v := trial.Vocabulary()
	var never []string
	for what, table := range map[string]*result.Table{"metric": v.Metrics, "series": v.Series,
		"histogram": v.Histograms, "matrix": v.Matrices} {
		for _, d := range table.All() {
			// Quantiles count as produced even if the run has too few values.
			if i := strings.LastIndex(d.Name, ".p"); i > 0 && said[what+" "+d.Name[:i]+".max"] {
				continue
			}
			if !said[what+" "+d.Name] {
				never = append(never, what+" "+d.Name)
			}
		}
	}
	slices.Sort(never)
	if len(never) > 0 {
		t.Error(fmt.Sprint("nothing says\n", strings.Join(never, "\n")))
	}
}
